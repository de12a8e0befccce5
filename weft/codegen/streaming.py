"""Decide which results are written past the caches.

An ordinary store reads the line it writes to, and puts out another one. That is wasted where a
kernel goes through more than the caches hold: nobody will find there what it wrote first.
"""

from __future__ import annotations

from ..lower.kernels import Operand, RowKernel
from .target import Target


def streamed_operands(kernel: RowKernel, target: Target) -> frozenset[int]:
    """Return the operands of a kernel that are best written past the caches."""
    buffers = {operand.view.buffer for operand in kernel.operands}
    if sum(buffer.nbytes for buffer in buffers) <= target.l3_bytes:
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


def _in_whole_vectors(operand: Operand, target: Target) -> bool:
    """Tell whether all rows begin at a vector's boundary, if the first one does."""
    *rows, along = operand.strides
    size = operand.view.dtype.itemsize
    fits = all(step * size % target.vector_bytes == 0 for step in rows)
    return along == 1 and fits and operand.view.dtype.kind == "f"
