"""Loops over rows of elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.scalar.builder import Expr
from ...core.shape import Shape, Size, size_of
from ..storage import View
from .base import WAYS, LoopNest, Operand, Origins, Output, operations_along

if TYPE_CHECKING:
    from ..checks import Verifier
    from ..text import Text


@dataclass(frozen=True, slots=True)
class RowKernel(LoopNest):
    """Expressions over rows of elements, with reductions along the rows.

    loops      sizes of the loops over rows, and last that over the elements of a row
    operands   what is read and written; strides one per loop
    outputs    expressions to store: per element, or per row if no load in them varies along it
    block      rows that are a unit of work; outputs that combine rows have a row for each unit
    iotas      for numbers that follow from the loops' counters alone: what each turn adds
    flag       where an index out of range is reported, if the kernel checks any
    """

    kind = "row"

    name: str
    loops: Shape
    operands: tuple[Operand, ...]
    outputs: tuple[Output, ...]
    origins: Origins = ()
    block: Size = 1
    iotas: tuple[Shape, ...] = ()
    flag: View | None = None

    @property
    def units(self) -> Size:
        """Return how many units of work there are: of rows, or of elements if there are no rows."""
        return self.loops[0] if len(self.loops) == 1 else -(-self.rows // self.block)

    @property
    def rows(self) -> Size:
        """Return the number of rows."""
        return size_of(self.loops[:-1])

    @property
    def written(self) -> frozenset[int]:
        """Return the operands that outputs go to."""
        return frozenset(output.operand for output in self.outputs)

    @property
    def roots(self) -> list[Expr]:
        """Return the values of the outputs."""
        return [output.value for output in self.outputs]

    @property
    def operations(self) -> int:
        """Count its expressions: each element, or each row; and what combines rows."""
        ways = sum(output.way is not None for output in self.outputs)
        alone = operations_along(self.roots, self.operands, self.rows, self.columns)
        return alone + ways * self.rows * self.columns  # type: ignore[no-any-return]  # a Size is Any

    def verify(self, v: Verifier) -> None:
        """Check loops, operands and expressions, and that each output has an operand of its own."""
        v.loops(self, self.iotas)
        v.outputs(self.outputs, len(self.operands))
        for output in self.outputs:
            if output.way is not None and output.way not in WAYS:
                v.fail(f"rows cannot be combined by {output.way!r}")
            v.dtype(output.value.dtype, self.operands[output.operand].view.dtype, "an output")
        if v.surely_less(self.block, 1):
            v.fail(f"a unit has {self.block} rows")
        v.expressions(self.roots, self.views, iotas=len(self.iotas), flag=self.flag, rows=True)
        v.operands(self)

    def lines(self, text: Text) -> list[str]:
        """Return its loops, and what goes where."""
        block = f", by {self.block} rows" if any(o.way for o in self.outputs) else ""
        stored = [(text.operand(self, o.operand), o.value, o.way) for o in self.outputs]
        return [text.head(self) + block, *text.stores(stored, self, self.iotas)]
