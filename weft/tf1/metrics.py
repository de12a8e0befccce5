"""`tf.metrics`: figures over many runs, kept in local variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.op import F
from .filling import zeros
from .graph import get_default_graph
from .keys import GraphKeys
from .math_ops import cast
from .recording import Tensor, constant, convert_to_tensor, pair, record
from .variable import Variable, change

__all__ = [
    "accuracy",
    "auc",
    "false_negatives",
    "false_positives",
    "mean",
    "mean_absolute_error",
    "mean_per_class_accuracy",
    "mean_squared_error",
    "precision",
    "recall",
    "root_mean_squared_error",
    "true_negatives",
    "true_positives",
]

Metric = tuple[Tensor, Tensor]


def _local(name: str, shape: Sequence[int] = ()) -> Variable:
    keys = [GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES]
    return Variable(zeros(list(shape), "float32"), trainable=False, collections=keys, name=name)


def _kept(
    name: str,
    sums: Sequence[Any],
    compute: Callable[..., Any],
    collections: Any,
    updates_collections: Any,
) -> Metric:
    """Return a figure of running sums, and the operation that adds to them and returns it."""
    graph = get_default_graph()
    with graph.name_scope(name):
        totals = [
            _local(f"total_{i}", [s for s in t.shape.as_list() if s is not None])
            for i, t in enumerate(sums)
        ]
        value: Tensor = record("Value", compute, totals, name="value")
        added = [
            change(v, "AssignAdd", lambda env, v, x: env.read(v) + x, [s], None)
            for v, s in zip(totals, sums, strict=True)
        ]
        update: Tensor = record("Update", compute, added, name="update_op")
    for keys, item in ((collections, value), (updates_collections, update)):
        if keys:
            graph.add_to_collections(keys, item)
    return value, update


def _ratio(total: Any, count: Any) -> Any:
    empty = count == 0
    return F.where(empty, F.zeros_like(total), total / F.where(empty, F.ones_like(count), count))


def _weighted(values: Tensor, weights: Any) -> list[Tensor]:
    scale = convert_to_tensor(1.0 if weights is None else weights)

    def total(x: Any, w: Any) -> Any:
        return F.sum(x * _spread(w, x))

    def count(x: Any, w: Any) -> Any:
        return F.sum(_spread(w, x))

    inputs = [cast(values, "float32"), cast(scale, "float32")]
    return [record("Sum", total, inputs), record("Sum", count, inputs)]


def _spread(w: Any, x: Any) -> Any:
    while w.ndim and w.ndim < x.ndim:
        w = F.expand_dims(w, -1)
    return F.broadcast_to(w, x.shape)


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the mean of all values so far."""
    sums = _weighted(convert_to_tensor(values), weights)
    return _kept(name or "mean", sums, _ratio, metrics_collections, updates_collections)


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return how often predictions were the labels."""
    y, p = convert_to_tensor(labels), convert_to_tensor(predictions)
    p = cast(p, y.dtype) if p.dtype != y.dtype else p
    hits = record(
        "Equal", lambda y, p: F.cast(F.reshape(y, p.shape) == p, "float32"), [y, p], dtype="float32"
    )
    return mean(hits, weights, metrics_collections, updates_collections, name or "accuracy")


def _error(public: str, compute: Callable[[Any, Any], Any]) -> Callable[..., Metric]:
    def called(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        errors = record(public, compute, pair(public, labels, predictions))
        return mean(errors, weights, metrics_collections, updates_collections, name or public)

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return the {public} so far."
    return called


mean_squared_error = _error("mean_squared_error", lambda x, y: F.square(x - y))
mean_absolute_error = _error("mean_absolute_error", lambda x, y: F.abs(x - y))


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the root of the mean squared error so far."""
    errors = record("SquaredError", lambda x, y: F.square(x - y), pair("rmse", labels, predictions))
    sums = _weighted(errors, weights)
    return _kept(
        name or "root_mean_squared_error",
        sums,
        lambda t, n: F.sqrt(_ratio(t, n)),
        metrics_collections,
        updates_collections,
    )


def _counted(
    labels: Any, predictions: Any, weights: Any, positive: bool, predicted: bool
) -> Tensor:
    scale = convert_to_tensor(1.0 if weights is None else weights)

    def compute(y: Any, p: Any, w: Any) -> Any:
        hit = (y == positive) & (p == predicted)
        return F.sum(F.cast(hit, "float32") * _spread(F.cast(w, "float32"), y))

    made: Tensor = record(
        "Count", compute, [cast(labels, "bool"), cast(predictions, "bool"), scale], dtype="float32"
    )
    return made


def _count(public: str, positive: bool, predicted: bool) -> Callable[..., Metric]:
    def called(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        sums = [_counted(labels, predictions, weights, positive, predicted)]
        return _kept(
            name or public, sums, lambda t: t + 0, metrics_collections, updates_collections
        )

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return the number of {public} so far."
    return called


true_positives = _count("true_positives", True, True)
true_negatives = _count("true_negatives", False, False)
false_positives = _count("false_positives", False, True)
false_negatives = _count("false_negatives", True, False)


def _rate(public: str, other: tuple[bool, bool]) -> Callable[..., Metric]:
    def called(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        sums = [
            _counted(labels, predictions, weights, True, True),
            _counted(labels, predictions, weights, *other),
        ]
        return _kept(
            name or public,
            sums,
            lambda t, f: _ratio(t, t + f),
            metrics_collections,
            updates_collections,
        )

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return the {public} so far."
    return called


precision, recall = _rate("precision", (False, True)), _rate("recall", (True, False))


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
) -> Metric:
    """Return the area under the ROC curve so far, by thresholds between 0 and 1."""
    if curve != "ROC" or weights is not None:
        raise ValueError("auc: curve must be 'ROC', without weights")
    inner = [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]
    limits = constant([-1e-7, *inner, 1 + 1e-7])

    def counts(positive: bool) -> Tensor:
        def compute(y: Any, p: Any, t: Any) -> Any:
            above = F.reshape(p, (1, -1)) > F.expand_dims(t, -1)
            return F.sum(F.cast(above & (F.reshape(y, (1, -1)) == positive), "float32"), axis=1)

        made: Tensor = record(
            "Counts",
            compute,
            [cast(labels, "bool"), cast(predictions, "float32"), limits],
            dtype="float32",
        )
        return made

    def area(tp: Any, fp: Any) -> Any:
        rise, run = (tp + 1e-6) / (tp[0] + 1e-6), fp / (fp[0] + 1e-6)
        return F.sum((run[:-1] - run[1:]) * (rise[:-1] + rise[1:]) / 2)

    return _kept(
        name or "auc", [counts(True), counts(False)], area, metrics_collections, updates_collections
    )


def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the mean over classes of how often their examples were told so far."""

    def compute(hit: bool) -> Any:
        def run(y: Any, p: Any) -> Any:
            rows = F.cast(F.one_hot(F.reshape(F.cast(y, "int64"), (-1,)), num_classes), "float32")
            told = F.cast(F.reshape(y, (-1, 1)) == F.reshape(p, (-1, 1)), "float32")
            return F.sum(rows * told if hit else rows, axis=0)

        return run

    inputs = pair("per_class", cast(labels, "int64"), cast(predictions, "int64"))
    sums = [record("PerClass", compute(hit), inputs, dtype="float32") for hit in (True, False)]
    return _kept(
        name or "mean_accuracy",
        sums,
        lambda t, n: F.mean(_ratio(t, n)),
        metrics_collections,
        updates_collections,
    )
