"""Verify what was planned for a program: where its buffers lie, and how its kernels are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

from ..core.dim import Dim, size_max, surely_less
from ..core.shape import Size
from .kernels import CallKernel, Control, Kernel, walk
from .lifetimes import lifetimes
from .memory import MemoryPlan
from .program import KernelProgram
from .schedule import Region, RunSchedule, flattened
from .storage import Buffer, buffers_behind

Blame = Callable[[Any, str], NoReturn]  # refuses a program for a buffer or a kernel


def verify_memory(program: KernelProgram, memory: MemoryPlan, blame: Blame) -> None:
    """Check that all has a place, that of the arena within it and apart while both live."""
    for buffer in program.used_buffers:
        if buffer not in memory.places and buffer.kind != "object":
            blame(buffer, f"{buffer} has no place in memory")
    alive = lifetimes(program.kernels)
    ends = {buffer for view in program.outputs for buffer in buffers_behind(view.buffer)}
    placed: list[tuple[Size, int, int, Buffer]] = []
    for buffer, start in sorted(memory.in_arena().items(), key=lambda item: item[1]):
        birth, death = alive.spans.get(buffer, (0, 0))
        death, end = (alive.end if buffer in ends else death), start + buffer.nbytes
        if not 0 <= start <= end <= memory.arena_bytes:
            blame(buffer, f"{buffer} at {start} is outside of {memory.arena_bytes} bytes")
        placed = [item for item in placed if item[0] > start]
        for _, first, last, other in placed if end > start else ():
            if first <= death and birth <= last:
                blame(buffer, f"{buffer} and {other} lie in the same memory at the same time")
        placed.append((end, birth, death, buffer))


def verify_schedule(program: KernelProgram, schedule: RunSchedule, blame: Blame) -> None:
    """Check that each kernel is called once, and that those of a region do not meet in memory."""
    assert program.memory is not None, "a schedule follows from where buffers lie"
    called = [call for call, _ in flattened(schedule.steps) if isinstance(call, CallKernel)]
    found = {id(kernel) for kernel in called}
    count = len(called)
    for stretch in schedule.stretches:
        for region, _ in flattened(stretch):
            _verify_pieces(region, blame)
            _verify_apart(region, program.memory, blame)
            found |= {id(piece.kernel) for piece in region.pieces}
            count += len(region.pieces)
    for kernel in walk(program.kernels):
        if id(kernel) not in found and not isinstance(kernel, Control):
            blame(kernel, "is never called")
    if len(found) < count:
        blame(program.kernels[-1], "it, or one before it, is called twice")


def _verify_pieces(region: Region, blame: Blame) -> None:
    for piece in region.pieces:
        kernel = piece.kernel
        if list(piece.views) != kernel.views or piece.written != kernel.written:
            blame(kernel, "is called with other memory than it takes")
        least = size_max(1, piece.units)
        if surely_less(piece.chunks, 1) or surely_less(least, piece.chunks):
            blame(kernel, f"has {piece.units} units of work in {piece.chunks} chunks")


class _Span(NamedTuple):
    """Memory that a kernel touches, as a whole."""

    memory: tuple[bool, int]
    start: Size
    end: Size
    writes: bool
    kernel: Kernel


def _verify_apart(region: Region, memory: MemoryPlan, blame: Blame) -> None:
    active: list[_Span] = []
    for span in sorted(_spans(region, memory), key=lambda span: span[:2]):
        active = [a for a in active if a.memory == span.memory and a.end > span.start]
        for other in active:
            if (span.writes or other.writes) and span.kernel is not other.kernel:
                blame(span.kernel, f"meets {other.kernel.name} in memory, at the same time")
        active.append(span)


def _spans(region: Region, memory: MemoryPlan) -> Iterator[_Span]:
    for piece in region.pieces:
        for i, view in enumerate(piece.views):
            (buffer, *_) = buffers_behind(view.buffer)
            place = memory.places[buffer]
            where = (place.is_argument, place.entry)
            # What is empty meets nobody; what has a size that runs are told is alone there.
            end = place.offset + (1 if isinstance(buffer.nbytes, Dim) else buffer.nbytes)
            if end > place.offset:
                yield _Span(where, place.offset, end, i in piece.written, piece.kernel)
