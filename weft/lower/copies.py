"""Kernels that copy a view, or fill it with zeros."""

from __future__ import annotations

from ..core.scalar.builder import ScalarBuilder
from .kernels import Operand, Output, RowKernel
from .loops import collapse
from .storage import View


def copy_kernel(name: str, source: View, target: View) -> RowKernel:
    """Return the kernel that copies one view to another of its shape."""
    loops, strides = collapse(source.shape, [source.strides, target.strides], None)
    value = ScalarBuilder().load(0, source.dtype)
    operands = tuple(Operand(v, s) for v, s in zip((source, target), strides, strict=True))
    return RowKernel(name, loops, operands, (Output(1, value),))


def fill_kernel(name: str, target: View) -> RowKernel:
    """Return the kernel that writes zeros."""
    loops, (strides,) = collapse(target.shape, [target.strides], None)
    zero = ScalarBuilder().constant(0, target.dtype)
    return RowKernel(name, loops, (Operand(target, strides),), (Output(0, zero),))
