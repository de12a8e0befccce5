"""Run directories: where they are, what is in them, and how to find the newest.

config.toml         the configuration with all defaults; `weft train` takes it again
run.json            what the data told: classes, feature names, vocabulary
log.jsonl           a line for each epoch
curves.png          the same as pictures
checkpoints/        everything that a resumed run needs
tensorboard/        event files
logs/               what each of many processes printed
model.safetensors   the final weights
results.json        the final figures
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..train.extensions.files import write_text
from .config import ConfigSource, dotted
from .errors import UsageError
from .toml_write import to_toml

CONFIG, FACTS, WEIGHTS, RESULTS = "config.toml", "run.json", "model.safetensors", "results.json"
CHECKPOINTS, LOGS = "checkpoints", "logs"
_ROOT = Path("runs")


def choose_directory(
    source: ConfigSource, config: Mapping[str, Any], out: str | None, resume: str | None
) -> Path:
    """Return the directory of a run: a new one, or for resuming the newest of that name."""
    if resume not in (None, "auto"):
        return _directory_of(Path(str(resume)))
    chosen = _explicit(source, config, out)
    if chosen is not None:
        if resume is None and (chosen / CHECKPOINTS).is_dir():
            raise UsageError(
                f"{chosen} holds a run already: continue it with --resume auto, or choose another "
                "directory with --out"
            )
        return chosen
    name = _safe_name(str(config.get("name", source.path.stem)))
    taken = numbered_runs(_ROOT, name)
    if resume == "auto" and taken:
        return taken[-1]
    number = 1 + (int(taken[-1].name.rpartition("-")[2]) if taken else 0)
    return _ROOT / f"{name}-{number:03d}"


def numbered_runs(root: Path, name: str) -> list[Path]:
    """Return the runs of a name, oldest first."""
    if not root.is_dir():
        return []
    pattern = re.compile(re.escape(name) + r"-(\d{3,})")
    found = [entry for entry in root.iterdir() if entry.is_dir() and pattern.fullmatch(entry.name)]
    return sorted(found, key=lambda entry: int(entry.name.rpartition("-")[2]))


def _explicit(source: ConfigSource, config: Mapping[str, Any], out: str | None) -> Path | None:
    if out is not None:
        return Path(out)
    configured = config["trainer"].get("out")
    if configured is None:
        return None
    base = Path.cwd() if source.is_override(("trainer", "out")) else source.path.resolve().parent
    return base / Path(configured).expanduser()


def _directory_of(path: Path) -> Path:
    """Return the run directory that a path for resuming means: itself, or the checkpoint's."""
    if not path.is_dir():
        raise UsageError(f"--resume: there is no directory {path}; give 'auto' or a checkpoint")
    if (path / CONFIG).is_file():
        return path
    if path.parent.name == CHECKPOINTS:
        return path.parent.parent
    raise UsageError(f"--resume: {path} is neither a run directory nor a checkpoint of one")


def _safe_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"


# -- files ---------------------------------------------------------------------------------------


def write_files(directory: Path, config: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Write the resolved configuration and what is known of the data."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_text(directory / CONFIG, to_toml(config) + "\n")
        write_text(directory / FACTS, json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise UsageError(
            f"cannot write to the run directory {directory}: {error.strerror or error}; choose "
            "another one with --out"
        ) from error


def read_facts(directory: Path) -> dict[str, Any]:
    """Return what is known of the data of a run; nothing if that was not written."""
    try:
        facts = json.loads((directory / FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def changed_keys(directory: Path, config: Mapping[str, Any]) -> list[str]:
    """Return the keys in which a configuration differs from that of the run in a directory."""
    try:
        old = tomllib.loads((directory / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    before, now = _flat(old, ()), _flat(config, ())
    return sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))


def _flat(value: Any, keys: tuple[str | int, ...]) -> dict[str, Any]:
    if isinstance(value, Mapping):
        parts = [_flat(one, (*keys, key)) for key, one in value.items()]
        return {key: one for part in parts for key, one in part.items()}
    if isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        parts = [_flat(one, (*keys, i)) for i, one in enumerate(value)]
        return {key: one for part in parts for key, one in part.items()}
    return {dotted(keys): list(value) if isinstance(value, tuple) else value}
