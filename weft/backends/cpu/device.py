"""The CPU as planning sees it."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.shape import Size
from ...core.threads import get_num_threads
from ...lower.at_sizes import has_sizes
from ...lower.kernels import GemmKernel, Kernel
from ...plan.device import Device, Work
from .codegen.gemm.kernel import scratch_shape
from .codegen.gemm.prologue import prologue_pays
from .codegen.target import Target, host
from .codegen.work import work_of


@dataclass(frozen=True)
class CpuDevice(Device):
    """A processor, and how many threads programs may use of it."""

    target: Target

    def prologue_pays(self, before: GemmKernel, after: GemmKernel, side: str) -> bool:
        """Tell whether a product that computes an operand itself takes less time than before."""
        if has_sizes(after):  # where it pays depends on how often an operand is packed
            return False
        return prologue_pays(self.target, self.threads, before, after, side)

    def scratch_shape(self, kernel: GemmKernel) -> tuple[int, Size] | None:
        """Return the areas of memory that a product packs operands into, and their bytes."""
        return scratch_shape(kernel, self.target, self.threads)

    def work(self, kernel: Kernel) -> Work:
        """Return the work of a kernel."""
        return work_of(kernel, self.target, self.threads)


def cpu_device(target: Target | None = None) -> CpuDevice:
    """Return this machine, or another one to write code for, with as many threads as are set."""
    target = host() if target is None else target
    machine = f"{target.cpu}, {target.vector_bytes}-byte vectors"
    return CpuDevice("cpu", get_num_threads(), machine, target)
