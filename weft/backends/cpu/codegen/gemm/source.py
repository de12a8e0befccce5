"""Write what a copy reads: lines of a matrix, or expressions of their elements and of others'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .....core.scalar.builder import Expr, postorder
from .....core.shape import Size
from ..scalars import broadcast_to_lanes, type_of, write_values
from ..text import FunctionText
from ..values import IRValue, vector_of


@dataclass(frozen=True)
class LineStrides:
    """How an operand lies: strides in elements, from line to line and within a line."""

    element: str
    line: Size
    step: Size


@dataclass(frozen=True)
class PanelSource:
    """Operands of which the first is the matrix, and what to take in place of its elements.

    value   of an element; None: the element itself
    """

    operands: tuple[LineStrides, ...]
    value: Expr | None = None

    @property
    def by_vectors(self) -> bool:
        """Tell whether the elements of lines lie one behind another, or are all the same."""
        first, *others = self.operands
        return first.step == 1 and all(lines.step in (0, 1) for lines in others)


class PanelReader:
    """Reads one line of a source, `lanes` elements at a time."""

    def __init__(
        self,
        f: FunctionText,
        source: PanelSource,
        pointers: Sequence[IRValue],
        line: IRValue,
        lanes: int,
    ) -> None:
        self.f = f
        self.source = source
        self.lanes = lanes
        pairs = zip(source.operands, pointers, strict=True)
        self.starts = [f.gep(p, f.mul(line, s.line), s.element) for s, p in pairs]
        self.order = [] if source.value is None else postorder([source.value])
        # No pass moves code out of the inner loop, so all that stays the same is written before it.
        self.same = {id(e): self._spread(e) for e in self.order if self._stays(e)}

    def _stays(self, expr: Expr) -> bool:
        return expr.kind == "load" and self.source.operands[expr.data].step == 0

    def _spread(self, expr: Expr) -> IRValue:
        one = self.f.load(type_of(expr, 1), self.starts[expr.data])
        return broadcast_to_lanes(self.f, one, self.lanes)

    def place(self, at: IRValue | int, operand: int = 0) -> IRValue:
        """Return where an element of the line lies in an operand."""
        lines = self.source.operands[operand]
        offset = at if lines.step == 1 else self.f.mul(_number(self.f, at), lines.step)
        return self.f.gep(self.starts[operand], offset, lines.element)

    def prefetch(self, at: IRValue, lines: int) -> None:
        """Ask for what lies some lines further."""
        for i, operand in enumerate(self.source.operands):
            if operand.line and operand.step:
                ahead = self.f.gep(self.place(at, i), lines * operand.line, operand.element)
                self.f.prefetch(ahead)

    def read(self, at: IRValue | int, *, count: IRValue | None = None) -> IRValue:
        """Return the elements from one on; with `count` only so many, others being of no use."""
        f, source = self.f, self.source
        if source.value is None:
            type = vector_of(source.operands[0].element, self.lanes)
            return f.load(type, self.place(at), count=count)

        def load(expr: Expr) -> IRValue:
            return f.load(type_of(expr, self.lanes), self.place(at, expr.data), count=count)

        return write_values(f, self.order, self.lanes, self.same, load)[id(source.value)]


def _number(f: FunctionText, at: IRValue | int) -> IRValue:
    return at if isinstance(at, IRValue) else f.constant("i64", at)
