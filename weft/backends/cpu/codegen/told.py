"""What code for many sizes is told beside sizes: how a kernel is computed at those of a run."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....core.dim import SizeVar
from ....lower.at_sizes import AtSizes
from ....lower.kernels import GemmKernel, Kernel
from ....plan.device import Work
from .cost import gemm_cost
from .gemm.sized import SizedProduct, product_words, sized_chunks
from .target import Target
from .work import work_of


class Told(NamedTuple):
    """The work of a kernel at the sizes of a run, and what its words are that are no sizes."""

    work: Work
    words: dict[SizeVar, int]


def told_about(kernel: Kernel, plan: Any, at: AtSizes, target: Target, threads: int) -> Told:
    """Return what is told about a kernel, given at the sizes of a run, whose code has a plan."""
    if isinstance(plan, SizedProduct):
        assert isinstance(kernel, GemmKernel)
        words, made = product_words(plan, kernel, at, threads)
        return Told(Work(made.units, sized_chunks(plan, made, threads), gemm_cost(kernel)), words)
    return Told(work_of(kernel, target, threads), {})
