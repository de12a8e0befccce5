"""Colour the columns of a sparse matrix, so that columns of one colour share no row.

Curtis, Powell and Reid ("On the estimation of sparse Jacobian matrices", 1974): the derivative
along the sum of such columns holds the entries of all of them, each in a row of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.errors import ArgumentTypeError, ShapeError

Pattern = np.ndarray[Any, Any]


class Coloring(NamedTuple):
    """The colour of each column, and how many colours there are."""

    colors: Pattern
    needed: int


def as_pattern(given: Any) -> Pattern:
    """Return a sparsity pattern as a matrix of truth values."""
    try:
        matrix = np.asarray(given)
    except ValueError:
        matrix = np.empty(0, object)
    if matrix.dtype.kind not in "biuf":
        raise ArgumentTypeError(
            f"jacobian: sparsity must be a matrix of truth values. Received: {given!r:.60}"
        )
    if matrix.ndim != 2:
        raise ShapeError(f"jacobian: sparsity must be a matrix. Received: shape {matrix.shape}")
    return np.asarray(matrix != 0)


def color(pattern: Pattern) -> Coloring:
    """Give each column the first colour that no column overlapping it has, densest first."""
    rows, columns = pattern.shape
    used = [0] * rows  # the colours in each row, as the bits of an integer
    colors = np.zeros(columns, np.int64)
    for j in np.argsort(-pattern.sum(0), kind="stable").tolist():
        places = np.flatnonzero(pattern[:, j]).tolist()
        taken = 0
        for i in places:
            taken |= used[i]
        first = ~taken & (taken + 1)  # the lowest bit that is not set
        for i in places:
            used[i] |= first
        colors[j] = first.bit_length() - 1
    return Coloring(colors, int(colors.max(initial=-1)) + 1)
