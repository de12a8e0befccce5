"""Distances between rows: cdist, pdist, dist."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite
from .._halves import rounded_once
from .._operands import names_errors, operand


def _order(name: str, p: Any) -> float:
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not p >= 0:
        raise ArgumentError(f"{name}: p must be a number from 0 on. Received: p={p!r}")
    return float(p)


def _check_rows(name: str, x: Any) -> None:
    if x.ndim < 2:
        raise ShapeError(
            f"cdist: {name} must be a matrix or a stack of matrices. "
            f"Received: shape {tuple(x.shape)}"
        )


@composite(public=("wf",), fused=True)
@rounded_once
def cdist(x1: Any, x2: Any, p: float = 2.0) -> Any:
    """Return the distance, by the p-norm, of every row of x1 from every row of x2.

    Shapes: (..., m, k) and (..., n, k) -> (..., m, n); leading dimensions broadcast. Distances are
    those of differences, not of products: equal rows are exactly 0 apart, and have no gradient.

    >>> import weft as wf
    >>> wf.cdist(wf.tensor([[0.0, 0.0]]), wf.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    x1, x2 = operand("cdist", "x1", x1), operand("cdist", "x2", x2)
    _check_rows("x1", x1)
    _check_rows("x2", x2)
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"cdist: rows of x1 and x2 must be equally long. Received: {x1.shape} and {x2.shape}"
        )
    gap = F.unsqueeze(x1, -2) - F.unsqueeze(x2, -3)
    return F.vector_norm(gap, _order("cdist", p), axis=-1)


@composite(public=("nn.functional",))
@names_errors
@rounded_once
def pdist(x: Any, p: float = 2.0) -> Any:
    """Return the distances, by the p-norm, of each row of x from those after it, as a vector.

    Shapes: (n, k) -> (n * (n - 1) / 2,), in the order (0, 1), (0, 2), ..., (1, 2), ...
    """
    x = operand("pdist", "x", x)
    if x.ndim != 2:
        raise ShapeError(f"pdist: x must be a matrix. Received: shape {tuple(x.shape)}")
    first, second = F.triu_indices(x.shape[0], 1)
    gap = F.take(x, first, 0) - F.take(x, second, 0)
    return F.vector_norm(gap, _order("pdist", p), axis=-1)


@composite(method=True, public=("wf",))
@rounded_once
def dist(x: Any, y: Any, p: float = 2.0) -> Any:
    """Return the p-norm of x - y, over all elements; x and y broadcast.

    >>> import weft as wf
    >>> wf.dist(wf.tensor([1.0, 2.0]), wf.tensor([4.0, 6.0]))
    tensor(5.)
    """
    return F.vector_norm(operand("dist", "x", x) - operand("dist", "y", y), _order("dist", p))
