"""Metrics by Keras's names, over those of weft.train; classes along the last axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from ..train import metrics as plain
from ..train.metrics import FunctionMetric, Metric, get_metric
from ..train.registry import hint
from . import losses
from .naming import snake_case


class FaceMetric(Metric):
    """A metric of weft.train's under Keras's name and calling order, y_true first."""

    def __init__(self, core: Metric, name: str) -> None:
        self.core, self.name = core, name

    def reset(self) -> None:
        """Forget all batches."""
        self.core.reset()

    reset_state = reset_states = reset

    def update(self, output: Any, target: Any) -> None:
        """Take in a batch."""
        self.core.update(*_classes_first(np.asarray(output), np.asarray(target)))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take in a batch."""
        if sample_weight is not None:
            raise ArgumentError(f"{self.name}: sample_weight is not served by metrics")
        self.update(y_pred, y_true)

    def compute(self) -> Any:
        """Return the value over all batches."""
        return self.core.compute()

    result = compute

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        """Take in a batch, and return the value over all of them."""
        self.update(y_pred, y_true)
        return self.compute()

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        return self.core.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state."""
        self.core.load_state_dict(state)


def _classes_first(scores: Any, truth: Any) -> tuple[Any, Any]:
    """Return scores and labels as metrics of weft.train take them: classes at axis 1."""
    if truth.ndim == scores.ndim and truth.shape[-1] == 1 < scores.shape[-1]:
        truth = truth[..., 0]
    if scores.ndim > 2 and scores.shape[-1] > 1:
        if truth.shape == scores.shape:
            truth = np.moveaxis(truth, -1, 1)
        scores = np.moveaxis(scores, -1, 1)
    elif scores.ndim == truth.ndim + 1 and scores.shape[-1] == 1:
        scores = scores[..., 0]
    return scores, truth


# Keras's class, what it is, and the options that differ; names are those of the classes.
_TABLE: dict[str, tuple[Any, dict[str, Any]]] = {
    "Accuracy": (plain.Accuracy, {}),
    "BinaryAccuracy": (plain.Accuracy, {}),
    "CategoricalAccuracy": (plain.Accuracy, {}),
    "SparseCategoricalAccuracy": (plain.Accuracy, {}),
    "TopKCategoricalAccuracy": (plain.TopKAccuracy, {}),
    "SparseTopKCategoricalAccuracy": (plain.TopKAccuracy, {}),
    "Precision": (plain.Precision, {"average": "binary"}),
    "Recall": (plain.Recall, {"average": "binary"}),
    "AUC": (plain.AUC, {}),
    "MeanSquaredError": (plain.MSE, {}),
    "RootMeanSquaredError": (plain.RMSE, {}),
    "MeanAbsoluteError": (plain.MAE, {}),
}


def _class(name: str, make: Any, options: dict[str, Any]) -> type[FaceMetric]:
    named = "auc" if name == "AUC" else snake_case(name)

    def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: N807  (of the class below)
        shown = given.pop("name", None) or named
        given.pop("dtype", None)
        FaceMetric.__init__(self, make(*args, **{**options, **given}), shown)

    return type(name, (FaceMetric,), {"__init__": __init__, "__module__": __name__})


CLASSES: dict[str, type[FaceMetric]] = {n: _class(n, *row) for n, row in _TABLE.items()}
globals().update(CLASSES)

_SHORT = {
    "accuracy": "Accuracy",
    "acc": "Accuracy",
    "mse": "MeanSquaredError",
    "MSE": "MeanSquaredError",
    "mae": "MeanAbsoluteError",
    "MAE": "MeanAbsoluteError",
    "rmse": "RootMeanSquaredError",
    "auc": "AUC",
}


def get(identifier: Any) -> Metric:
    """Return a metric from its name, an object, or a function of (y_true, y_pred)."""
    if isinstance(identifier, str):
        return _by_name(identifier)
    if isinstance(identifier, Metric):
        return identifier
    if isinstance(identifier, type) and issubclass(identifier, Metric):
        return identifier()
    if callable(identifier):
        return _of_function(identifier)
    return get_metric(identifier)


def _by_name(name: str) -> Metric:
    by_name = {snake_case(n): n for n in CLASSES}
    kind = _SHORT.get(name) or by_name.get(name) or (name if name in CLASSES else None)
    if kind is not None:
        return CLASSES[kind](name=name)  # type: ignore[call-arg]  # of the classes made above
    if name in losses.LOSSES:
        return _of_function(losses.LOSSES[name])
    known = hint(name, [*_SHORT, *by_name, *losses.LOSSES])
    raise ArgumentError(f"there is no metric {name!r}; {known}")


def _of_function(function: Any) -> Metric:
    def of_output(output: Any, target: Any) -> Any:
        return function(target, output)

    name = getattr(function, "name", None) or getattr(function, "__name__", "metric")
    return FunctionMetric(of_output, name)


def get_all(metrics: Any, loss: Any = None) -> Any:
    """Return what `compile` was given with every metric as an object."""
    if metrics is None:
        return None
    if isinstance(metrics, Mapping):
        return {name: get_all(each) for name, each in metrics.items()}
    if isinstance(metrics, list | tuple):
        return [get_all(each) for each in metrics]
    return get(metrics)


def serialize(metrics: Any) -> Any:
    """Return metrics as JSON can hold them: by name."""
    if metrics is None or isinstance(metrics, str):
        return metrics
    if isinstance(metrics, Mapping):
        return {name: serialize(each) for name, each in metrics.items()}
    if isinstance(metrics, list | tuple):
        return [serialize(each) for each in metrics]
    return str(getattr(metrics, "name", None) or getattr(metrics, "__name__", metrics))
