"""Arenas: place storages in one block of memory so that no two overlap while both are alive.

Finding the smallest arena is NP-hard (dynamic storage allocation). Two heuristics are used, and the
second only where the first misses the lower bound, which is the most bytes alive at any time:

    in the order of time   best fit from a list of free gaps, joined when neighbours are freed
    largest first          each at the lowest gap left by the larger ones alive at the same time
                           (Pisarchyk & Lee, "Efficient memory management for deep neural net
                           inference", 2020: greedy by size)

Storages of one of several chains that run at the same time have a part of the arena to themselves,
which is laid out in the same way: nothing of another chain may lie there while the chains run.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

ALIGNMENT = 64
LARGEST_FIRST_LIMIT = 6000  # storages; beyond it the quadratic search takes seconds


class ChainSpan(NamedTuple):
    """One of several chains of kernels that run at the same time, and when they do."""

    number: int
    start: int
    end: int


class ArenaBlock(NamedTuple):
    """A storage to place: its bytes, a multiple of any alignment, and when it is alive.

    chain   that it lives within, if it does: the times are of that chain
    """

    bytes: int
    birth: int
    death: int
    chain: ChainSpan | None = None


class Placed(NamedTuple):
    """Offsets for blocks, and the size of the arena."""

    offsets: list[int]
    bytes: int


def align(nbytes: int) -> int:
    """Return the number of bytes rounded up to the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def place_blocks(blocks: Sequence[ArenaBlock]) -> Placed:
    """Return offsets for blocks, in the smallest arena that the heuristics find."""
    members = _by_chain(blocks)
    if not members:
        return _place_in_time(blocks)
    inner = {chain: _place_in_time([blocks[i] for i in found]) for chain, found in members.items()}
    outer = [i for i, block in enumerate(blocks) if block.chain is None]
    rooms = [ArenaBlock(inner[c].bytes, c.start, c.end) for c in members]
    placed = _place_in_time([*(blocks[i] for i in outer), *rooms])
    offsets = dict(zip(outer, placed.offsets, strict=False))
    for chain, base in zip(members, placed.offsets[len(outer) :], strict=True):
        offsets |= {i: base + o for i, o in zip(members[chain], inner[chain].offsets, strict=True)}
    return Placed([offsets[i] for i in range(len(blocks))], placed.bytes)


def _by_chain(blocks: Iterable[ArenaBlock]) -> dict[ChainSpan, list[int]]:
    """Return which of the blocks live within chains."""
    found: dict[ChainSpan, list[int]] = {}
    for i, block in enumerate(blocks):
        if block.chain is not None:
            found.setdefault(block.chain, []).append(i)
    return found


def _place_in_time(blocks: Sequence[ArenaBlock]) -> Placed:
    """Return offsets for blocks whose times are those of one order of kernels."""
    least = _most_in_time(blocks)
    best = _in_order_of_time(blocks)
    if best.bytes > least and len(blocks) <= LARGEST_FIRST_LIMIT:
        other = _largest_first(blocks)
        best = other if other.bytes < best.bytes else best
    return best


def most_alive(blocks: Sequence[ArenaBlock]) -> int:
    """Return the largest sum of bytes that may be alive at one time."""
    rooms = [
        ArenaBlock(_most_in_time([blocks[i] for i in found]), chain.start, chain.end)
        for chain, found in _by_chain(blocks).items()
    ]
    return _most_in_time([*(block for block in blocks if block.chain is None), *rooms])


def _most_in_time(blocks: Iterable[ArenaBlock]) -> int:
    changes: dict[int, int] = {}
    for nbytes, birth, death, _ in blocks:
        changes[birth] = changes.get(birth, 0) + nbytes
        changes[death + 1] = changes.get(death + 1, 0) - nbytes
    return max(accumulate(changes[time] for time in sorted(changes)), default=0)


# -- in the order of time --------------------------------------------------------------------------


class _Gaps:
    """The free gaps of an arena that grows at its end."""

    def __init__(self) -> None:
        self.end = 0
        self._size_at: dict[int, int] = {}
        self._start_of_end: dict[int, int] = {}
        self._by_size: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        """Return where a block starts: in the smallest gap that holds it, or at the end."""
        i = bisect_left(self._by_size, (size, -1))
        if i < len(self._by_size):
            found, start = self._by_size[i]
            self._remove(start)
            if found > size:
                self._add(start + size, found - size)
            return start
        return self._grow(size)

    def _grow(self, size: int) -> int:
        start = self.end
        if self.end in self._start_of_end:  # the last gap is part of the room needed
            start = self._start_of_end[self.end]
            self._remove(start)
        self.end = start + size
        return start

    def give(self, start: int, size: int) -> None:
        """Free a block, joining it with the gaps beside it."""
        before = self._start_of_end.get(start)
        if before is not None:
            size += self._remove(before)
            start = before
        if start + size in self._size_at:
            size += self._remove(start + size)
        self._add(start, size)

    def _add(self, start: int, size: int) -> None:
        self._size_at[start] = size
        self._start_of_end[start + size] = start
        insort(self._by_size, (size, start))

    def _remove(self, start: int) -> int:
        size = self._size_at.pop(start)
        del self._start_of_end[start + size]
        del self._by_size[bisect_left(self._by_size, (size, start))]
        return size


def _in_order_of_time(blocks: Sequence[ArenaBlock]) -> Placed:
    offsets = [0] * len(blocks)
    gaps = _Gaps()
    for _, kind, i in sorted(_events(blocks)):
        if kind == _FREE:
            gaps.give(offsets[i], blocks[i].bytes)
        else:
            offsets[i] = gaps.take(blocks[i].bytes)
    return Placed(offsets, gaps.end)


_FREE, _TAKE = 0, 1  # at one time, what died before is freed first


def _events(blocks: Sequence[ArenaBlock]) -> list[tuple[int, int, int]]:
    used = [(i, block) for i, block in enumerate(blocks) if block.bytes]
    births = [(block.birth, _TAKE, i) for i, block in used]
    return births + [(block.death + 1, _FREE, i) for i, block in used]


# -- largest first ---------------------------------------------------------------------------------


def _largest_first(blocks: Sequence[ArenaBlock]) -> Placed:
    order = sorted(range(len(blocks)), key=lambda i: (-blocks[i].bytes, blocks[i].birth))
    order = [i for i in order if blocks[i].bytes]
    size, birth, death = (np.array([b[k] for b in blocks], np.int64) for k in range(3))
    offsets = np.zeros(len(blocks), np.int64)
    ranked = np.array(order, np.int64)
    for rank, i in enumerate(order):
        placed = ranked[:rank]
        together = placed[(birth[placed] <= death[i]) & (death[placed] >= birth[i])]
        offsets[i] = _lowest_gap(offsets[together], size[together], int(size[i]))
    return Placed(offsets.tolist(), int((offsets + size).max(initial=0)))


def _lowest_gap(starts: Any, sizes: Any, wanted: int) -> int:
    """Return the start of the first gap between blocks that is large enough."""
    order = np.argsort(starts)
    starts = starts[order]
    reached = np.maximum.accumulate(np.concatenate(([0], starts + sizes[order])))
    fits = np.flatnonzero(starts - reached[:-1] >= wanted)
    return int(reached[fits[0]] if len(fits) else reached[-1])
