"""Divide kernels among threads, in regions: those of one region do not depend on one another.

A region is one call of the thread pool for all its kernels, so that many small ones (the updates of
a hundred parameters) cost as much to start as a single large one. What depends on what follows from
the memory that each reads and writes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from ..core.shape import Size
from ..lower.kernels import (
    BranchKernel,
    CallKernel,
    Control,
    Kernel,
    LoopKernel,
    calls_library,
)
from ..lower.memory import Place
from ..lower.program import KernelProgram
from ..lower.schedule import BranchCalls, Calls, LoopCalls, Piece, Region, RunSchedule, stretch_name
from ..lower.storage import Buffer, View, buffers_behind
from .device import Device

PARALLEL_FROM = 6000.0  # nanoseconds of work that are worth waking another thread
LEAST_CHUNK = 2500.0
CHUNKS_PER_THREAD = 4

Places = Mapping[Buffer, Place]
Span = tuple[tuple[bool, int], int, int]  # which memory, from where to where


def with_schedule(program: KernelProgram, device: Device) -> KernelProgram:
    """Return a program whose kernels are divided among threads, in stretches that need no host."""
    assert program.memory is not None, "what depends on what follows from where it lies"
    planner = _Planner(program.memory.places, device)
    steps = planner.steps(program.kernels)
    return replace(program, schedule=RunSchedule(steps, tuple(planner.stretches)))


class _Planner:
    """Collects the stretches of a program as its steps are found."""

    def __init__(self, places: Places, device: Device) -> None:
        self.places, self.device = places, device
        self.stretches: list[tuple[Any, ...]] = []

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
                made += arrange(list(map(self._piece, group)), self.places, self.device.threads)
        return tuple(made)

    def _around(self, kernel: Kernel, by_host: bool) -> Calls:
        """Return control flow around what becomes of the kernels inside it."""
        make = self.steps if by_host else self._calls
        if isinstance(kernel, LoopKernel):
            return LoopCalls(kernel, make(kernel.test), make(kernel.body))
        assert isinstance(kernel, BranchKernel)
        return BranchCalls(kernel, make(kernel.yes), make(kernel.no))

    def _piece(self, kernel: Kernel) -> Piece:
        work, views = self.device.work(kernel), tuple(kernel.views)
        return Piece(kernel, views, kernel.written, work.units, work.chunks, work.cost)


def arrange(pieces: Sequence[Piece], places: Places, threads: int) -> list[Region]:
    """Return pieces that run one after another as regions, with chunks worth their while."""
    levels = _Levels(pieces, places)
    regions: dict[int, list[Piece]] = {}
    for piece in pieces:
        regions.setdefault(levels.level_of(piece), []).append(piece)
    return [_divided(regions[level], threads) for level in sorted(regions)]


def _divided(pieces: list[Piece], threads: int) -> Region:
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
            for view in piece.views:
                memory, start, stop = self._span(view)
                ends.setdefault(memory, set()).update((start, stop))
        self.ends = {memory: sorted(found) for memory, found in ends.items()}
        shapes = {memory: len(found) for memory, found in self.ends.items()}
        self.read = {memory: np.zeros(n, np.int64) for memory, n in shapes.items()}
        self.written = {memory: np.zeros(n, np.int64) for memory, n in shapes.items()}
        self.checked = 0  # the last level at which indices are checked

    def _span(self, view: View) -> Span:
        buffer, *_ = buffers_behind(view.buffer)  # a window may be anywhere in it
        place = self.places[buffer]
        return (place.is_argument, place.entry), place.offset, place.offset + buffer.nbytes

    def _parts(self, view: View) -> tuple[tuple[bool, int], slice]:
        memory, start, stop = self._span(view)
        ends = self.ends[memory]
        return memory, slice(bisect_left(ends, start), bisect_left(ends, stop))

    def level_of(self, piece: Piece) -> int:
        """Return the level of a piece, and note what it reads and writes there."""
        touched = [(*self._parts(view), i in piece.written) for i, view in enumerate(piece.views)]
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
