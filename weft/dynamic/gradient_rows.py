"""The gradients of all values of one type, by row, in the form of their arena."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backends.cpu.runtime.launches import ADDED, add_rows, address_of, launches_work
from ..core.config import config
from ..core.dtype import Array
from ..core.shape import size_of
from ..ops.index.scatter_add import scatter_add_rows
from .room import room_for, zeros_for

LARGE = 1 << 25  # bytes, from which on zeros are put only where nothing else is


class GradientRows:
    """Gradients that are added to in place, with room for the widest batch behind.

    is_blank   whether nothing was added to a row before the one who read it last, who is known:
               that may write there
    """

    def __init__(self, given: Array, at_once: bool) -> None:
        rows, shape = len(given), given.shape[1:]
        self.letter: str = given.dtype.char
        self.elements = size_of(shape)  # of a row
        self.row_bytes: int = self.elements * given.dtype.itemsize
        self.is_blank = at_once and not any(given.strides)  # it is zero everywhere
        self._empty: Any = None  # which rows hold nothing yet, where there are many
        if self.is_blank and given.nbytes >= LARGE:
            self.array = room_for(rows, shape, given.dtype)
            self._empty = np.ones(rows, np.bool_)
        elif not any(given.strides):
            self.array = zeros_for(rows, shape, given.dtype)
        else:
            self.array = room_for(rows, shape, given.dtype)
            self.array[:rows] = given
        self._start = address_of(self.array)

    @property
    def is_whole(self) -> bool:
        """Whether every row holds something, so that others may write and add to it directly."""
        return self._empty is None

    def address(self, row: int) -> int:
        """Return where the gradient of a row lies."""
        return self._start + row * self.row_bytes

    def seed(self, block: slice, width: int) -> Array:
        """Return the gradients of a block, as many rows as a kernel is to be given.

        What is behind the block fills up, and is not looked at; zeros, where it would be.
        """
        self._define(np.arange(block.start, block.stop) if self._empty is not None else block)
        found = self.array[block.start : block.start + width]
        told = config.nan_trap or config.debug_interpret
        if told and len(found) > block.stop - block.start:
            found = found.copy()
            found[block.stop - block.start :] = 0
        return found

    def write(self, where: Any, g: Array) -> None:
        """Set rows, which hold nothing."""
        self.array[where] = g
        if self._empty is not None:
            self._empty[where] = False

    def add(self, where: Any, g: Array, distinct: bool) -> None:
        """Add to rows, as often as each is named."""
        beside = where.__class__ is slice
        if self._empty is not None:
            self._define(np.arange(where.start, where.stop) if beside else where)
        if beside:
            self.array[where] += g
        elif self.letter in ADDED and launches_work():
            add_rows(self.array, where, g)
        else:
            self._add_by_numpy(where, g, distinct)

    def _add_by_numpy(self, where: Array, g: Array, distinct: bool) -> None:
        if distinct:
            self.array[where] += g
            return
        rows, inverse = np.unique(where, return_inverse=True)
        if len(rows) == where.size:
            self.array[where] += g
        else:
            shape = len(rows), *self.array.shape[1:]
            self.array[rows] += scatter_add_rows(shape, inverse, g, self.array.dtype)

    def total(self, rows: list[int]) -> Array:
        """Return the gradient of a tensor that lies in some rows."""
        self._define(np.array(rows))
        found: Array = self.array[rows[0]] if len(rows) == 1 else self.array[rows].sum(0)
        return found

    def _define(self, where: Any) -> None:
        """Let rows that hold nothing be zero."""
        if self._empty is not None:
            missing = where[self._empty[where]]
            self.array[missing] = 0
            self._empty[missing] = False
