"""When buffers are alive: from the first kernel that touches them to the last.

Kernels are numbered in the order in which they run, those of bodies too, so that what lives within
one step of a loop shares memory with the rest of the step. What lives longer than a step (it is
touched outside of the loop as well) is alive during the whole loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from .kernels import Kernel, buffers_of
from .storage import Buffer, buffers_behind

Span = tuple[int, int]


def uses_of(kernels: Sequence[Kernel | None]) -> dict[Buffer, list[int]]:
    """Return the positions of the kernels that touch each buffer, themselves or inside."""
    found: dict[Buffer, list[int]] = {}
    for i, kernel in enumerate(kernels):
        for buffer in () if kernel is None else buffers_of(kernel):
            found.setdefault(buffer, []).append(i)
    return found


@dataclass
class Lifetimes:
    """The spans of buffers, in numbers of kernels, and the number behind the last."""

    spans: dict[Buffer, Span]
    end: int


@dataclass(eq=False)
class _Region:
    """A list of kernels inside a kernel, which runs from one number to another."""

    start: int = 0
    end: int = 0


def lifetimes(kernels: Sequence[Kernel]) -> Lifetimes:
    """Return when each buffer that kernels touch is alive."""
    touches: dict[Buffer, list[tuple[int, tuple[_Region, ...]]]] = {}
    numbers = count()
    _number(kernels, (), numbers, touches)
    spans = {buffer: _span(found) for buffer, found in touches.items()}
    return Lifetimes(spans, next(numbers))


def _number(
    kernels: Sequence[Kernel],
    path: tuple[_Region, ...],
    numbers: count[int],
    touches: dict[Buffer, list[tuple[int, tuple[_Region, ...]]]],
) -> None:
    for kernel in kernels:
        start, regions = next(numbers), []
        for part in kernel.parts:
            regions.append(_Region())
            _number(part, (*path, regions[-1]), numbers, touches)
        end = next(numbers) if regions else start
        for region in regions:  # each part of a loop runs again after the others
            region.start, region.end = start, end
        for buffer in _touched(kernel):
            touches.setdefault(buffer, []).extend([(start, path), (end, path)])


def _touched(kernel: Kernel) -> list[Buffer]:
    """Return the memory that a kernel touches itself; that behind windows, and their words."""
    return [buffer for view in kernel.views for buffer in buffers_behind(view.buffer)]


def _span(found: Sequence[tuple[int, tuple[_Region, ...]]]) -> Span:
    """Return from when to when a buffer lives that is touched at times in regions."""
    paths = [path for _, path in found]
    shared = 0
    while all(len(path) > shared and path[shared] is paths[0][shared] for path in paths):
        shared += 1
    spans = [
        (path[shared].start, path[shared].end) if len(path) > shared else (time, time)
        for time, path in found
    ]
    return min(start for start, _ in spans), max(end for _, end in spans)
