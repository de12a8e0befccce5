"""Distances and similarities between vectors."""

from __future__ import annotations

from typing import Any

from ...core.op import F, composite
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import chosen_axis
from ._arguments import broadcast_shapes, check_ndim, check_not_negative, check_number, operands


@composite()
@rounded_once
def cosine_similarity(
    x1: Tensor, x2: Tensor, axis: int = 1, eps: float = 1e-8, *, dim: int | None = None
) -> Tensor:
    """Return the cosine of the angle between vectors along an axis; x1 and x2 broadcast.

    Norms are raised to eps where they are smaller, so that zero vectors have similarity 0.

    >>> import weft as wf
    >>> wf.nn.functional.cosine_similarity(wf.tensor([1.0, 0.0]), wf.tensor([1.0, 1.0]), axis=0)
    tensor(0.7071...)
    """
    fn = "cosine_similarity"
    x1, x2 = operands(fn, x1=x1, x2=x2)
    longer = x1 if x1.ndim >= x2.ndim else x2
    axis = chosen_axis(fn, longer, axis, dim) - longer.ndim  # from the end: fits both operands
    eps = check_not_negative(fn, "eps", eps)
    shape = broadcast_shapes(fn, x1, x2)
    if x1.shape != x2.shape:  # norms are of the repeated vectors
        x1, x2 = F.broadcast_to(x1, shape), F.broadcast_to(x2, shape)
    return F.sum(_unit(x1, axis, eps) * _unit(x2, axis, eps), axis=axis)


@composite()
@rounded_once
def pairwise_distance(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    eps: float = 1e-6,
    keepdims: bool = False,
    *,
    keepdim: bool | None = None,
) -> Tensor:
    """Return the p-norm of x1 - x2 + eps along the last axis; x1 and x2 broadcast.

    eps keeps the gradient finite where the two are equal.
    """
    fn = "pairwise_distance"
    x1, x2 = operands(fn, x1=x1, x2=x2)
    check_ndim(fn, "x1", x1, 1, "(..., D)")
    check_ndim(fn, "x2", x2, 1, "(..., D)")
    broadcast_shapes(fn, x1, x2)
    p, eps = check_number(fn, "p", p), check_not_negative(fn, "eps", eps)
    keepdims = keepdims if keepdim is None else keepdim
    return F.vector_norm(x1 - x2 + eps, p, -1, keepdims)


def _unit(x: Any, axis: int, eps: float) -> Any:
    """Return vectors of length one along an axis; shorter ones than eps are divided by eps."""
    return x / F.maximum(F.vector_norm(x, 2, axis, True), eps)
