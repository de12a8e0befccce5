"""`weft test`: evaluate trained weights on a part of the data."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..train import evaluate
from ..train.extensions.files import write_text
from .assemble import Run, build_run
from .errors import UsageError
from .extensions import direction
from .saved_runs import load_weights, open_source


def evaluate_run(options: Namespace) -> int:
    """Print the loss and the metrics of a split."""
    source, directory = open_source(options.run, options.set)
    run = build_run(source)
    if options.split not in run.data.splits:
        have = ", ".join(run.data.splits)
        raise UsageError(f"the data has no {options.split} part; it has: {have}")
    used = load_weights(run.model, directory, options.weights, best_metric(run.config))
    batches = _ordered(run, options.split)
    figures = evaluate(run.objective, batches, run.metrics(), compile=run.config["compile"])
    plain = {name: _plain(value) for name, value in figures.items()}
    print(f"weights: {used}")
    print(f"{options.split}: {len(run.data.splits[options.split])} samples")
    for name, value in plain.items():
        print(_line(name, value))
    if options.out:
        write_text(Path(options.out), json.dumps(plain, indent=1) + "\n")
    return 0


def best_metric(config: Any) -> tuple[str, str]:
    """Return by which metric, and which way, the checkpoints of a run are ranked."""
    settings = config["trainer"]["checkpoint"]
    metric = settings.get("metric", "val/loss")
    return metric, settings.get("mode") or direction(metric)


def _ordered(run: Run, split: str) -> Any:
    """Return the batches of a split in order, the training data without its shuffling."""
    run.config["data"]["shuffle"] = False
    return run.data.loader(split, run.config["seed"])


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.numpy()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _line(name: str, value: Any) -> str:
    if isinstance(value, list):
        rows = "\n".join("  " + "  ".join(f"{one:>6}" for one in row) for row in value)
        return f"{name}:\n{rows}"
    return f"{name:<20} {value:.6g}"
