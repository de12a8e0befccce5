"""Metrics by name, for Keras-style calls and configuration files."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...core.errors import ArgumentError, ArgumentTypeError
from .classification import F1, Accuracy, ConfusionMatrix, Precision, Recall, TopKAccuracy
from .language import Perplexity
from .metric import FunctionMetric, Metric
from .ranking import AUC
from .regression import MAE, MSE, R2, RMSE

METRICS: dict[str, Callable[..., Metric]] = {
    "accuracy": Accuracy,
    "acc": Accuracy,
    "top_k_accuracy": TopKAccuracy,
    "precision": Precision,
    "recall": Recall,
    "f1": F1,
    "auc": AUC,
    "confusion_matrix": ConfusionMatrix,
    "perplexity": Perplexity,
    "mse": MSE,
    "mean_squared_error": MSE,
    "rmse": RMSE,
    "mae": MAE,
    "mean_absolute_error": MAE,
    "r2": R2,
}


def get_metric(metric: Any, **options: Any) -> Metric:
    """Return a metric from its name, an instance, or a function of output and target.

    >>> get_metric("top_k_accuracy", k=3).name
    'top_3_accuracy'
    """
    if isinstance(metric, str):
        if metric not in METRICS:
            near = difflib.get_close_matches(metric, METRICS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(METRICS)}"
            raise ArgumentError(f"there is no metric {metric!r}; {hint}")
        return METRICS[metric](**options)
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, type) and issubclass(metric, Metric):
        return metric(**options)
    if callable(metric):
        return FunctionMetric(metric)
    raise ArgumentTypeError(
        f"a metric is a name, a Metric or a function of output and target. Received: {metric!r:.60}"
    )


def named_metrics(metrics: Any) -> dict[str, Metric]:
    """Return metrics by name, from a dictionary, a list or a single one."""
    if metrics is None:
        return {}
    if isinstance(metrics, Mapping):
        return {str(name): get_metric(metric) for name, metric in metrics.items()}
    single = isinstance(metrics, str | Metric) or not isinstance(metrics, Iterable)
    named: dict[str, Metric] = {}
    for given in [metrics] if single else metrics:
        metric = get_metric(given)
        name = given if given == "acc" and isinstance(given, str) else metric.name
        named[_free_name(name, named)] = metric
    return named


def _free_name(name: str, taken: Iterable[str]) -> str:
    number, free = 1, name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free
