"""The learning-rate schedule of a run, with warm-up and later stages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..optim import Optimizer, lr
from ..train import Schedule
from ..train.names import SCHEDULES
from .config import ConfigSource
from .run_schema import RUN_LENGTHS, SCHEDULE


def build_schedule(
    source: ConfigSource, config: Mapping[str, Any], optimizer: Optimizer, epoch_length: int | None
) -> tuple[Schedule, tuple[float, str]] | None:
    """Return the extension that steps the schedule, and its trigger; None without a schedule."""
    settings = config.get("schedule")
    if settings is None:
        return None
    unit = settings["unit"]
    length = run_length(config["trainer"], unit, epoch_length)
    made = _combined(source, settings, optimizer, length)
    return Schedule(made, metric=settings.get("metric")), (1, unit)


def run_length(trainer: Mapping[str, Any], unit: str, epoch_length: int | None) -> int | None:
    """Return how many epochs or iterations the run has, if that can be known."""
    if unit == "epoch" and "epochs" in trainer:
        return math.ceil(float(trainer["epochs"]))
    if unit == "iteration" and "iterations" in trainer:
        return int(trainer["iterations"])
    if epoch_length is None:
        return None
    per_epoch = -(-epoch_length // int(trainer["accumulate"]))
    if unit == "iteration":
        return math.ceil(float(trainer["epochs"]) * per_epoch)
    return int(-(-trainer["iterations"] // per_epoch))


def _combined(
    source: ConfigSource, settings: Mapping[str, Any], optimizer: Optimizer, length: int | None
) -> Any:
    """Return the schedule after its warm-up, followed by what `then` says."""
    stages = [{**settings, "after": settings.get("warmup", 0)}, *settings.get("then", [])]
    starts = [stage["after"] for stage in stages]
    if starts != sorted(set(starts)):
        raise source.error(("schedule", "then"), f"stages must begin one after the other: {starts}")
    ends = [*starts[1:], length]
    if length is not None and starts[-1] >= length:
        raise source.error(
            ("schedule", "then" if settings.get("then") else "warmup"),
            f"the last stage begins after {starts[-1]} steps, but the run has only {length}",
        )
    keys: list[tuple[str | int, ...]] = [("schedule",)]
    keys += [("schedule", "then", i) for i in range(len(stages) - 1)]
    made = [
        _single(source, key, stage, optimizer, None if end is None else end - start)
        for key, stage, start, end in zip(keys, stages, starts, ends, strict=True)
    ]
    if "warmup" in settings:
        options = {"start_factor": settings["warmup_factor"], "total_iters": settings["warmup"]}
        made.insert(0, lr.LinearLR(optimizer, **options))
        starts.insert(0, 0)
    return made[0] if len(made) == 1 else lr.SequentialLR(optimizer, made, starts[1:])


def _single(
    source: ConfigSource,
    keys: Any,
    settings: Mapping[str, Any],
    optimizer: Optimizer,
    length: int | None,
) -> Any:
    entry = SCHEDULES[settings["type"]]
    taken = {*SCHEDULE, "type", "after"}
    options = {n: v for n, v in settings.items() if n in entry.options and n not in taken}
    for name in RUN_LENGTHS & entry.options.keys() - options.keys():
        if entry.options[name].required or "run" in entry.traits:
            options[name] = _known_length(source, keys, name, length)
    with source.blaming(keys, f"schedule {entry.name!r}"):
        return entry(optimizer, **options)


def _known_length(source: ConfigSource, keys: Any, name: str, length: int | None) -> int:
    if length is None or length < 1:
        raise source.error(keys, f"the length of the run is not known; give {name!r}")
    return length
