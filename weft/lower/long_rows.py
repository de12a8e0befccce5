"""Reduce few long rows by blocks, so that several threads can share a row.

A row is cut into blocks of fixed length, whatever the number of threads, and what is left over.
Each block is reduced for itself; a last kernel combines their results, in order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.dim import Dim
from ..core.scalar.builder import PLACED, Expr, ScalarBuilder, postorder, substituted
from ..core.shape import Shape
from .kernels import Operand, Output, RowKernel
from .storage import View, contiguous_strides

if TYPE_CHECKING:
    from .lowering import Lowering

BLOCK = 1 << 14  # elements
TIED = PLACED | {"index", "reduce"}


class LongRows:
    """Cuts a kernel of long rows into kernels of blocks and one that combines them."""

    def __init__(self, lowered: Lowering, kernel: RowKernel) -> None:
        self.lowered = lowered
        self.kernel = kernel
        self.rows: Shape = kernel.loops[:-1]
        self.whole, self.rest = divmod(kernel.columns, BLOCK)
        order = postorder([output.value for output in kernel.outputs])
        self.reductions = [e for e in order if e.kind == "reduce"]
        # A rest that only a run knows may be nothing: its result changes nothing then.
        self.has_rest = isinstance(self.rest, Dim) or self.rest > 0
        self.blocks = self.whole + int(self.has_rest)
        self.partial = [self._partial(e) for e in self.reductions]

    @staticmethod
    def suits(kernel: RowKernel) -> bool:
        """Tell whether there are rows, one pass does it all, and no element needs its place."""
        if 0 in kernel.loops:
            return False
        order = postorder([output.value for output in kernel.outputs])
        reductions = [e for e in order if e.kind == "reduce"]
        waits = [o.value for o in kernel.outputs if kernel.operands[o.operand].strides[-1]]
        waits += [e.args[0] for e in reductions]
        return bool(reductions) and not any(e.kind in TIED for e in postorder(waits))

    def add(self) -> None:
        """Add the kernels."""
        kernels = self.lowered.kernels
        name = self.kernel.name
        kernels.append(self._part(f"{name} (blocks)", (self.whole, BLOCK), 0))
        if self.has_rest:
            kernels.append(self._part(f"{name} (rest)", (self.rest,), self.whole))
        kernels.append(self._combination())

    def _partial(self, reduction: Expr) -> View:
        shape = (*self.rows, self.blocks)
        return self.lowered.scratch(shape, reduction.dtype, f"blocks of {self.kernel.name}")

    def _part(self, name: str, loops: Shape, first: int) -> RowKernel:
        """Return the kernel for the blocks from `first` on: a whole number, or what is left."""
        operands = [self._from(operand, first, len(loops) > 1) for operand in self.kernel.operands]
        full = [o for o in self.kernel.outputs if self.kernel.operands[o.operand].strides[-1]]
        outputs = list(full)
        for reduction, view in zip(self.reductions, self.partial, strict=True):
            place = replace(view, offset=view.offset + first)
            strides = (*view.strides[:-1], *((1, 0) if len(loops) > 1 else (0,)))
            outputs.append(Output(len(operands), reduction))
            operands.append(Operand(place, strides))
        return RowKernel(
            name, (*self.rows, *loops), tuple(operands), tuple(outputs), self.kernel.origins
        )

    def _from(self, operand: Operand, first: int, several: bool) -> Operand:
        *strides, last = operand.strides
        view = replace(operand.view, offset=operand.view.offset + first * BLOCK * last)
        return Operand(view, (*strides, *((BLOCK * last,) if several else ()), last))

    def _combination(self) -> RowKernel:
        """Return the kernel that reduces the results of blocks, and what follows from them."""
        builder, operands = ScalarBuilder(), list[Operand]()
        known: dict[Expr, Expr] = {}
        for reduction, view in zip(self.reductions, self.partial, strict=True):
            load = builder.load(len(operands), reduction.dtype)
            known[reduction] = builder.reduce(reduction.data, load)
            operands.append(Operand(view, contiguous_strides(view.shape)))
        wanted = [o for o in self.kernel.outputs if not self.kernel.operands[o.operand].strides[-1]]
        for expr in postorder([o.value for o in wanted]):
            if expr.kind == "load" and not self.kernel.operands[expr.data].strides[-1]:
                known[expr] = builder.load(len(operands), expr.dtype)
                operands.append(self.kernel.operands[expr.data])
        outputs = []
        for output in wanted:
            outputs.append(Output(len(operands), substituted(builder, output.value, known)))
            operands.append(self.kernel.operands[output.operand])
        loops = (*self.rows, self.blocks)
        return RowKernel(
            self.kernel.name, loops, tuple(operands), tuple(outputs), self.kernel.origins
        )
