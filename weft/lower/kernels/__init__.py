"""Kernels: what a program is made of. Each kind is declared in a file of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..storage import Buffer, View, buffers_behind
from .base import Kernel, LoopNest, Operand, Origins, Output, reached
from .calls import CallKernel
from .columns import ColumnKernel
from .control import BranchKernel, LoopKernel, all_within
from .gemm import GemmKernel, Prologue, Windows
from .rows import RowKernel
from .scans import ScanKernel
from .scatter import ScatterKernel
from .together import TogetherKernel

__all__ = [
    "BranchKernel",
    "CallKernel",
    "ColumnKernel",
    "Control",
    "GemmKernel",
    "Kernel",
    "LoopKernel",
    "LoopNest",
    "Operand",
    "Origins",
    "Output",
    "Prologue",
    "RowKernel",
    "ScanKernel",
    "ScatterKernel",
    "TogetherKernel",
    "Windows",
    "all_within",
    "buffers_of",
    "bytes_moved",
    "calls_library",
    "may_fail",
    "reached",
    "walk",
    "written_buffers",
]


Control = LoopKernel | BranchKernel | TogetherKernel  # kernels that hold kernels


def walk(kernels: Iterable[Kernel]) -> Iterator[Kernel]:
    """Yield kernels and all that are inside of them."""
    for kernel in kernels:
        yield kernel
        for part in kernel.parts:
            yield from walk(part)


def calls_library(kernel: Kernel) -> bool:
    """Tell whether a kernel, or one inside it, is a call from Python."""
    return any(isinstance(k, CallKernel) for k in walk([kernel]))


def may_fail(kernel: Kernel) -> bool:
    """Tell whether a kernel, or one inside it, can find that a run must be given up.

    A loop can: by Ctrl-C.
    """
    return any(
        isinstance(k, CallKernel | LoopKernel) or getattr(k, "flag", None) is not None
        for k in walk([kernel])
    )


def buffers_of(kernel: Kernel) -> list[Buffer]:
    """Return the memory that a kernel touches, itself or inside; also what is behind windows."""
    views = [view for part in walk([kernel]) for view in part.views]
    found = (part for view in views for part in (view.buffer, *buffers_behind(view.buffer)))
    return list(dict.fromkeys(found))


def written_buffers(kernel: Kernel) -> set[Buffer]:
    """Return the memory that a kernel may write; of all but rows and products, what it touches.

    A window and the buffer that it is part of both are.
    """
    if not isinstance(kernel, RowKernel | GemmKernel):
        return set(buffers_of(kernel))
    views = kernel.views
    found = (views[i].buffer for i in kernel.written)
    return {part for buffer in found for part in (buffer, buffers_behind(buffer)[0])}


def bytes_moved(views: Iterable[View]) -> int:
    """Return the bytes of all elements that views reach, each counted once for each view."""
    return sum(reached(view) * view.dtype.itemsize for view in views)
