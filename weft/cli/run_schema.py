"""The schema of a run: every key that a configuration may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.device import check_device
from ..core.errors import WeftError
from ..train.datasets import DATASETS
from ..train.losses import LOSSES
from ..train.metrics import METRICS
from ..train.names import BATCH_TRANSFORMS, SCHEDULES, TRANSFORMS
from ..train.optimizers import OPTIMIZERS
from .config import ConfigSource
from .model_schema import check_model
from .schema import (
    REQUIRED,
    Field,
    ValuePlace,
    checked_fields,
    choice,
    either,
    flag,
    integer,
    is_table,
    known_keys,
    listing,
    number,
    table,
    text,
    typed,
)

PRECISIONS = ("float32", "float64", "float16", "bfloat16")
UNITS = ("epoch", "iteration")
SPLITS = ("train", "val", "test")
# Lengths of schedules that the run knows, see schedules.py.
RUN_LENGTHS = frozenset({"T_max", "max_iter", "total_iters", "total_steps"})

_AUTO = choice(True, False, "auto")
_DATASET = typed(DATASETS)

DATA = {
    "source": Field(_DATASET),
    "split": Field(listing(number(0.0, 1.0), least=1)),
    "split_seed": Field(integer(), 0),
    "split_in_order": Field(flag, default=False),
    "train": Field(_DATASET),
    "val": Field(_DATASET),
    "test": Field(_DATASET),
    "transforms": Field(listing(typed(TRANSFORMS)), []),
    "eval_transforms": Field(listing(typed(TRANSFORMS))),
    "batch_transforms": Field(
        listing(typed(BATCH_TRANSFORMS, inferred=lambda name: name == "num_classes")), []
    ),
    "standardize": Field(flag, default=False),
    "statistics": Field(
        table(
            {
                "mean": Field(listing(number()), REQUIRED),
                "std": Field(listing(number(above=0)), REQUIRED),
            }
        )
    ),
    "batch_size": Field(integer(1), 32),
    "eval_batch_size": Field(integer(1)),
    "workers": Field(integer(), 0),
    "shuffle": Field(flag, default=True),
    "drop_last": Field(flag, default=False),
    "target": Field(choice("last", "input", "none"), "last"),
}


def _check_group(place: ValuePlace, value: Any) -> Any:
    """Check a parameter group: patterns of names, with the optimizer's hyperparameters."""
    if not is_table(place, value):
        return value
    optimizer = place.source.get(("optimizer", "type"))
    options = OPTIMIZERS[optimizer].options if optimizer in OPTIMIZERS else {}
    known_keys(place, value, ["match", "lr_mult", "decay_mult", *options])
    fields = {
        "match": Field(text, REQUIRED),
        "lr_mult": Field(number(0.0)),
        "decay_mult": Field(number(0.0)),
    }
    for name, option in options.items():
        problem = option.problem(value[name]) if name in value else None
        if problem is not None:
            place.at(name).problem(problem)
    given = {name: value[name] for name in options if name in value}
    return {**checked_fields(place, value, fields), **given}


OPTIMIZER = {
    "groups": Field(listing(_check_group)),
}

# A schedule that takes over `after` so many steps.
_STAGE = typed(SCHEDULES, {"after": Field(integer(1), REQUIRED)}, inferred=RUN_LENGTHS.__contains__)

SCHEDULE = {
    "unit": Field(choice(*UNITS), "epoch"),
    "metric": Field(text),
    "warmup": Field(integer(1)),
    "warmup_factor": Field(number(0.0, 1.0), 0.1),
    "then": Field(listing(_STAGE)),
}

CHECKPOINT = {
    "every": Field(number(above=0), 1),
    "unit": Field(choice(*UNITS), "epoch"),
    "keep_last": Field(integer(1), 3),
    "keep_best": Field(integer(), 1),
    "metric": Field(text),
    "mode": Field(choice("min", "max")),
}

EARLY_STOPPING = {
    "metric": Field(text, "val/loss"),
    "patience": Field(integer(1), 5),
    "mode": Field(choice("min", "max")),
    "min_delta": Field(number(0.0), 0.0),
    "start_from": Field(number(0.0), 0),
    "restore_best": Field(flag, default=False),
}

# How processes train together; see wf.distributed.parallel.
PARALLEL = {
    "mode": Field(choice("sync", "async", "local")),
    "zero": Field(choice(0, 1, 2, 3)),
    "shards": Field(integer(1)),
    "compression": Field(choice("bfloat16", "topk")),
    "sync_batch_norm": Field(flag),
    "unused": Field(flag),
    "bucket_mib": Field(number(above=0)),
    "first_bucket_mib": Field(number(above=0)),
    "staleness": Field(integer()),
    "servers": Field(integer(1)),
    "every": Field(integer(1)),
    "slots": Field(flag),
}
_OF_MODES = {"async": {"staleness", "servers"}, "local": {"every", "slots"}}


def _check_parallel(place: ValuePlace, value: Any) -> Any:
    """Check options of processes that train together: each mode has its own."""
    resolved = table(PARALLEL)(place, value)
    if isinstance(value, dict):
        mode = value.get("mode", "sync")
        others = set().union(*(names for name, names in _OF_MODES.items() if name != mode))
        known = _OF_MODES.get(mode) or PARALLEL.keys() - others
        for name in value.keys() & PARALLEL.keys() - known - {"mode"}:
            place.at(name).problem(f"trainer.parallel.{name} is no option of mode = {mode!r}")
    return resolved


