"""A device as planning sees it: what a back end says of the machine that it writes code for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..core.shape import Size
from ..lower.kernels import GemmKernel, Kernel


class Work(NamedTuple):
    """The work of a kernel.

    units    parts that it can be divided into
    chunks   parts that it must be divided into, if several threads share it; 0: any number
    cost     nanoseconds on one thread, estimated
    """

    units: int
    chunks: int
    cost: float


@dataclass(frozen=True)
class Device:
    """What is known about a device; a back end that plans nothing needs no more than this.

    name      its name
    threads   how many of them share the work
    machine   a further description, for people: the processor, its vectors
    own_memory
              whether tensors there hold what `allocate` of the back end returned; else they are
              arrays of the host, which the device works in
    speed, copy_rate, launch
              for choosing between devices: how much faster than the CPU it computes, bytes that
              are copied to or from it in a nanosecond, nanoseconds until a kernel begins
    """

    name: str
    threads: int
    machine: str
    own_memory: bool = field(default=False, kw_only=True)
    speed: float = field(default=1.0, kw_only=True)
    copy_rate: float = field(default=4.0, kw_only=True)
    launch: float = field(default=2000.0, kw_only=True)

    def prologue_pays(self, before: GemmKernel, after: GemmKernel, side: str) -> bool:
        """Tell whether a product that computes the operand of a side takes less time than before.

        It may not change a bit of the result.
        """
        return False

    def scratch_shape(self, kernel: GemmKernel) -> tuple[int, Size] | None:
        """Return the areas of memory that a product packs operands into, and their bytes.

        None if it needs none that the program gives it.
        """
        return None

    def work(self, kernel: Kernel) -> Work:
        """Return the work of a kernel."""
        return Work(1, 1, 0.0)
