"""Rows that an embedding looked up, for composites that multiply each of them with a matrix.

A text looks up some hundred characters thousands of times. What a composite is called with are the
rows; of which index they are is written on the tape. So the program for such a call takes the
distinct rows and the index as well, looks the rows up itself, and the compiler multiplies the
distinct ones only (passes/tables.py). The rows stay an operand of the tape's node: their gradient
is computed as always.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.dtype import Array
from ..core.imports import deferred_imports
from ..core.tape import FREED, TapeNode
from ..core.tensor import Tensor
from ..ops.index.embedding import embedding


class LookedUp(NamedTuple):
    """What rows are: distinct ones, and the place of each among them.

    Rows of the table that nobody looked up are some other row.
    """

    distinct: Array
    places: Array

    @property
    def types(self) -> tuple[tuple[Any, Any], ...]:
        """Return shape and dtype of each."""
        return tuple((x.shape, x.dtype) for x in self)


def looked_up(x: Tensor) -> LookedUp | None:
    """Return what rows are if an embedding made them, often enough from the same ones.

    A tensor that is written to leaves the tape's node, so that the node tells what its value is. An
    index that may be memory of the user's, who may have written there since, tells nothing.
    """
    node = x._node
    if type(node) is not TapeNode or node.op is not embedding or node.saved is FREED:
        return None
    (index, shape), value = node.saved, x._value
    if index.base is not None or not value.flags.c_contiguous:
        return None
    with deferred_imports:
        from ..passes.tables import pays_to_multiply  # noqa: PLC0415  (graphs are slow to import)
    if not pays_to_multiply(shape, value.dtype, index.shape):
        return None
    return _distinct(value, index, shape)


def _distinct(value: Array, index: Array, shape: tuple[int, int]) -> LookedUp:
    count, width = shape
    flat = index.reshape(-1)
    last = np.zeros(count, np.intp)
    last[flat] = np.arange(flat.size)
    return LookedUp(value.reshape(-1, width).take(last, 0), index)
