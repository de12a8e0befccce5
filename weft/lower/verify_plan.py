"""Verify what was planned for a program: where its buffers lie, and how its kernels are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ..core.dim import Dim, size_max, surely_less
from ..core.shape import Size
from .kernels import CallKernel, Control, Kernel, walk
from .lifetimes import lifetimes
from .memory import MemoryPlan
from .program import KernelProgram
from .schedule import Piece, Region, RunSchedule, chains_in, flattened
from .storage import Buffer, buffers_behind

Blame = Callable[[Any, str], NoReturn]  # refuses a program for a buffer or a kernel


def verify_memory(program: KernelProgram, memory: MemoryPlan, blame: Blame) -> None:
    """Check that all has a place, that of the arena within it and apart while both live."""
    for buffer in program.used_buffers:
        if buffer not in memory.places and buffer.kind != "object":
            blame(buffer, f"{buffer} has no place in memory")
    ends = [buffer for view in program.outputs for buffer in buffers_behind(view.buffer)]
    alive = lifetimes(program.kernels).until_the_end(ends)
    placed: list[tuple[Size, Buffer]] = []
    for buffer, start in sorted(memory.in_arena().items(), key=lambda item: item[1]):
        end = start + buffer.nbytes
        if not 0 <= start <= end <= memory.arena_bytes:
            blame(buffer, f"{buffer} at {start} is outside of {memory.arena_bytes} bytes")
        placed = [item for item in placed if item[0] > start]
        for _, other in placed if end > start else ():
            if alive.meet(buffer, other):
                blame(buffer, f"{buffer} and {other} lie in the same memory at the same time")
        placed.append((end, buffer))


def verify_schedule(program: KernelProgram, schedule: RunSchedule, blame: Blame) -> None:
    """Check that each kernel is called once, and that none meets in memory what runs beside it."""
    assert program.memory is not None, "a schedule follows from where buffers lie"
    called = [call for call, _ in flattened(schedule.steps) if isinstance(call, CallKernel)]
    found = {id(kernel) for kernel in called}
    count = len(called)
    for stretch in schedule.stretches:
        for chains in chains_in(stretch):
            _verify_apart([_pieces_of(chain) for chain in chains], program.memory, blame)
        for region, _ in flattened(stretch):
            _verify_pieces(region, blame)
            _verify_apart([[piece] for piece in region.pieces], program.memory, blame)
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
    group: int


def _pieces_of(chain: Sequence[Any]) -> list[Piece]:
    return [piece for region, _ in flattened(chain) for piece in region.pieces]


def _verify_apart(groups: Sequence[Sequence[Piece]], memory: MemoryPlan, blame: Blame) -> None:
    """Check that of pieces in groups that run side by side none writes what another touches."""
    active: list[_Span] = []
    for span in sorted(_spans(groups, memory), key=lambda span: span[:2]):
        active = [a for a in active if a.memory == span.memory and a.end > span.start]
        for other in active:
            if (span.writes or other.writes) and span.group != other.group:
                blame(span.kernel, f"meets {other.kernel.name} in memory, at the same time")
        active.append(span)


def _spans(groups: Sequence[Sequence[Piece]], memory: MemoryPlan) -> Iterator[_Span]:
    for group, piece in ((i, piece) for i, pieces in enumerate(groups) for piece in pieces):
        for buffer, writes in piece.touched():
            place = memory.places[buffer]
            where = (place.is_argument, place.entry)
            # What is empty meets nobody; what has a size that runs are told is alone there.
            end = place.offset + (1 if isinstance(buffer.nbytes, Dim) else buffer.nbytes)
            if end > place.offset:
                yield _Span(where, place.offset, end, writes, piece.kernel, group)
