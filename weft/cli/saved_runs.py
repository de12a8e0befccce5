"""A trained run, found again: its configuration, its facts, and the weights to use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.errors import WeftError
from ..io import CheckpointManager, load, load_state
from ..nn import Module
from .config import ConfigSource, read_source
from .errors import UsageError
from .run_directory import CHECKPOINTS, CONFIG, WEIGHTS, read_facts


def open_source(target: str, settings: list[str]) -> tuple[ConfigSource, Path | None]:
    """Return the configuration of a run directory or a TOML file, and the directory if known."""
    path = Path(target)
    if path.is_dir():
        if not (path / CONFIG).is_file():
            raise UsageError(f"{path} is no run directory: it has no {CONFIG}")
        return read_source(path / CONFIG, settings), path
    return read_source(path, settings), path.parent if path.name == CONFIG else None


def facts_of(directory: Path | None) -> dict[str, Any]:
    """Return what was known of the data when a run was trained."""
    return {} if directory is None else read_facts(directory)


def load_weights(model: Module, directory: Path | None, choice: str, metric: Any = None) -> str:
    """Load the weights that were asked for into a model; return where they came from.

    choice   "final", "last", "best", or a path to a checkpoint or a safetensors file; "auto" is
             the final weights, or the last checkpoint of a run that has not ended
    """
    path = _chosen(directory, choice, metric)
    try:
        state = _model_state(path)
        model.load_state_dict(state)
    except WeftError as error:
        raise UsageError(f"the weights of {path} do not fit the configuration: {error}") from error
    return str(path)


def _chosen(directory: Path | None, choice: str, metric: Any) -> Path:
    if choice not in {"auto", "final", "last", "best"}:
        return Path(choice)
    if directory is None:
        raise UsageError(
            "a configuration alone has no weights: name the run directory, or give --weights FILE"
        )
    final = directory / WEIGHTS
    if choice == "final" or (choice == "auto" and final.is_file()):
        return final
    options = {"metric": metric[0], "mode": metric[1], "keep_best": 1} if metric else {}
    manager = CheckpointManager(directory / CHECKPOINTS, **options)
    found = manager.best() if choice == "best" else manager.latest()
    if found is None:
        raise UsageError(f"there is no good checkpoint in {directory / CHECKPOINTS}")
    return found


def _model_state(path: Path) -> Mapping[str, Any]:
    if path.is_dir() and (path / "state.json").is_file():
        state = load_state(path)
        try:
            found: Mapping[str, Any] = state["updater"]["model"]
        except (KeyError, TypeError):
            raise UsageError(f"{path} is a checkpoint without a model") from None
        return found
    return load(path)
