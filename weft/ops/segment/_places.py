"""Which segment each row is in: by ids, one for each row, or by where rows are split."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import may_equal
from ...core.dtype import Array
from ...core.errors import ArgumentError, DTypeError, ShapeError
from ...core.op import F
from ...core.shape import as_int
from .._operands import concrete, operand


def segments(
    fn: str, values: Any, segment_ids: Any, num_segments: Any, row_splits: Any
) -> tuple[Any, Any, Any]:
    """Return values, the segment of each of their rows, and how many segments there are."""
    values = operand(fn, "values", values)
    if values.ndim == 0:
        raise ShapeError(f"{fn}: values must have rows. Received: a 0-d tensor")
    if (segment_ids is None) == (row_splits is None):
        given = "neither" if segment_ids is None else "both"
        raise ArgumentError(f"{fn}: give segment_ids or row_splits. Received: {given}")
    if row_splits is None:
        return values, *_by_ids(fn, values, segment_ids, num_segments)
    if num_segments is not None:
        raise ArgumentError(
            f"{fn}: row_splits say how many segments there are. Received: num_segments too"
        )
    return values, *by_splits(fn, values.shape[0], row_splits)


def _by_ids(fn: str, values: Any, given: Any, count: Any) -> tuple[Any, Any]:
    ids = _vector(fn, "segment_ids", given)
    if not may_equal((ids.shape[0],), (values.shape[0],)):
        raise ShapeError(
            f"{fn}: segment_ids must hold an id for each row of values, "
            f"{tuple(values.shape)}. Received: shape {tuple(ids.shape)}"
        )
    if count is None:
        return ids, _counted(fn, ids)
    count = as_int(count, f"{fn}: num_segments")
    if isinstance(count, int) and count < 0:
        raise ArgumentError(f"{fn}: num_segments must not be negative. Received: {count}")
    return ids, count


def _counted(fn: str, ids: Any) -> int:
    """Return one more than the largest id, which is read: sizes depend on it."""
    if concrete(ids) is None:
        raise ArgumentError(
            f"{fn}: num_segments must be given where ids have no values yet: sizes depend on it"
        )
    return 0 if ids.shape[0] == 0 else max(int(F.max(ids)) + 1, 0)


def by_splits(fn: str, rows: Any, given: Any) -> tuple[Any, Any]:
    """Return the segment of each of so many rows, and how many segments splits make."""
    splits = _vector(fn, "row_splits", given)
    if isinstance(splits.shape[0], int) and splits.shape[0] == 0:
        raise ShapeError(f"{fn}: row_splits must begin with 0. Received: none at all")
    value = concrete(splits)
    if value is not None and isinstance(rows, int):
        _check_splits(fn, value, rows)
    return F.sorted_search(splits, F.iota(rows), True) - 1, splits.shape[0] - 1


def _check_splits(fn: str, splits: Array, rows: int) -> None:
    falling = np.flatnonzero(splits[1:] < splits[:-1])
    if falling.size:
        at = int(falling[0])
        raise ArgumentError(
            f"{fn}: row_splits must not fall. Received: {splits[at]} before {splits[at + 1]} "
            f"at position {at}"
        )
    if splits[0] != 0 or splits[-1] != rows:
        raise ArgumentError(
            f"{fn}: row_splits must go from 0 to {rows}, the number of rows of values. "
            f"Received: {splits[0]} to {splits[-1]}"
        )


def _vector(fn: str, name: str, given: Any) -> Any:
    """Return integers as a tensor of one dimension; an empty list holds integers too."""
    if isinstance(given, list | tuple) and not given:
        given = np.zeros(0, np.int64)
    x = operand(fn, name, given)
    if x.dtype.kind not in "iu":
        raise DTypeError(f"{fn}: {name} must hold integers. Received: dtype {x.dtype}")
    if x.ndim != 1:
        raise ShapeError(f"{fn}: {name} must be a vector. Received: shape {tuple(x.shape)}")
    return x
