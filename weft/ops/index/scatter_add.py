"""Scatter-add kernels: the adjoints of everything that gathers.

Embeddings, advanced indexing, gather, index_add and max-pooling all end here. Additions into one
element happen in the order of the values, so results are the same bits on every run. Half-precision
values are accumulated in float32.

Measured on float32 rows (NumPy 2.4), `np.add.at` on flat positions beats `np.add.at` on rows 2-7
times, a stable sort with `np.add.reduceat` 1.3-30 times, and `np.bincount` up to 9 times.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import Array, DType, float32, is_half
from ...core.shape import Shape, size_of
from ._checks import check_range


def scatter_add_flat(shape: Shape, positions: Array, values: Array, dtype: DType) -> Array:
    """Return zeros of `shape` with values added at flat, non-negative, checked positions."""
    total = np.zeros(size_of(shape), _accumulator(dtype))
    np.add.at(total, positions.reshape(-1), values.reshape(-1).astype(total.dtype, copy=False))
    return total.astype(dtype, copy=False).reshape(shape)


def scatter_add_rows(shape: Shape, index: Array, rows: Array, dtype: DType) -> Array:
    """Return zeros of `shape` with each row added at its index along axis 0.

    index   integers of any shape; negative ones count from the end, others outside are refused
    rows    an array of shape index.shape + shape[1:]
    """
    starts = count_from_front(index, shape[0])
    width = size_of(shape[1:])
    if width == 1:
        return scatter_add_flat(shape, starts, rows, dtype)
    positions = (starts * width).reshape(-1, 1) + np.arange(width)
    return scatter_add_flat(shape, positions, rows, dtype)


def scatter_add_at(shape: Shape, index: Any, values: Array, dtype: DType) -> Array:
    """Return zeros of `shape` with values added at any NumPy index, as in `out[index] += values`.

    Unlike that statement, elements that the index names several times receive every addend.
    """
    positions = flat_positions(shape, index)
    return scatter_add_flat(shape, positions, np.broadcast_to(values, positions.shape), dtype)


def flat_positions(shape: Shape, index: Any) -> Array:
    """Return the positions, in the flattened array, of the elements that an index selects."""
    if _is_full(shape, index):
        return _weighted_sum(shape, index)
    everything = np.arange(size_of(shape)).reshape(shape)
    return np.asarray(everything[index])


def _is_full(shape: Shape, index: Any) -> bool:
    """Tell whether an index is one integer array for each axis."""
    return (
        isinstance(index, tuple)
        and 0 < len(index) == len(shape)
        and all(isinstance(i, np.ndarray) and i.dtype.kind in "iu" for i in index)
    )


def _weighted_sum(shape: Shape, index: tuple[Array, ...]) -> Array:
    position: Any = 0
    for i, dim in zip(index, shape, strict=True):
        position = position * dim + count_from_front(i, dim)
    return np.asarray(position)


def count_from_front(index: Array, size: int) -> Array:
    """Return indices into an axis of that size as non-negative ones; raise if any is outside.

    An index beyond its axis would land, in flat positions, on an element of the next line.
    """
    index = index.astype(np.intp, copy=False)
    if index.size == 0:
        return index
    lowest = np.minimum.reduce(index, axis=None)
    if lowest < -size or np.maximum.reduce(index, axis=None) >= size:
        check_range(index, size, None)
    return np.where(index < 0, index + size, index) if lowest < 0 else index


def _accumulator(dtype: DType) -> DType:
    return float32 if is_half(dtype) else dtype
