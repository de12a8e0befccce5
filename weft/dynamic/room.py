"""Memory for rows of one type: that of calls before, where it is large.

Fresh memory costs about 1 ms a megabyte when it is first touched, more than computing what is put
there. Sizes are an eighth apart, so that the next call, of as many values more or less, finds it.
"""

from __future__ import annotations

import numpy as np

from ..backends.cpu.runtime.buffers import POOLED_FROM, pooled_empty
from ..core.dtype import Array, DType
from ..core.shape import Shape, size_of
from .cell_kernels import filling, width_for


def room_for(rows: int, shape: Shape, dtype: DType) -> Array:
    """Return room for so many rows, and for what fills the widest batch up behind them.

    What it holds is undefined in large ones, and zero behind the rows.
    """
    count = rows + filling(rows)
    if count * size_of(shape) * dtype.itemsize < POOLED_FROM:
        return np.zeros((count, *shape), dtype)
    found = pooled_empty((width_for(count), *shape), dtype)
    found[rows:] = 0
    return found


def zeros_for(rows: int, shape: Shape, dtype: DType) -> Array:
    """Return such room with zeros in it."""
    found = room_for(rows, shape, dtype)
    found[:rows] = 0
    return found
