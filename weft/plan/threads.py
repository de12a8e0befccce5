"""Divide kernels among threads, in regions: those of one region do not depend on one another.

A region is one call of the thread pool for all its kernels, so that many small ones (the updates of
a hundred parameters) cost as much to start as a single large one. What depends on what follows from
the memory that each reads and writes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count, groupby
from typing import Any

import numpy as np

from ..core.dim import Dim, SizeVar, run_time_size, typical, unknown_size
from ..core.shape import Size
from ..lower.at_sizes import AtSizes, has_sizes
from ..lower.kernels import (
    BranchKernel,
    CallKernel,
    Control,
    Kernel,
    LoopKernel,
    TogetherKernel,
    calls_library,
)
from ..lower.memory import Place
from ..lower.program import KernelProgram
from ..lower.schedule import (
    BranchCalls,
    Holding,
    LoopCalls,
    Piece,
    Region,
    RunSchedule,
    TogetherCalls,
    stretch_name,
)
from ..lower.storage import Buffer
from .device import Device

PARALLEL_FROM = 6000.0  # nanoseconds of work that are worth waking another thread
LEAST_CHUNK = 2500.0
CHUNKS_PER_THREAD = 4

Places = Mapping[Buffer, Place]
Span = tuple[tuple[bool, int], int, int]  # which memory, from where to where


def with_schedule(program: KernelProgram, device: Device) -> KernelProgram:
    """Return a program whose kernels are divided among threads, in stretches that need no host."""
    assert program.memory is not None, "what depends on what follows from where it lies"
    planner = _Planner(program.memory.places, device, sized=program.is_sized)
    schedule = RunSchedule(planner.steps(program.kernels), tuple(planner.stretches))
    kernels = _in_order(schedule) if program.is_sized else program.kernels
    return replace(program, kernels=kernels, schedule=schedule)


def _in_order(schedule: RunSchedule) -> tuple[Kernel, ...]:
    """Return kernels in the order in which they are called: their memory is planned by that."""
    stretches = dict(zip(schedule.names, schedule.stretches, strict=True))
    found: list[Kernel] = []
    for step in schedule.steps:
        for call in stretches[step] if isinstance(step, str) else (step,):
            found += [piece.kernel for piece in call.pieces] if isinstance(call, Region) else []
            found += [call.kernel] if isinstance(call, Holding) else []
            found += [call] if isinstance(call, CallKernel) else []
    return tuple(found)


class _Planner:
    """Collects the stretches of a program as its steps are found."""

    def __init__(self, places: Places, device: Device, *, sized: bool) -> None:
        self.places, self.device, self.sized = places, device, sized
        self.threads = device.threads  # that a region may be divided among
        self.stretches: list[tuple[Any, ...]] = []
        self._regions = count()

    def steps(self, kernels: Sequence[Kernel]) -> tuple[Any, ...]:
        """Return what to run of kernels, in stretches that need no host."""
        steps: list[Any] = []
        for by_host, group in groupby(kernels, calls_library):
            if by_host:
                steps += [k if isinstance(k, CallKernel) else self._around(k, True) for k in group]
            else:
                steps.append(stretch_name(len(self.stretches)))
                self.stretches.append(self._calls(list(group)))
        return tuple(steps)

    def _calls(self, kernels: Sequence[Kernel]) -> tuple[Any, ...]:
        """Return kernels ready to be called: in regions, and in control flow."""
        made: list[Any] = []
        for is_control, group in groupby(kernels, lambda k: isinstance(k, Control)):
            if is_control:
                made += [self._around(kernel, False) for kernel in group]
            else:
                regions = by_level(list(map(self._piece, group)), self.places)
                made += map(self._divided, regions)
        return tuple(made)

    def _divided(self, pieces: list[Piece]) -> Region:
        """Return a region; how it is divided is left open if it follows from sizes of a run."""
        if self.sized:
            return left_open(pieces, next(self._regions))
        return divided(pieces, self.threads)

    def _around(self, kernel: Kernel, by_host: bool) -> Holding:
        """Return control flow around what becomes of the kernels inside it."""
        make = self.steps if by_host else self._calls
        if isinstance(kernel, TogetherKernel):
            return self._together(kernel)
        if isinstance(kernel, LoopKernel):
            return LoopCalls(kernel, make(kernel.test), make(kernel.body))
        assert isinstance(kernel, BranchKernel)
        return BranchCalls(kernel, make(kernel.yes), make(kernel.no))

    def _together(self, kernel: TogetherKernel) -> TogetherCalls:
        """Return chains, each for one thread, longest first; for sizes of a run, left open."""
        parallel = _word(next(self._regions), "parallel") if self.sized else True
        threads, self.threads = self.threads, 1
        chains = tuple(map(self._calls, kernel.chains))
        self.threads = threads
        return TogetherCalls(kernel, chains, parallel)

    def _piece(self, kernel: Kernel) -> Piece:
        work, views = self.device.work(_typical(kernel)), tuple(kernel.views)
        return Piece(kernel, views, kernel.written, work.units, work.chunks, work.cost)


def _typical(kernel: Kernel) -> Kernel:
    """Return a kernel with usual sizes in the place of those that runs are told."""
    return AtSizes(TYPICAL).kernel(kernel) if has_sizes(kernel) else kernel


class _Typical(dict[SizeVar, int]):
    """A usual number for every size."""

    def __missing__(self, variable: SizeVar) -> int:
        return int(typical(run_time_size(variable.name)))


TYPICAL = _Typical()


def arrange(pieces: Sequence[Piece], places: Places, threads: int) -> list[Region]:
    """Return pieces that run one after another as regions, with chunks worth their while."""
    return [divided(together, threads) for together in by_level(pieces, places)]


def by_level(pieces: Sequence[Piece], places: Places) -> list[list[Piece]]:
    """Return pieces that run one after another in lists of those that can run at a time."""
    levels = _Levels(pieces, places)
    found: dict[int, list[Piece]] = {}
    for piece in pieces:
        found.setdefault(levels.level_of(piece), []).append(piece)
    return [found[level] for level in sorted(found)]


# -- how a region is divided -----------------------------------------------------------------------


def left_open(pieces: Sequence[Piece], number: int) -> Region:
    """Return a region whose division is told to each run, like sizes; longest pieces first."""
    ordered = sorted(pieces, key=lambda piece: -piece.cost)
    return Region(
        tuple(
            replace(piece, units=_word(number, f"units {i}"), chunks=_word(number, f"chunks {i}"))
            for i, piece in enumerate(ordered)
        ),
        _word(number, "parallel"),
    )


def _word(region: int, what: str) -> Dim:
    return unknown_size(f"region {region} {what}")


def divided(pieces: Sequence[Piece], threads: int) -> Region:
    """Decide on the chunks of pieces; return them as a region, the longest of these first."""
    total = sum(piece.cost for piece in pieces)
    if threads == 1 or total < PARALLEL_FROM:
        return Region(tuple(replace(piece, chunks=1) for piece in pieces), parallel=False)
    wanted = max(LEAST_CHUNK, total / (CHUNKS_PER_THREAD * threads))
    made = [replace(piece, chunks=piece.chunks or _chunks(piece, wanted)) for piece in pieces]
    several = sum(piece.chunks for piece in made) > 1
    return Region(tuple(sorted(made, key=lambda p: -p.cost / p.chunks)), several)


def _chunks(piece: Piece, wanted: float) -> Size:
    return max(1, min(piece.units, round(piece.cost / wanted)))


class _Levels:
    """Tells when a piece can run: after all earlier ones that write what it reads, and so on."""

    def __init__(self, pieces: Sequence[Piece], places: Places) -> None:
        self.places = places
        ends: dict[tuple[bool, int], set[int]] = {}
        for piece in pieces:
            for buffer, _ in piece.touched():
                memory, start, stop = self._span(buffer)
                ends.setdefault(memory, set()).update((start, stop))
        self.ends = {memory: sorted(found) for memory, found in ends.items()}
        shapes = {memory: len(found) for memory, found in self.ends.items()}
        self.read = {memory: np.zeros(n, np.int64) for memory, n in shapes.items()}
        self.written = {memory: np.zeros(n, np.int64) for memory, n in shapes.items()}
        self.checked = 0  # the last level at which indices are checked

    def _span(self, buffer: Buffer) -> Span:
        place = self.places[buffer]
        size = 1 if isinstance(buffer.nbytes, Dim) else buffer.nbytes  # alone behind its entry
        return (place.is_argument, place.entry), place.offset, place.offset + size

    def _parts(self, buffer: Buffer) -> tuple[tuple[bool, int], slice]:
        memory, start, stop = self._span(buffer)
        ends = self.ends[memory]
        return memory, slice(bisect_left(ends, start), bisect_left(ends, stop))

    def level_of(self, piece: Piece) -> int:
        """Return the level of a piece, and note what it reads and writes there."""
        touched = [(*self._parts(buffer), writes) for buffer, writes in piece.touched()]
        level = 1
        for memory, part, writes in touched:
            before = [self.written[memory][part], *([self.read[memory][part]] if writes else [])]
            level = max(level, *(int(levels.max(initial=0)) + 1 for levels in before))
            if writes and memory[0]:  # what others may see is written when all can succeed
                level = max(level, self.checked + 1)
        if piece.flag is not None:
            self.checked = max(self.checked, level)
        for memory, part, writes in touched:
            noted = (self.written if writes else self.read)[memory][part]
            np.maximum(noted, level, out=noted)
        return level
