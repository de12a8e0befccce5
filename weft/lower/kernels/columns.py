"""Reductions over leading loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.scalar.builder import Expr
from ...core.shape import Shape, size_of
from .base import WAYS, LoopNest, Operand, Origins, Output, operations_along

if TYPE_CHECKING:
    from ..checks import Verifier
    from ..text import Text


@dataclass(frozen=True, slots=True)
class ColumnKernel(LoopNest):
    """Sums (or other reductions) over leading loops, element by element of the last one.

    loops     sizes of the loops: kept ones, then reduced ones, then the innermost, which is kept
    reduced   which of them are reduced
    finish    what to store instead of the result of the reduction, of which it is a function
    """

    kind = "column"

    name: str
    loops: Shape
    reduced: tuple[bool, ...]
    operands: tuple[Operand, ...]
    output: Output
    way: str
    origins: Origins = ()
    finish: Expr | None = None

    @property
    def written(self) -> frozenset[int]:
        """Return the operand that takes the result."""
        return frozenset((self.output.operand,))

    @property
    def roots(self) -> list[Expr]:
        """Return what is reduced."""
        return [self.output.value]

    @property
    def operations(self) -> int:
        """Count one for each element that is taken, and what is computed of it."""
        size = size_of(self.loops)
        return int(size + operations_along(self.roots, self.operands, 1, size))

    def verify(self, v: Verifier) -> None:
        """Check the loops, and that the result varies with the kept ones alone."""
        v.loops(self)
        if len(self.reduced) != len(self.loops) or self.reduced[-1] or self.way not in WAYS:
            v.fail(f"cannot reduce loops {self.reduced} of {self.loops} by {self.way!r}")
        v.outputs([self.output], len(self.operands))
        target = self.operands[self.output.operand]
        if any(r and s for r, s in zip(self.reduced, target.strides, strict=True)):
            v.fail("the result moves along a loop that is reduced")
        v.expressions(self.roots, self.views)
        if self.finish is not None:
            v.expressions([self.finish], self.views, rows=True)
        result = self.output.value if self.finish is None else self.finish
        v.dtype(result.dtype, target.view.dtype, "the result")
        v.operands(self)

    def lines(self, text: Text) -> list[str]:
        """Return its loops, and what is reduced to what."""
        target = text.operand(self, self.output.operand)
        value, way = (self.finish, None) if self.finish else (self.output.value, self.way)
        over = [
            str(size) for size, reduced in zip(self.loops, self.reduced, strict=True) if reduced
        ]
        head = f"{text.head(self)}, over {' x '.join(over)}"
        return [head, *text.stores([(target, value, way)], self)]
