"""The extensions of a run, as its [trainer] table asks for them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from ..distributed import rank
from ..train import (
    Average,
    Checkpoint,
    EarlyStopping,
    Evaluator,
    LearningRate,
    Log,
    NanStop,
    PlotConfusion,
    PlotCurves,
    Profiler,
    ProgressBar,
    TensorBoard,
    Trainer,
    TrainingMetrics,
)
from ..train.metrics import improves_upwards
from ..train.parallel import mode_of
from ..train.registry import hint
from .assemble import Run, build_metrics
from .errors import ConfigError
from .run_directory import CHECKPOINTS
from .samples import Samples
from .schedules import build_schedule

_FALLING = ("loss", "kl", "reconstruction")  # beside the errors among the metrics
_PACKAGES = {"progress": "rich", "plot": "matplotlib", "tensorboard": "tensorboardX"}


def extend(trainer: Trainer, run: Run) -> list[str]:
    """Add all extensions to a trainer; return notes on what is left out and why."""
    settings = run.config["trainer"]
    average = Average(settings["ema"], keep=True) if "ema" in settings else None
    if average is not None:
        trainer.extend(average)
    _add_guards(trainer, run)
    _add_metrics(trainer, run, average)
    _add_schedule(trainer, run)
    notes = _add_displays(trainer, run) if is_first(run.config) else []
    _add_saver(trainer, run)
    return notes


def is_first(config: Mapping[str, Any]) -> bool:
    """Tell whether this process is the one of a run that shows things and writes files.

    With parameter servers, which come first, it is the first of the others.
    """
    parallel = config["trainer"]["parallel"]
    if mode_of(parallel) == "async":
        return rank() == int(parallel.get("servers", 1))
    return parallel is False or rank() == 0


def _add_guards(trainer: Trainer, run: Run) -> None:
    settings = run.config["trainer"]
    if settings["nan_stop"]:
        trainer.extend(NanStop())
    stopping = settings.get("early_stopping")
    if stopping is not None:
        key = ("trainer", "early_stopping", "metric")
        metric = _observed(run, stopping["metric"], key)
        options = {n: v for n, v in stopping.items() if n not in {"metric", "mode"}}
        mode = stopping.get("mode", direction(metric))
        extension = EarlyStopping(metric, mode=mode, **options)
        trainer.extend(extension, trigger=(settings["evaluate_every"], "epoch"))


def _add_metrics(trainer: Trainer, run: Run, average: Any) -> None:
    settings = run.config["trainer"]
    every = (settings["evaluate_every"], "epoch")
    scalar = {n: m for n, m in run.metrics().items() if n != "confusion_matrix"}
    if scalar and not run.config["data"]["batch_transforms"]:  # mixed targets are no labels
        trainer.extend(TrainingMetrics(scalar, report=(settings["log_every"], "epoch")))
    alone = mode_of(run.config["trainer"]["parallel"]) == "async" and not is_first(run.config)
    if "val" in run.data.splits and not alone:  # workers do not wait for one that evaluates
        metrics = build_metrics(run.source, run.config)
        trainer.extend(Evaluator(run.loader("val"), metrics, average=average), trigger=every)


def _add_schedule(trainer: Trainer, run: Run) -> None:
    trainer.extend(LearningRate())
    made = build_schedule(
        run.source, run.config, trainer.updater.optimizer, trainer.updater.feed.length
    )
    if made is None:
        return
    schedule, trigger = made
    if schedule.metric is not None:
        _observed(run, schedule.metric, ("schedule", "metric"))
        trigger = (run.config["trainer"]["evaluate_every"], "epoch")
    trainer.extend(schedule, trigger=trigger)


def _add_displays(trainer: Trainer, run: Run) -> list[str]:
    settings = run.config["trainer"]
    every = (settings["log_every"], "epoch")
    notes: list[str] = []
    shown = ["train/loss", *(["val/loss"] if "val" in run.data.splits else [])]
    trainer.extend(Log(), trigger=every)
    if settings["progress"] is True or sys.stdout.isatty():
        _optional(trainer, settings, "progress", lambda: ProgressBar(shown), notes)
    _optional(trainer, settings, "plot", PlotCurves, notes, every)
    if any(metric["type"] == "confusion_matrix" for metric in run.config["metrics"]):
        names = run.data.facts.get("classes")
        _optional(trainer, settings, "plot", partial(PlotConfusion, class_names=names), notes)
    histograms = (settings["histograms"], "epoch") if "histograms" in settings else None
    _optional(trainer, settings, "tensorboard", partial(TensorBoard, histograms=histograms), notes)
    if settings["profile"]:
        trainer.extend(Profiler())
    if "samples" in settings:
        samples = settings["samples"]
        made_samples = Samples(run.model, samples["count"], run.data.facts, run.source)
        trainer.extend(made_samples, trigger=(samples["every"], "epoch"))
    return notes


def _optional(
    trainer: Trainer,
    settings: Mapping[str, Any],
    key: str,
    make: Any,
    notes: list[str],
    trigger: Any = None,
) -> None:
    """Add an extension that needs a package; for "auto", note it if the package is missing."""
    if settings[key] is False:
        return
    try:
        extension = make()
    except ImportError as error:
        if settings[key] is True:
            raise
        notes.append(f"no {key}: {_PACKAGES[key]} is not installed ({error!s:.60})")
        return
    trainer.extend(extension, trigger=trigger)


def _add_saver(trainer: Trainer, run: Run) -> None:
    settings = run.config["trainer"]["checkpoint"]
    keys = ("trainer", "checkpoint", "metric")
    metric, keep_best = settings.get("metric"), settings["keep_best"]
    if metric is not None:
        _observed(run, metric, keys)
    elif "val" in run.data.splits:
        metric = "val/loss"
    else:
        keep_best = 0
    extension = Checkpoint(
        CHECKPOINTS,
        keep_last=settings["keep_last"],
        keep_best=keep_best,
        metric=metric,
        mode=settings.get("mode") or direction(metric or "loss"),
    )
    trainer.extend(extension, trigger=(settings["every"], settings["unit"]))


def direction(metric: str) -> Any:
    """Return which way a metric improves: "min" for errors, "max" for scores.

    >>> direction("val/loss"), direction("val/accuracy")
    ('min', 'max')
    """
    name = metric.rpartition("/")[2]
    return "max" if improves_upwards(name, otherwise=name not in _FALLING) else "min"


def _observed(run: Run, metric: str, keys: Any) -> str:
    """Return the name of a value that the run will observe; refuse one that it will not."""
    names = [f"val/{name}" for name in ("loss", *run.metrics())] if "val" in run.data.splits else []
    names += [f"train/{name}" for name in ("loss", *run.metrics())]
    group, _, name = metric.partition("/")
    if metric not in names and not (name in {"kl", "reconstruction"} and group in {"train", "val"}):
        raise ConfigError(
            f"{run.source.where(keys)}: nothing observes {metric!r}; {hint(metric, names)}"
        )
    return metric
