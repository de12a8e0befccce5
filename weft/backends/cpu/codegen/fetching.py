"""Decide which pass over a row asks for the next row.

The first pass over a row waits for memory, the others compute on what the caches hold by then, and
memory idles. A machine looks ahead within a row, but hardly across the ends of short ones. So the
pass that computes most asks, line by line, for the same places of the next row.
"""

from __future__ import annotations

from ....core.dim import typical
from ....lower.kernels import RowKernel
from .cost import weight_of
from .phases import Phases
from .streaming import footprint
from .target import Target

LINE_BYTES = 64
LEAST_ROW_BYTES = 512  # machines fetch what follows so soon by themselves
PART_OF_CACHE = 8  # of the second cache that rows to come may take


def fetching_pass(kernel: RowKernel, phases: Phases, target: Target) -> int | None:
    """Return the pass during which the next row is fetched, None if that is of no use."""
    if len(kernel.loops) == 1 or phases.count == 1 or footprint(kernel) <= target.l2_bytes:
        return None
    sizes = [kernel.operands[i].view.dtype.itemsize for i in fetched_operands(kernel, phases)]
    row_bytes = typical(kernel.columns) * sum(sizes)
    if not LEAST_ROW_BYTES <= row_bytes <= target.l2_bytes // PART_OF_CACHE:
        return None
    weights = [_weight_of_pass(phases, phase) for phase in range(phases.count)]
    return max(range(1, phases.count), key=lambda phase: (weights[phase], phase))


def fetched_operands(kernel: RowKernel, phases: Phases) -> list[int]:
    """Return the operands that are read element by element, and in another place in each row."""
    read = {e.data for e in phases.order if e.kind == "load"}
    strides = {i: kernel.operands[i].strides for i in sorted(read)}
    return [i for i, (*rows, along) in strides.items() if along == 1 and rows and rows[-1]]


def _weight_of_pass(phases: Phases, phase: int) -> float:
    """Return the cost of what a pass computes for an element and no pass before it."""
    new = (e for e in phases.order if phases.is_full(e) and phases.phase[id(e)] == phase)
    return sum(weight_of(e) for e in new)
