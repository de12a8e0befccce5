"""The reference back end as a device: memory is arrays, and a program is run as it stands."""

from __future__ import annotations

import numpy as np

from ...core.dtype import DType
from ...core.shape import Shape
from ...lower.program import KernelProgram, Sources
from ...plan.device import Device
from ..execution import Execution
from ..protocol import Array, Backend, Memories
from .kernels import run_kernels
from .memory import Memory


class ReferenceBackend:
    """Runs kernel programs by NumPy."""

    def describe(self) -> Device:
        """Return what is known about the device."""
        return Device("reference", 1, f"NumPy {np.__version__}")

    def compile(self, program: KernelProgram) -> KernelProgram:
        """Return the program: its kernels say all that is needed."""
        return program

    def allocate(self, shape: Shape, dtype: DType) -> Array:
        """Return a new array."""
        return np.zeros(shape, dtype)

    def copy_in(self, array: Array, memory: Array) -> None:
        """Copy an array."""
        memory[...] = array

    def copy_out(self, memory: Array) -> Array:
        """Return a copy of an array."""
        return memory.copy()

    def run(self, code: KernelProgram, memories: Memories) -> None:
        """Run the kernels one after another."""
        memory = Memory()
        for number, array in memories.items():
            memory.put(code.buffers[number], array)
        with np.errstate(all="ignore"):
            run_kernels(code.kernels, memory)
        memories.update((buffer.number, array) for buffer, array in memory.objects.items())

    def synchronize(self) -> None:
        """Return at once: nothing runs on."""

    def prepare(self, program: KernelProgram, sources: Sources) -> Execution:
        """Return a program ready to run on arrays of the host."""
        return Execution(self, program, sources)


BACKEND: Backend = ReferenceBackend()
