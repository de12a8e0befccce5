"""`weft info`: this installation; a run or a file of weights; what a configuration may name."""

from __future__ import annotations

import json
import os
import platform
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..backends.cpu.codegen.target import host
from ..backends.store import cache_info
from ..core.config import config
from ..core.device import devices
from ..core.installed import version
from ..io import load, load_metadata
from ..train.names import REGISTRIES
from ..train.registry import Entry, hint
from .assemble import build_run
from .errors import UsageError
from .saved_runs import open_source

OPTIONAL = (
    *("safetensors", "rich", "matplotlib", "tensorboardX", "pillow", "pyarrow"),
    *("scikit-learn", "ml_dtypes", "gymnasium", "starlette", "uvicorn"),
)


def info(options: Namespace) -> int:
    """Print what is known of something, by default of this installation."""
    target = options.target
    if target is None:
        facts = installation()
        print(json.dumps(facts, indent=1) if options.json else "\n".join(_lines(facts)))
    elif target in REGISTRIES:
        print("\n".join(sorted(REGISTRIES[target])))
    elif Path(target).exists():
        _describe_path(Path(target), options.set)
    else:
        _describe_name(target)
    return 0


def installation() -> dict[str, Any]:
    """Return the versions and the machine."""
    return {
        "weft": version("weft"),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "llvmlite": version("llvmlite"),
        "optional": {name: version(name) for name in OPTIONAL},
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processors": _processors(),
        "target": f"{host().cpu}, vectors of {host().vector_bytes} bytes",
        "devices": ", ".join(devices()),
        "executable": Path(sys.executable).name,
        "eager kernels": "on" if config.eager_kernels else "off",
        "cache": asdict(cache_info()),
    }


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    for name, value in facts.items():
        if name == "cache":
            yield f"{name:<14} {_cache_line(**value)}"
        elif isinstance(value, dict):
            for inner, found in value.items():
                yield f"{inner:<14} {found or 'not installed'}"
        else:
            yield f"{name:<14} {value or 'not installed'}"


def _cache_line(
    path: str | None, files: int, bytes: int, limit: int, hits: int, misses: int
) -> str:
    if path is None:
        return "in memory only"
    used = f"{files} files, {bytes / 2**20:.1f} of {limit / 2**20:.0f} MB"
    return f"{path} ({used}; {hits} hits, {misses} misses)"


def _describe_path(path: Path, settings: list[str]) -> None:
    if path.suffix == ".safetensors":
        for name, tensor in load(path).items():
            print(f"{name:<50} {tuple(tensor.shape)!s:<20} {tensor.dtype}")
        metadata = load_metadata(path)
        print(f"metadata: {', '.join(metadata) or 'none'}")
        return
    source, _ = open_source(str(path), settings)
    run = build_run(source)
    sizes = ", ".join(f"{name} {len(data)}" for name, data in run.data.splits.items())
    print(f"data: {sizes}")
    print(run.model.summary(*run.example))


def _describe_name(name: str) -> None:
    """Print the options of everything that has that name."""
    found = [(kind, r[name]) for kind, r in REGISTRIES.items() if name in r]
    if not found:
        known = [*REGISTRIES, *(entry for r in REGISTRIES.values() for entry in r)]
        near = hint(name, known)
        raise UsageError(
            f"there is no file, list or name {name!r}; "
            + (near if near.startswith("did") else f"the lists are: {', '.join(REGISTRIES)}")
        )
    for kind, entry in found:
        print("\n".join(_described(kind, entry)))


def _described(kind: str, entry: Entry) -> Iterator[str]:
    first = (entry.make.__doc__ or "").strip().partition("\n")[0]
    yield f"{entry.name} ({kind}): {first}"
    for option in entry.options.values():
        default = "required" if option.required else f"default {option.default!r}"
        kinds = " or ".join(sorted(option.kinds)) if option.kinds else "any value"
        yield f"  {option.name:<20} {kinds} ({default})"
