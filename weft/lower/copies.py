"""Kernels that copy a view, or fill it with zeros."""

from __future__ import annotations

from ..core.scalar.builder import ScalarBuilder
from .kernels import Kernel, Operand, Output, RowKernel
from .loops import collapse
from .storage import View


def copy_kernel(name: str, source: View, target: View) -> RowKernel:
    """Return the kernel that copies one view to another of its shape."""
    loops, strides = collapse(source.shape, [source.strides, target.strides], None)
    value = ScalarBuilder().load(0, source.dtype)
    operands = tuple(Operand(v, s) for v, s in zip((source, target), strides, strict=True))
    return RowKernel(name, loops, operands, (Output(1, value),))


def copied_views(kernel: Kernel) -> tuple[View, View] | None:
    """Return from where to where a kernel copies all of a buffer; None if it does anything else."""
    if not isinstance(kernel, RowKernel) or len(kernel.operands) != 2:
        return None
    (output,) = kernel.outputs if len(kernel.outputs) == 1 else (None,)
    if output is None or output.way is not None or output.operand != 1:
        return None
    if output.value.kind != "load" or output.value.data != 0:
        return None
    source, target = (operand.view for operand in kernel.operands)
    same = source.dtype == target.dtype and source.strides == target.strides
    return (source, target) if source.whole and target.whole and same else None


def fill_kernel(name: str, target: View) -> RowKernel:
    """Return the kernel that writes zeros."""
    loops, (strides,) = collapse(target.shape, [target.strides], None)
    zero = ScalarBuilder().constant(0, target.dtype)
    return RowKernel(name, loops, (Operand(target, strides),), (Output(0, zero),))
