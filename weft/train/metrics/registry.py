"""Metrics by name, for Keras-style calls and configuration files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core.errors import ArgumentTypeError
from ..checks import free_name
from ..registry import Registry
from .classification import F1, Accuracy, ConfusionMatrix, Precision, Recall, TopKAccuracy
from .language import Perplexity
from .metric import FunctionMetric, Metric
from .ranking import AUC
from .regression import MAE, MSE, R2, RMSE

METRICS = Registry("metric")
for _names, _make in (
    (("accuracy", "acc"), Accuracy),
    ("top_k_accuracy", TopKAccuracy),
    ("precision", Precision),
    ("recall", Recall),
    ("f1", F1),
    ("auc", AUC),
    ("confusion_matrix", ConfusionMatrix),
    ("perplexity", Perplexity),
    (("mse", "mean_squared_error"), MSE),
    ("rmse", RMSE),
    (("mae", "mean_absolute_error"), MAE),
    ("r2", R2),
):
    METRICS.add(_names, _make)


def get_metric(metric: Any, **options: Any) -> Metric:
    """Return a metric from its name, an instance, or a function of output and target.

    >>> get_metric("top_k_accuracy", k=3).name
    'top_3_accuracy'
    """
    if isinstance(metric, str):
        made: Metric = METRICS[metric](**options)
        return made
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, type) and issubclass(metric, Metric):
        return metric(**options)
    if callable(metric):
        return FunctionMetric(metric)
    raise ArgumentTypeError(
        f"a metric is a name, a Metric or a function of output and target. Received: {metric!r:.60}"
    )


def improves_upwards(name: str, *, otherwise: bool) -> bool:
    """Tell whether a value is better the larger it is, by the metric that its name has in it.

    >>> improves_upwards("val_accuracy_1", otherwise=False), improves_upwards("mse", otherwise=True)
    (True, False)
    """
    if name in METRICS:
        return bool(getattr(METRICS[name].make, "larger_is_better", otherwise))
    known = (n for n in METRICS if getattr(METRICS[n].make, "larger_is_better", False))
    return otherwise or any(part in name for part in known)


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
        named[free_name(name, named)] = metric
    return named
