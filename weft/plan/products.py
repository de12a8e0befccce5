"""Plan matrix products: operands that they compute themselves, and memory to pack them into."""

from __future__ import annotations

from dataclasses import replace

from ..core.dtype import uint8
from ..lower.kernels import GemmKernel
from ..lower.program import KernelProgram, NewBuffers
from .device import Device
from .prologues import fuse_prologues


def with_prologues(program: KernelProgram, device: Device) -> KernelProgram:
    """Return a program with operands of products computed by the products, where that pays."""
    kept = {view.buffer for view in program.outputs}
    return program.with_kernels(fuse_prologues(program.kernels, kept, device.prologue_pays))


def with_scratch(program: KernelProgram, device: Device) -> KernelProgram:
    """Return a program with memory of the arena for products that need it."""
    new, kernels = NewBuffers(program), list(program.kernels)
    for i, kernel in enumerate(kernels):
        shape = device.scratch_shape(kernel) if isinstance(kernel, GemmKernel) else None
        if isinstance(kernel, GemmKernel) and shape is not None:
            kernels[i] = replace(kernel, scratch=new.arena(shape, uint8, f"{kernel.name} scratch"))
    return program.with_kernels(kernels, new)
