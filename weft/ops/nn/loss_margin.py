"""Losses that ask for a margin: between scores, classes or distances.

They are zero beyond the margin; at the margin itself the gradient is that of zero.
"""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError, IndexOutOfRange, ShapeError
from ...core.op import F, composite
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import concrete
from ._arguments import (
    check_integers,
    check_ndim,
    check_number,
    check_same_shape,
    check_vector,
    of_shape,
    operands,
    pair,
    reduce_loss,
    same_dims,
)
from .classes import picked
from .distance import cosine_similarity, pairwise_distance

SCORES = "(C,) or (N, C)"


@composite()
@rounded_once
def hinge_loss(
    input: Tensor, target: Tensor, *, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return max(0, margin - target * input) for targets 1 and -1."""
    input, target = pair("hinge_loss", input, target)
    margin = check_number("hinge_loss", "margin", margin)
    return reduce_loss("hinge_loss", F.relu(margin - target * input), reduction)


@composite()
@rounded_once
def hinge_embedding_loss(
    input: Tensor, target: Tensor, *, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return input where target is 1, max(0, margin - input) where it is -1, else both added."""
    fn = "hinge_embedding_loss"
    input, target = pair(fn, input, target)
    far = F.relu(check_number(fn, "margin", margin) - input)
    near = F.where(F.equal(target, -1), 0, input)
    return reduce_loss(fn, near + F.where(F.equal(target, 1), 0, far), reduction)


@composite()
@rounded_once
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    *,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, margin - target * (input1 - input2)).

    Target 1 asks for input1 to rank higher, -1 for input2.
    """
    fn = "margin_ranking_loss"
    input1, input2, target = operands(fn, input1=input1, input2=input2, target=target)
    input2 = check_same_shape(fn, input1, input2, "input1 and input2")
    target = check_same_shape(fn, input1, target, "input1 and target")
    margin = check_number(fn, "margin", margin)
    return reduce_loss(fn, F.relu(margin - target * (input1 - input2)), reduction)


@composite()
@rounded_once
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    *,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return sum over other classes of max(0, margin - input[target] + input[i])**p / C.

    input has shape (C,) or (N, C), target () or (N,); weight holds a factor for each class.
    """
    fn = "multi_margin_loss"
    input, target, weight = operands(fn, input=input, target=target, weight=weight)
    axis = _scores_axis(fn, input)
    check_integers(fn, "target", target, "class indices")
    if not same_dims(tuple(target.shape), tuple(input.shape[:axis])):
        raise ShapeError(
            f"{fn}: target must have shape {input.shape[:axis]}. Received: {target.shape}"
        )
    target = of_shape(target, input.shape[:axis])
    check_vector(fn, "weight", weight, input.shape[axis], "classes")
    terms = _margin_powers(fn, _score_gaps(fn, input, target, axis), p, margin)
    if weight is not None:
        terms = terms * F.take(weight, target)[..., None]
    # The target's own term, margin**p, does not count.
    loss = (F.sum(terms, axis=axis) - F.pick_class(terms, target, axis)) / input.shape[axis]
    return reduce_loss(fn, loss, reduction)


@composite()
@rounded_once
def multilabel_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return sum over targets j and other classes i of max(0, 1 - input[j] + input[i]) / C.

    input and target have shape (C,) or (N, C); target lists class indices, ended by -1.
    """
    fn = "multilabel_margin_loss"
    input, target = operands(fn, input=input, target=target)
    axis = _scores_axis(fn, input)
    check_integers(fn, "target", target, "class indices ended by -1")
    target = check_same_shape(fn, input, target)
    classes = input.shape[axis]
    _check_labels(fn, target, classes)
    listed = F.cumprod(F.cast(target >= 0, "int64"), axis=axis) > 0
    index = F.where(listed, target, 0)
    # (..., j, i): does entry j name class i?
    named = F.logical_and(listed[..., None], index[..., None] == F.iota(classes))
    others = F.logical_not(F.any(named, axis=axis))
    gaps = 1 - F.take_along_axis(input, index, axis=axis)[..., None] + input[..., None, :]
    counted = F.logical_and(listed[..., None], others[..., None, :])
    loss = F.sum(F.where(counted, F.relu(gaps), 0.0), axis=(-2, -1)) / classes
    return reduce_loss(fn, loss, reduction)


@composite()
@rounded_once
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    *,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Return 1 - cos(input1, input2) where target is 1 and max(0, cos - margin) where it is -1.

    The inputs have shape (D,) or (N, D), target () or (N,).
    """
    fn = "cosine_embedding_loss"
    input1, input2, target = operands(fn, input1=input1, input2=input2, target=target)
    input2 = check_same_shape(fn, input1, input2, "input1 and input2")
    check_ndim(fn, "input1", input1, 1, "(D,) or (N, D)")
    cosine = cosine_similarity(input1, input2, axis=-1)
    target = check_same_shape(fn, cosine, target, "the similarities and target")
    unlike = F.relu(cosine - check_number(fn, "margin", margin))
    return reduce_loss(fn, F.where(F.equal(target, 1), 1 - cosine, unlike), reduction)


@composite()
@rounded_once
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, margin + distance(anchor, positive) - distance(anchor, negative)).

    All three have shape (D,) or (N, D). With `swap` the nearer of anchor and positive is compared
    with the negative (Balntas et al. 2016).
    """
    fn = "triplet_margin_loss"
    anchor, positive, negative = operands(fn, anchor=anchor, positive=positive, negative=negative)
    positive = check_same_shape(fn, anchor, positive, "anchor and positive")
    negative = check_same_shape(fn, anchor, negative, "anchor and negative")
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = F.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduce_loss(fn, F.relu(check_number(fn, "margin", margin) + near - far), reduction)


# -- the parts --------------------------------------------------------------------------------


def _scores_axis(fn: str, input: Any) -> int:
    """Return the class axis of scores (C,) or (N, C)."""
    if input.ndim not in (1, 2) or input.shape[-1] == 0:
        raise ShapeError(f"{fn}: input must have shape {SCORES}, C >= 1. Received: {input.shape}")
    return int(input.ndim) - 1


def _score_gaps(fn: str, input: Any, target: Any, axis: int) -> Any:
    """Return each score minus that of the target class."""
    return input - picked(fn, input, target, axis)[..., None]


def _margin_powers(fn: str, gaps: Any, p: Any, margin: Any) -> Any:
    if p not in (1, 2):
        raise ArgumentError(f"{fn}: p must be 1 or 2. Received: {p!r}")
    short = F.relu(check_number(fn, "margin", margin) + gaps)
    return short if p == 1 else F.square(short)


def _check_labels(fn: str, target: Any, classes: int) -> None:
    value = concrete(target)
    if value is not None and value.size and not (value.min() >= -1 and value.max() < classes):
        worst = value.min() if value.min() < -1 else value.max()
        raise IndexOutOfRange(
            f"{fn}: target {worst} is not one of {classes} classes; use 0 ... {classes - 1}, and "
            "-1 to end a list"
        )
