"""`tf.losses`: losses that are collected, with weights and reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.op import F
from .graph import get_default_graph
from .keys import GraphKeys
from .math_ops import add_n, cast
from .nn import losses as nn
from .recording import Tensor, constant, convert_to_tensor, pair, record

__all__ = [
    "Reduction",
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


class Reduction:
    """How losses of examples become one."""

    NONE = "none"
    SUM = "weighted_sum"
    MEAN = "weighted_mean"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"


def add_loss(loss: Any, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Collect a loss."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Return losses times weights, reduced, and collect it."""
    values = convert_to_tensor(losses)
    scale = cast(convert_to_tensor(weights), values.dtype)

    def compute(x: Any, w: Any) -> Any:
        while w.ndim and w.ndim < x.ndim:
            w = F.expand_dims(w, -1)
        whole = F.broadcast_to(w, x.shape)
        total = F.sum(x * whole)
        if reduction == Reduction.NONE:
            return x * whole
        if reduction == Reduction.SUM:
            return total
        if reduction == Reduction.SUM_OVER_BATCH_SIZE:
            return total / x.numel()
        count = F.sum(whole) if reduction == Reduction.MEAN else F.sum(F.cast(whole != 0, x.dtype))
        return F.where(
            count == 0, F.zeros_like(total), total / F.where(count == 0, F.ones_like(count), count)
        )

    made: Tensor = record("WeightedLoss", compute, [values, scale], name=scope or "value")
    add_loss(made, loss_collection)
    return made


def _elementwise(public: str, compute: Callable[..., Any], first: str = "labels") -> Any:
    def called(
        labels: Any,
        predictions: Any,
        weights: Any = 1.0,
        scope: str | None = None,
        loss_collection: Any = GraphKeys.LOSSES,
        reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
        **settings: Any,
    ) -> Tensor:
        if labels is None or predictions is None:
            raise ValueError(f"labels and predictions must not be None for {public}.")
        x = cast(convert_to_tensor(predictions), "float32")
        y = cast(convert_to_tensor(labels), "float32")
        x.shape.assert_is_compatible_with(y.shape)
        losses = record(public, lambda x, y: compute(x, y, **settings), pair(public, x, y))
        return compute_weighted_loss(losses, weights, scope or public, loss_collection, reduction)

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return the {public} of predictions, weighted and reduced."
    return called


def _huber(x: Any, y: Any, delta: float = 1.0) -> Any:
    error = F.abs(x - y)
    near = F.minimum(error, delta)
    return 0.5 * near * near + delta * (error - near)


def _log(x: Any, y: Any, epsilon: float = 1e-7) -> Any:
    return -y * F.log(x + epsilon) - (1 - y) * F.log(1 - x + epsilon)


mean_squared_error = _elementwise("mean_squared_error", lambda x, y: F.square(x - y))
absolute_difference = _elementwise("absolute_difference", lambda x, y: F.abs(x - y))
huber_loss = _elementwise("huber_loss", _huber)
log_loss = _elementwise("log_loss", _log)


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Return the hinge loss; labels are 0 and 1."""
    losses = record(
        "HingeLoss",
        lambda x, y: F.relu(1 - (2 * y - 1) * x),
        [cast(logits, "float32"), cast(labels, "float32")],
    )
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: Any = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    dim: Any = None,
) -> Tensor:
    """Return one minus the sum of products along an axis; both are of length one already."""
    place = dim if axis is None else axis
    if place is None:
        raise ValueError("You must specify 'axis'.")
    losses = record(
        "CosineDistance",
        lambda x, y: 1 - F.sum(x * y, axis=place, keepdims=True),
        pair("cosine", predictions, labels),
    )
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Return the cross entropy of probabilities, weighted and reduced."""
    x = convert_to_tensor(logits)
    labels = cast(onehot_labels, x.dtype)
    x.shape.assert_is_compatible_with(labels.shape)
    if label_smoothing > 0:
        labels = record(
            "Smooth", lambda y: y * (1 - label_smoothing) + label_smoothing / y.shape[-1], [labels]
        )
    losses = nn.softmax_cross_entropy_with_logits(labels=labels, logits=x)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Return the cross entropy of classes, weighted and reduced."""
    index, x = convert_to_tensor(labels), convert_to_tensor(logits)
    if index.shape.ndims is not None and index.shape.ndims == x.shape.ndims:  # a last axis of one
        index = record("Squeeze", lambda i: F.squeeze(i, -1), [index])
    losses = nn.sparse_softmax_cross_entropy_with_logits(labels=index, logits=x)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Tensor:
    """Return the cross entropy of each class, weighted and reduced."""
    x = convert_to_tensor(logits)
    labels = cast(multi_class_labels, x.dtype)
    if label_smoothing > 0:
        labels = convert_to_tensor(labels * (1 - label_smoothing) + 0.5 * label_smoothing)
    losses = nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=x)
    return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


# -- what is collected -----------------------------------------------------------------------------


def get_losses(scope: str | None = None, loss_collection: Any = GraphKeys.LOSSES) -> list[Any]:
    """Return the losses that were collected."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """Return the penalties of variables."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str = "total_regularization_loss"
) -> Tensor:
    """Return the sum of the penalties of variables."""
    found = get_regularization_losses(scope)
    return add_n(found, name) if found else constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """Return the sum of all losses."""
    found = get_losses(scope)
    found += get_regularization_losses(scope) if add_regularization_losses else []
    if not found:
        raise ValueError("No losses were collected")
    return add_n(found, name)
