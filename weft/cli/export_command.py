"""`weft export`: a trained model as a shared library that runs without Python."""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path

from ..capture import export
from ..core.errors import WeftError
from ..core.tensor import Tensor
from ..core.tree import tree_leaves
from .assemble import build_run
from .errors import UsageError
from .evaluate_command import best_metric
from .graph_command import input_names
from .saved_runs import load_weights, open_source

MOST_BATCHES = 4096  # each has a table in the library


def export_run(options: Namespace) -> int:
    """Write the model of a run, with trained weights, to a library."""
    path = _checked_path(options.out)
    source, directory = open_source(options.run, options.set)
    run = build_run(source, ("train",))
    used = load_weights(run.model, directory, options.weights, best_metric(run.config))
    plain = all(isinstance(leaf, Tensor) for leaf in tree_leaves(list(run.example)))
    try:
        written = export(
            run.model.eval(),
            path,
            *run.example,
            batches=options.batches,
            target=options.target,
            threads=options.threads,
            weights="beside" if options.beside else "inside",
            prefix=options.prefix,
            input_names=input_names(run) if plain else None,
        )
    except WeftError as error:
        raise UsageError(f"the model cannot be exported: {error}") from error
    print(f"weights: {used}")
    for file in written:
        print(f"{file}  {file.stat().st_size:,} bytes")
    return 0


def batches_of(text: str) -> list[int]:
    """Return the sizes that a text like 1,8,16-32 names."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.strip().isdecimal() or (dash and not last.strip().isdecimal()):
            raise argparse.ArgumentTypeError(f"must be numbers like 1,8,16-32. Received: {text}")
        found += range(int(first), int(last if dash else first) + 1)
    if not found or len(found) > MOST_BATCHES or min(found) < 1:
        raise argparse.ArgumentTypeError(
            f"must be 1 to {MOST_BATCHES} sizes of at least 1. Received: {text}"
        )
    return found


def _checked_path(out: str) -> Path:
    """Refuse a path that cannot be written before the work of building a model."""
    path = Path(out)
    if path.suffix != ".so":
        raise UsageError(f"--out must end in .so. Received: {out}")
    if not path.parent.is_dir():
        raise UsageError(f"--out: there is no directory {path.parent}")
    return path
