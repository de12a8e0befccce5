"""Tensors as linear maps between tensors: their inverse and systems with them."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite
from ...core.shape import as_int, size_of
from .._halves import rounded_once
from .._operands import names_errors
from ._matrices import operand


@composite()
@names_errors
@rounded_once
def tensorinv(x: Any, ind: int = 2) -> Any:
    """Return the inverse of the map that x is, from its axes `ind` on to those before.

    The product of the sizes before must be that of the others. tensordot(result, x, ind) is the
    identity. Shapes: (*rows, *columns) -> (*columns, *rows).
    """
    x, count = operand(x), as_int(ind, "ind")
    if count < 1:
        raise ArgumentError(f"ind must be at least 1. Received: {count}")
    rows, columns = tuple(x.shape[:count]), tuple(x.shape[count:])
    sizes = size_of(rows), size_of(columns)
    if sizes[0] != sizes[1]:
        raise ShapeError(
            f"the sizes before and from axis {count} on must have one product. "
            f"Received: {rows} and {columns}"
        )
    return F.reshape(F.inv(F.reshape(x, sizes)), (*columns, *rows))


@composite()
@names_errors
@rounded_once
def tensorsolve(a: Any, b: Any, dims: Any = None) -> Any:
    """Return x with tensordot(a, x, x.ndim) = b.

    dims   axes of a to be moved to its end first

    The shape of a, so arranged, is that of b and then that of x.
    """
    a, b = operand(a), operand(b)
    if dims is not None:
        a = F.moveaxis(a, tuple(dims), tuple(range(a.ndim - len(dims), a.ndim)))
    shape = tuple(a.shape[b.ndim :])
    sizes = size_of(b.shape), size_of(shape)
    if sizes[0] != sizes[1]:
        raise ShapeError(
            "a must have as many elements as the square of b's. "
            f"Received: shapes {tuple(a.shape)} and {tuple(b.shape)}"
        )
    solved = F.solve(F.reshape(a, sizes), F.reshape(b, (sizes[0],)))
    return F.reshape(solved, shape)
