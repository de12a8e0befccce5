"""Decide how a kernel uses the caches: what it asks for early, and what it writes past them.

An ordinary store reads the line it writes to, and puts out another one. That is wasted where a
kernel goes through more than the caches hold: nobody will find there what it wrote first.

A processor guesses what will be read next, but not beyond a page, and starts anew in each. So a
kernel asks for what lies ahead, unless the caches hold it all.
"""

from __future__ import annotations

from math import prod

from ....core.dim import typical
from ....core.shape import Size
from ....lower.kernels import Operand, RowKernel
from .phases import Phases
from .target import Target

AHEAD = 4096  # bytes: what a core reads of one array while memory answers, and a page
_SURE_PART = 0.5  # of the third cache that a kernel finds its own data in; others use it too


def streamed_operands(kernel: RowKernel, target: Target) -> frozenset[int]:
    """Return the operands of a kernel that are best written past the caches."""
    if footprint(kernel) <= target.l3_bytes:
        return frozenset()
    written = {output.operand: output for output in kernel.outputs}
    read = {o.view.buffer for i, o in enumerate(kernel.operands) if i not in written}
    return frozenset(
        i
        for i, output in written.items()
        if output.way is None
        and kernel.operands[i].view.buffer not in read
        and _in_whole_vectors(kernel.operands[i], target)
    )


def operands_read_ahead(kernel: RowKernel, phases: Phases, target: Target) -> frozenset[int]:
    """Return the operands that a kernel of one pass asks for while they are still ahead.

    They lie in one piece: what is ahead is what comes next, in this row or in one that follows.
    """
    again = any(phases.roots(phase) for phase in range(1, phases.count))
    if again or footprint(kernel) <= target.l3_bytes * _SURE_PART:
        return frozenset()
    read = {expr.data for expr in phases.order if expr.kind == "load"}
    return frozenset(i for i in read if _is_long_piece(kernel.operands[i], kernel.loops, target))


def footprint(kernel: RowKernel) -> int:
    """Return how many bytes a kernel goes through, at usual sizes: it decides about time only."""
    buffers = {operand.view.buffer for operand in kernel.operands}
    return int(sum(typical(buffer.nbytes) for buffer in buffers))


def _is_long_piece(operand: Operand, loops: tuple[int, ...], target: Target) -> bool:
    steps = [(step, prod(loops[k + 1 :])) for k, step in enumerate(operand.strides) if loops[k] > 1]
    whole = all(step == size for step, size in steps)
    return whole and typical(operand.view.buffer.nbytes) > target.l2_bytes


def _divides(factor: int, size: Size) -> bool:
    """Tell whether a number is surely a multiple of another."""
    rest = size % factor
    return rest.__class__ is int and rest == 0


def _in_whole_vectors(operand: Operand, target: Target) -> bool:
    """Tell whether all rows begin at a vector's boundary, if the first one does."""
    *rows, along = operand.strides
    size = operand.view.dtype.itemsize
    fits = all(_divides(target.vector_bytes, step * size) for step in rows)
    return along == 1 and fits and operand.view.dtype.kind == "f"
