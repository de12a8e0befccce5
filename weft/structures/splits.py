"""Where rows are split: from lengths, row ids and lists, checked, and what follows from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dtype import Array
from ..core.errors import ArgumentError, DTypeError, ShapeError
from ..core.op import F
from ..core.shape import as_int
from ..core.tensor import Tensor, constant


def as_splits(given: Any, rows: int) -> Tensor:
    """Return row splits as a tensor of int64; raise unless they go from 0 up to `rows`."""
    splits = as_integers("row_splits", given)
    value = known(splits)
    if value is not None:
        _check(value, rows)
    return splits


def splits_of_lengths(given: Any, rows: int) -> Tensor:
    """Return the splits of rows of such lengths."""
    lengths = as_integers("lengths", given)
    value = known(lengths)
    if value is not None and ((value < 0).any() or value.sum() != rows):
        raise ArgumentError(
            f"ragged: lengths must sum to {rows}, the number of values. Received: "
            f"{_shown(value)}, which sum to {value.sum()}"
        )
    zero = constant(np.zeros(1, np.int64))
    splits: Tensor = F.concat([zero, F.cumsum(lengths, 0)], axis=0)
    return splits


def splits_of_ids(given: Any, rows: int, num_rows: Any) -> Tensor:
    """Return the splits of values whose rows are named by ascending ids."""
    ids = as_integers("row_ids", given)
    if ids.shape[0] != rows:
        raise ShapeError(
            f"ragged: row_ids must name a row for each of {rows} values. "
            f"Received: shape {tuple(ids.shape)}"
        )
    value = known(ids)
    if num_rows is None:
        if value is None:
            raise ArgumentError("ragged: num_rows must be given where row_ids have no values yet")
        num_rows = int(F.max(ids)) + 1 if rows else 0
    count = as_int(num_rows, "ragged: num_rows")
    if value is not None and _unsorted(value, count):
        raise ArgumentError(
            f"ragged: row_ids must ascend within 0..{count - 1}. Received: {_shown(value)}"
        )
    splits: Tensor = F.sorted_search(ids, F.iota(count + 1), False)
    return splits


def as_integers(name: str, given: Any) -> Tensor:
    """Return a vector of integers as a tensor of int64."""
    if isinstance(given, list | tuple) and not given:
        given = np.zeros(0, np.int64)
    x = given if isinstance(given, Tensor) else constant(np.asarray(given))
    if x.dtype.kind not in "iu":
        raise DTypeError(f"ragged: {name} must hold integers. Received: dtype {x.dtype}")
    if x.ndim != 1:
        raise ShapeError(f"ragged: {name} must be a vector. Received: shape {tuple(x.shape)}")
    return x if x.dtype == np.int64 else F.cast(x, np.dtype(np.int64))


def known(x: Any) -> Array | None:
    """Return the value of a tensor to check it, or None for a symbol, which has none yet."""
    value = getattr(x, "_value", None)
    return value if isinstance(value, np.ndarray) else None


def _check(splits: Array, rows: int) -> None:
    if not splits.size or splits[0] != 0 or splits[-1] != rows or (np.diff(splits) < 0).any():
        raise ArgumentError(
            f"ragged: row_splits must rise from 0 to {rows}, the number of values. "
            f"Received: {_shown(splits)}"
        )


def _unsorted(ids: Array, count: int) -> bool:
    inside = not ids.size or (ids[0] >= 0 and ids[-1] < count)
    return not inside or bool((np.diff(ids) < 0).any())


def _shown(values: Array) -> str:
    return np.array2string(values, threshold=8, separator=", ")


def positions(starts: Array, lengths: Array) -> Array:
    """Return the places of the values of rows that begin at starts, one row after another."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if ends.size else 0
    places: Array = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return places