TRAINER = {
    "epochs": Field(number(above=0)),
    "iterations": Field(integer(1)),
    "out": Field(text),
    "accumulate": Field(integer(1), 1),
    "clip_norm": Field(number(above=0)),
    "clip_value": Field(number(above=0)),
    "evaluate_every": Field(number(above=0), 1),
    "log_every": Field(number(above=0), 1),
    "ema": Field(number(0.0, 0.999999)),
    "nan_stop": Field(flag, default=True),
    "parallel": Field(either((dict, _check_parallel), (object, flag)), default=False),
    "test": Field(flag, default=True),
    "progress": Field(_AUTO, "auto"),
    "plot": Field(_AUTO, "auto"),
    "tensorboard": Field(_AUTO, "auto"),
    "histograms": Field(number(above=0)),
    "profile": Field(flag, default=False),
    "samples": Field(table({"every": Field(number(above=0), 1), "count": Field(integer(1), 64)})),
    "checkpoint": Field(table(CHECKPOINT), {key: f.default for key, f in CHECKPOINT.items()}),
    "early_stopping": Field(table(EARLY_STOPPING)),
}


def resolve(source: ConfigSource) -> dict[str, Any]:
    """Return a whole configuration, checked and with every default; or say all that is wrong."""
    place = ValuePlace(source)
    known_keys(place, source.data, ROOT)
    resolved = checked_fields(place, {"trainer": {}, **source.data}, ROOT)
    place.raise_problems()
    result: dict[str, Any] = _without_none(resolved)
    return result


def _check_data(place: ValuePlace, value: Any) -> Any:
    resolved = table(DATA)(place, value)
    if not isinstance(value, dict):
        return resolved
    if "source" in value and "train" in value:
        place.at("train").problem("data has both source and train; keep one of them")
    if "source" not in value and "train" not in value:
        place.problem("data needs [data.source], which is split, or [data.train]")
    if "split" in value:
        _check_split(place, value)
    elif "source" in value and isinstance(resolved, dict):
        resolved["split"] = [0.9, 0.1] if "test" in value else [0.8, 0.1, 0.1]
    if "statistics" in value and not value.get("standardize"):
        place.at("statistics").problem("data.statistics is for standardize = true")
    return resolved


def _check_split(place: ValuePlace, value: Mapping[str, Any]) -> None:
    split = value["split"]
    here = place.at("split")
    if "source" not in value:
        here.problem("data.split divides [data.source], which is missing")
    if not isinstance(split, list) or not all(isinstance(s, int | float) for s in split):
        return
    if len(split) > len(SPLITS):
        here.problem(f"data.split has up to 3 parts: train, val and test. Received: {len(split)}")
    elif abs(sum(split) - 1.0) > 1e-6:
        here.problem(f"data.split must sum to 1. Received: {split} (sum {sum(split):g})")
    for name in SPLITS[1 : len(split)]:
        if name in value:
            place.at(name).problem(f"data.{name} is given, and also a part of data.split")


def _check_schedule(place: ValuePlace, value: Any) -> Any:
    resolved = typed(SCHEDULES, SCHEDULE, inferred=RUN_LENGTHS.__contains__)(place, value)
    if isinstance(value, dict) and value.get("type") == "plateau":
        for key in ("warmup", "then"):
            if key in value:
                place.at(key).problem(f"a plateau schedule cannot be combined with {key!r}")
        resolved.setdefault("metric", "val/loss")
    elif isinstance(value, dict) and "metric" in value:
        place.at("metric").problem("schedule.metric is for type = 'plateau' only")
    return resolved


def _check_trainer(place: ValuePlace, value: Any) -> Any:
    resolved = table(TRAINER)(place, value)
    if isinstance(value, dict) and isinstance(resolved, dict):
        if "epochs" in value and "iterations" in value:
            place.at("iterations").problem("trainer has both epochs and iterations; keep one")
        if "epochs" not in value and "iterations" not in value:
            resolved["epochs"] = 10
    return resolved


def _check_device(place: ValuePlace, value: Any) -> Any:
    try:
        return str(check_device(value))
    except WeftError as error:
        place.problem(f"{place.title}: {error}")
        return value


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    return [_without_none(one) for one in value] if isinstance(value, list) else value


_METRIC = typed(METRICS)

ROOT = {
    "name": Field(text),
    "seed": Field(integer(), 0),
    "precision": Field(choice(*PRECISIONS), "float32"),
    "device": Field(_check_device, "cpu"),
    "compile": Field(_AUTO, "auto"),
    "data": Field(_check_data, REQUIRED),
    "model": Field(check_model, REQUIRED),
    "loss": Field(typed(LOSSES), REQUIRED),
    "optimizer": Field(typed(OPTIMIZERS, OPTIMIZER), REQUIRED),
    "schedule": Field(_check_schedule),
    "metrics": Field(either((str, lambda p, v: [_METRIC(p, v)]), (list, listing(_METRIC))), []),
    "trainer": Field(_check_trainer, None),
}
