"""How much work kernels are: the units that their functions count in, and what these cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....lower.kernels import (
    ColumnKernel,
    GemmKernel,
    Kernel,
    RowKernel,
    ScanKernel,
    ScatterKernel,
)
from ....plan.device import Work
from .columns import column_lanes, strips
from .cost import column_cost, gemm_cost, row_cost, scan_cost, scatter_cost
from .gemm.kernel import gemm_chunks, gemm_units
from .scans import scan_units
from .scatter import scatter_units
from .target import Target


def work_of(kernel: Kernel, target: Target, threads: int) -> Work:
    """Return the work of a kernel, if it is divided among so many threads."""
    return _WORK[type(kernel)](kernel, target, threads)


def _row(kernel: RowKernel, target: Target, threads: int) -> Work:
    return Work(kernel.units, 0, row_cost(kernel, target))


def _column(kernel: ColumnKernel, target: Target, threads: int) -> Work:
    units = strips(kernel, column_lanes(kernel, target.lanes))
    return Work(units, 0, column_cost(kernel, target))


def _gemm(kernel: GemmKernel, target: Target, threads: int) -> Work:
    chunks = gemm_chunks(kernel, target, threads)
    return Work(gemm_units(kernel, target), chunks, gemm_cost(kernel))


def _scatter(kernel: ScatterKernel, target: Target, threads: int) -> Work:
    return Work(scatter_units(kernel), 0, scatter_cost(kernel))


def _scan(kernel: ScanKernel, target: Target, threads: int) -> Work:
    return Work(scan_units(kernel, target), 0, scan_cost(kernel))


_WORK: dict[type, Callable[[Any, Target, int], Work]] = {
    RowKernel: _row,
    ColumnKernel: _column,
    GemmKernel: _gemm,
    ScatterKernel: _scatter,
    ScanKernel: _scan,
}
