"""Arrange kernels in regions: those of one region do not depend on one another.

A region is one call of the thread pool for all its kernels, so that many small ones (the updates of
a hundred parameters) cost as much to start as a single large one. What depends on what follows from
the memory that each reads and writes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ....lower.memory import Place
from ....lower.storage import Buffer, View, buffers_behind

PARALLEL_FROM = 6000.0  # nanoseconds of work that are worth waking another thread
LEAST_CHUNK = 2500.0
CHUNKS_PER_THREAD = 4

Span = tuple[tuple[bool, int], int, int]  # which memory, from where to where


@dataclass
class Piece:
    """A kernel ready to be called.

    function   its name
    views      what it takes
    written    which of them it writes
    units      of work
    chunks     into which the units are divided; 0 until that is decided
    cost       nanoseconds on one thread
    kernel     what it computes
    """

    function: str
    views: list[View]
    written: frozenset[int]
    units: int
    chunks: int
    cost: float
    kernel: Any

    @property
    def name(self) -> str:
        """Return the name of the kernel."""
        name: str = self.kernel.name
        return name

    @property
    def flag(self) -> View | None:
        """Return what the kernel sets if it meets an index out of range."""
        flag: View | None = getattr(self.kernel, "flag", None)
        return flag


class Region(NamedTuple):
    """Pieces in any order, by the thread pool if that is worth while."""

    pieces: list[Piece]
    parallel: bool

    @property
    def flag(self) -> View | None:
        """Return what is set if one of the pieces meets an index out of range."""
        return next((piece.flag for piece in self.pieces if piece.flag is not None), None)


def arrange(pieces: Sequence[Piece], places: Mapping[Buffer, Place], threads: int) -> list[Region]:
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
        for piece in pieces:
            piece.chunks = 1
        return Region(pieces, parallel=False)
    wanted = max(LEAST_CHUNK, total / (CHUNKS_PER_THREAD * threads))
    for piece in pieces:
        piece.chunks = piece.chunks or _chunks(piece, wanted)
    several = sum(piece.chunks for piece in pieces) > 1
    return Region(sorted(pieces, key=lambda p: -p.cost / p.chunks), several)


def _chunks(piece: Piece, wanted: float) -> int:
    return max(1, min(piece.units, round(piece.cost / wanted)))


class _Levels:
    """Tells when a piece can run: after all earlier ones that write what it reads, and so on."""

    def __init__(self, pieces: Sequence[Piece], places: Mapping[Buffer, Place]) -> None:
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
