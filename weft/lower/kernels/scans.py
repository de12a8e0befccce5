"""Recurrences along a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.scalar.builder import Expr
from ...core.shape import Shape, size_of
from .base import LoopNest, Operand, Origins, operations_each

if TYPE_CHECKING:
    from ..checks import Verifier
    from ..text import Text


@dataclass(frozen=True, slots=True)
class ScanKernel(LoopNest):
    """A recurrence along the first loop, for each turn of the others.

    loops      sizes: the steps, other axes, and last those elements that lie one behind another
    operands   what is read, and last the result; strides one per loop
    value      what a step stores
    carried    values from step to step: a constant before the first, an expression after each
    """

    kind = "scan"

    name: str
    loops: Shape
    operands: tuple[Operand, ...]
    value: Expr
    carried: tuple[tuple[Expr, Expr], ...]
    origins: Origins = ()

    @property
    def written(self) -> frozenset[int]:
        """Return the result."""
        return frozenset((len(self.operands) - 1,))

    @property
    def operations(self) -> int:
        """Count what a step computes, for each element."""
        return int(size_of(self.loops) * operations_each(self.roots))

    @property
    def roots(self) -> list[Expr]:
        """Return what a step stores, and what it carries on."""
        return [self.value, *(after for _, after in self.carried)]

    def verify(self, v: Verifier) -> None:
        """Check the loops and what a step computes."""
        v.loops(self)
        if len(self.loops) < 2:
            v.fail("a scan has steps and elements")
        for first, after in self.carried:
            if first.kind != "const":
                v.fail(f"a carried value starts with {first}, not with a constant")
            v.dtype(after.dtype, first.dtype, "a carried value")
        v.expressions(self.roots, self.views, carried=[first.dtype for first, _ in self.carried])
        v.dtype(self.value.dtype, self.operands[-1].view.dtype, "the value")
        v.operands(self)

    def lines(self, text: Text) -> list[str]:
        """Return its loops, what is carried and what is stored."""
        (target,) = (text.operand(self, i) for i in self.written)
        stored = [(f"c{i}'", after, None) for i, (_, after) in enumerate(self.carried)]
        starts = ", ".join(f"c{i} = {text.constant(c)}" for i, (c, _) in enumerate(self.carried))
        head = f"{text.head(self)}, from {starts}" if starts else text.head(self)
        return [head, *text.stores([*stored, (target, self.value, None)], self)]
