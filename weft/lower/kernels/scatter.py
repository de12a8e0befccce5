"""Values that go to computed places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.dtype import int64
from ...core.scalar.builder import Expr
from ...core.shape import Shape, size_of
from ..storage import View
from .base import WAYS, LoopNest, Operand, Origins, Output, operations_each

if TYPE_CHECKING:
    from ..checks import Verifier
    from ..text import Text


@dataclass(frozen=True, slots=True)
class ScatterKernel(LoopNest):
    """Values that go to computed places of a result which is there already.

    loops      sizes: first those whose turns touch different elements, then those whose turns may
               meet, which run in order, and last a row of different elements
    apart      how many loops are of the first kind
    operands   what is read, and last the result; strides one per loop
    offset     how far behind the result's place for the loops a value goes
    way        one of WAYS, or "set"
    """

    kind = "scatter"

    name: str
    loops: Shape
    apart: int
    operands: tuple[Operand, ...]
    offset: Expr
    value: Expr
    way: str
    origins: Origins = ()
    iotas: tuple[Shape, ...] = ()
    flag: View | None = None

    @property
    def written(self) -> frozenset[int]:
        """Return the result."""
        return frozenset((len(self.operands) - 1,))

    @property
    def outputs(self) -> list[Output]:
        """Return what is computed for each element."""
        last = len(self.operands) - 1
        return [Output(last, self.value), Output(last, self.offset)]

    @property
    def roots(self) -> list[Expr]:
        """Return where values go, and what they are."""
        return [self.offset, self.value]

    @property
    def operations(self) -> int:
        """Count one for each value that goes somewhere, and what is computed of it."""
        return int(size_of(self.loops) * (1 + operations_each([self.value])))

    def verify(self, v: Verifier) -> None:
        """Check the loops, the values and where they go."""
        v.loops(self, self.iotas)
        if not 0 <= self.apart < len(self.loops) or self.way not in (*WAYS, "set"):
            v.fail(f"{self.apart} of {len(self.loops)} loops cannot scatter by {self.way!r}")
        v.expressions(self.roots, self.views, iotas=len(self.iotas), flag=self.flag)
        v.dtype(self.offset.dtype, int64, "the offset")
        v.dtype(self.value.dtype, self.operands[-1].view.dtype, "the value")
        v.operands(self, moved=self.written)

    def lines(self, text: Text) -> list[str]:
        """Return its loops, and what goes where."""
        (target,) = (text.operand(self, i) for i in self.written)
        stored = [("offset", self.offset, None), (f"{target}[offset]", self.value, self.way)]
        return [text.head(self), *text.stores(stored, self, self.iotas)]
