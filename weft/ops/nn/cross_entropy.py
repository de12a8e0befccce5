"""Cross entropy and negative log likelihood.

Shapes: input (C,), (N, C) or (N, C, d1, ...); class indices have the shape of input without C,
class probabilities the shape of input. A mean over class indices is weighted by the class weights
of the targets and leaves ignored positions out; if all are ignored it is NaN, the mean of nothing.
"""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ...core.errors import ShapeError
from ...core.op import F, composite
from ...core.shape import as_int
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import in_dtype
from ..reduce.softmax import log_softmax
from ._arguments import (
    along_channels,
    check_floats,
    check_integers,
    check_ndim,
    check_probability,
    check_reduction,
    check_vector,
    constant,
    of_shape,
    operands,
    reduce_loss,
    same_dims,
    weighted,
)
from .classes import picked

LAYOUT = "(C,), (N, C) or (N, C, d1, ...)"
INDEX_HINT = "class indices, one per position"


@composite(fused=True)
@rounded_once
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy between logits and targets (class indices or probabilities).

    weight           a factor for each class
    ignore_index     a target that counts for nothing (class indices only)
    label_smoothing  mixes each target with the uniform distribution over classes

    >>> import weft as wf
    >>> logits = wf.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
    >>> wf.nn.functional.cross_entropy(logits, wf.tensor([0, 2]))
    tensor(0.1264...)
    """
    fn = "cross_entropy"
    input, target, weight = operands(fn, input=input, target=target, weight=weight)
    axis = _checked_class_axis(fn, input, weight, reduction)
    smoothing = check_probability(fn, label_smoothing, "label_smoothing")
    if not dt.is_integer(target.dtype) and dt.is_float(target.dtype):
        target = _checked_probabilities(fn, input, target)
        return _soft_cross_entropy(input, target, weight, smoothing, reduction)
    target = _class_indices(fn, input, target, axis)
    if smoothing:
        log_probs = log_softmax(input, axis)
        return _smoothed(log_probs, target, weight, ignore_index, smoothing, reduction)
    kept = _kept(fn, target, ignore_index)
    spread = F.where(kept, F.logsumexp(input, axis=axis), constant(0, input.dtype))
    loss = spread - picked(fn, input, target, axis, ignore_index)
    return _reduce_rows(loss, kept, _row_weights(input, target, weight, ignore_index), reduction)


@composite()
@rounded_once
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log-probability that `input` gives to each target class."""
    input, target, weight = operands("nll_loss", input=input, target=target, weight=weight)
    axis = _checked_class_axis("nll_loss", input, weight, reduction)
    target = _class_indices("nll_loss", input, target, axis)
    loss = -picked("nll_loss", input, target, axis, ignore_index)
    kept = _kept("nll_loss", target, ignore_index)
    return _reduce_rows(loss, kept, _row_weights(input, target, weight, ignore_index), reduction)


# -- the parts --------------------------------------------------------------------------------


def _smoothed(
    log_probs: Any, target: Any, weight: Any, ignore_index: int, smoothing: float, reduction: str
) -> Tensor:
    """Mix the loss of the target class with that of all classes (Szegedy et al. 2016, section 7).

    Class weights enter the second term as weights of the classes, not of the targets.
    """
    axis, kept = _class_axis(log_probs), _kept("cross_entropy", target, ignore_index)
    row_weights = _row_weights(log_probs, target, weight, ignore_index)
    hard = -picked("cross_entropy", log_probs, target, axis, ignore_index)
    hard = weighted(hard, row_weights)
    every = weighted(log_probs, along_channels(weight, log_probs))
    even = F.where(kept, F.sum(every, axis=axis) * (-1.0 / log_probs.shape[axis]), 0.0)
    return _divide_rows(hard * (1 - smoothing) + even * smoothing, kept, row_weights, reduction)


def _soft_cross_entropy(
    input: Any, target: Any, weight: Any, smoothing: float, reduction: str
) -> Tensor:
    axis = _class_axis(input)
    if smoothing:
        target = target * (1 - smoothing) + smoothing / input.shape[axis]
    terms = weighted(target * log_softmax(input, axis), along_channels(weight, input))
    return reduce_loss("cross_entropy", -F.sum(terms, axis=axis), reduction)


def _reduce_rows(loss: Any, kept: Any, row_weights: Any, reduction: str) -> Tensor:
    return _divide_rows(weighted(loss, row_weights), kept, row_weights, reduction)


def _divide_rows(loss: Any, kept: Any, row_weights: Any, reduction: str) -> Tensor:
    """Reduce weighted rows; a mean divides by the sum of their weights."""
    if reduction == "none":
        return loss
    total: Tensor = F.sum(loss)
    if reduction == "sum":
        return total
    count = F.sum(kept, dtype=loss.dtype) if row_weights is None else F.sum(row_weights)
    return total / count


def _kept(fn: str, target: Any, ignore_index: Any) -> Any:
    """Return which positions count."""
    return F.not_equal(target, constant(as_int(ignore_index, f"{fn}: ignore_index"), dt.int64))


def _row_weights(input: Any, target: Any, weight: Any, ignore_index: int) -> Any:
    """Return the class weight of each target, 0 where it is ignored, or None without weights."""
    if weight is None:
        return None
    spread = F.broadcast_to(along_channels(weight, input), input.shape)
    return F.pick_class(spread, target, _class_axis(input), ignore_index)


# -- checks -----------------------------------------------------------------------------------


def _class_axis(input: Any) -> int:
    return 0 if input.ndim == 1 else 1


def _checked_class_axis(fn: str, input: Any, weight: Any, reduction: str) -> int:
    check_reduction(fn, reduction)
    check_ndim(fn, "input", input, 1, LAYOUT)
    check_floats(fn, "input", input)
    axis = _class_axis(input)
    check_vector(fn, "weight", weight, input.shape[axis], "classes")
    return axis


def _class_indices(fn: str, input: Any, target: Any, axis: int) -> Any:
    """Return class indices as int64, which holds every class and every ignore_index."""
    check_integers(fn, "target", target, INDEX_HINT)
    expected = input.shape[:axis] + input.shape[axis + 1 :]
    if not same_dims(tuple(target.shape), tuple(expected)):
        raise ShapeError(
            f"{fn}: class indices for input of shape {input.shape} must have shape "
            f"{expected}. Received: {target.shape}{_index_hint(input, target)}"
        )
    return in_dtype(of_shape(target, expected), dt.int64)


def _index_hint(input: Any, target: Any) -> str:
    if tuple(target.shape) == tuple(input.shape):
        return "; cast one-hot targets to the input's dtype to use them as probabilities"
    return ""


def _checked_probabilities(fn: str, input: Any, target: Any) -> Any:
    if not same_dims(tuple(target.shape), tuple(input.shape)):
        raise ShapeError(
            f"{fn}: floating-point targets are class probabilities and must have the shape of "
            f"input, {input.shape}. Received: {target.shape}; cast class indices with "
            "target.to(wf.int64)"
        )
    return of_shape(target, input.shape)
