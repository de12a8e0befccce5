"""Selections of elements put together: products and combinations; parts along named axes."""

from __future__ import annotations

from itertools import combinations as each_combination
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite
from ...core.shape import as_int
from .._operands import names_errors, operand


@composite(public=("wf",))
def cartesian_prod(*tensors: Any) -> Any:
    """Return all choices of one element from each vector, as rows; of one vector itself.

    >>> import weft as wf
    >>> wf.cartesian_prod(wf.tensor([1, 2]), wf.tensor([5, 6]))
    tensor([[1, 5],
            [1, 6],
            [2, 5],
            [2, 6]])
    """
    vectors = [operand("cartesian_prod", f"tensors[{i}]", x) for i, x in enumerate(tensors)]
    if not vectors:
        raise ArgumentError("cartesian_prod: at least one vector is needed. Received: none")
    for i, x in enumerate(vectors):
        if x.ndim != 1:
            raise ShapeError(
                f"cartesian_prod: tensors[{i}] must be a vector. Received: shape {tuple(x.shape)}"
            )
    if len(vectors) == 1:
        return vectors[0]
    grids = F.meshgrid(*vectors, indexing="ij")
    return F.stack([F.reshape(grid, (-1,)) for grid in grids], 1)


@composite(public=("wf",))
@names_errors
def combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Return all choices of r elements of a vector, in order, as rows.

    >>> import weft as wf
    >>> wf.combinations(wf.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    x, r = operand("combinations", "x", x), as_int(r, "combinations: r")
    if x.ndim != 1:
        raise ShapeError(f"combinations: x must be a vector. Received: shape {tuple(x.shape)}")
    if r < 0:
        raise ArgumentError(f"combinations: r must not be negative. Received: r={r}")
    if r == 0:
        return x[:0]
    choose = combinations_with_replacement if with_replacement else each_combination
    rows = np.array(list(choose(range(x.shape[0]), r)), np.int64).reshape(-1, r)
    return F.take(x, rows, 0)


@composite(method=True, public=("wf",))
def hsplit(x: Any, indices_or_sections: Any) -> Any:
    """Return the parts of x along its columns (axis 1; of a vector its only axis).

    >>> import weft as wf
    >>> [part.shape for part in wf.hsplit(wf.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    _check_parts("hsplit", x, 1, indices_or_sections, 0 if x.ndim == 1 else 1)
    return F.tensor_split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


@composite(method=True, public=("wf",))
def vsplit(x: Any, indices_or_sections: Any) -> Any:
    """Return the parts of x along its rows."""
    _check_parts("vsplit", x, 2, indices_or_sections, 0)
    return F.tensor_split(x, indices_or_sections, 0)


@composite(method=True, public=("wf",))
def dsplit(x: Any, indices_or_sections: Any) -> Any:
    """Return the parts of x along its third axis."""
    _check_parts("dsplit", x, 3, indices_or_sections, 2)
    return F.tensor_split(x, indices_or_sections, 2)


def _check_parts(name: str, x: Any, least: int, parts: Any, axis: int) -> None:
    if x.ndim < least:
        raise ShapeError(
            f"{name}: x must have at least {least} dimension(s). Received: shape {tuple(x.shape)}"
        )
    if isinstance(parts, int) and parts > 0 and x.shape[axis] % parts != 0:
        raise ShapeError(
            f"{name}: axis {axis} of size {x.shape[axis]} is not divisible into {parts} equal "
            "parts; use tensor_split for parts that differ in size"
        )


@composite(method=True, public=("wf",))
def diagflat(x: Any, offset: int = 0) -> Any:
    """Return a matrix with the elements of x, flattened, on a diagonal.

    >>> import weft as wf
    >>> wf.diagflat(wf.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    x = operand("diagflat", "x", x)
    return F.diag(F.reshape(x, (-1,)), as_int(offset, "diagflat: offset"))
