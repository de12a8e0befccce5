"""What place rules need of a loop nest: numbers of its loops, loads from anywhere, checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtype import int64
from ..core.scalar.builder import Expr
from ..core.shape import size_of
from ..graph.node import Node, Value
from .frames import FULL
from .index_maps import Check
from .indexing import index_bounds
from .storage import View

if TYPE_CHECKING:
    from .nests import NestBuilder


class NestIndexMaps:
    """The `Loops` of a nest.

    iotas       what each axis adds to the numbers that follow from the loops' counters
    collapsed   the same for the loops of the kernel
    flag_view   where the kernel reports an index out of range, if it checks any
    """

    def __init__(self, nest: NestBuilder) -> None:
        self.nest = nest
        self.builder = nest.builder
        self.iotas: list[tuple[int, ...]] = []
        self.collapsed: list[tuple[int, ...]] = []
        self.flag_view: View | None = None
        self._flag = -1
        self._moved: dict[tuple[int, tuple[int, ...]], int] = {}  # operands of loads by offsets

    def iota(self, strides: tuple[int, ...]) -> Expr:
        """Return the sum of each loop's counter times its stride."""
        if strides not in self.iotas:
            self.iotas.append(strides)
        return self.builder.iota(self.iotas.index(strides))

    def load_from(self, view: View, offset: Expr | None, guard: Expr | None) -> Expr:
        """Return the element of a view of the loops' shape, moved on by an offset."""
        key = (id(view.buffer), view.strides)
        if key not in self._moved:
            self.nest.operands.append(view)
            self._moved[key] = len(self.nest.operands) - 1
        number = self._moved[key]
        ahead = view.offset - self.nest.operands[number].offset
        if offset is None and guard is None and not ahead:
            return self.builder.load(number, view.dtype)
        if ahead:
            offset = self.builder.constant(ahead, int64) if offset is None else offset + ahead
        return self.builder.load_at(number, view.dtype, offset, guard)

    def load_here(self, value: Value) -> Expr:
        """Return the element of a value that broadcasts to the loops' shape."""
        return self.nest.operand(value, FULL)

    def flag(self, check: Check | None) -> int | None:
        """Return the operand that takes the report of an index out of range, if need be."""
        domain = self.nest.frame.domain
        if not self.nest.lowered.needs(check, size_of(domain) > 0):
            return None
        if self.flag_view is None:
            self.flag_view = self.nest.lowered.error_flag()
            self._flag = len(self.nest.operands)
            self.nest.operands.append(View(self.flag_view.buffer, domain, (0,) * len(domain)))
        return self._flag

    def table(self, array: np.ndarray[Any, Any]) -> View:
        """Return where a constant array lies."""
        return self.nest.lowered.table(array)

    def picked_index(self, node: Node, index: Expr) -> Expr:
        """Return the index by which a node picks from a row, checked."""
        size, wraps, ignored = index_bounds(node)
        value = node.inputs[1]
        view = None if value is None else self.nest.lowered.views.get(value)
        flag = self.flag(None if view is None else Check(view, size, wraps, ignored))
        return self.builder.checked(index, size, flag, wraps, ignored)
