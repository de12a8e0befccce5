"""Find repeats in a sequence: where a stretch of letters is followed by copies of itself.

Every maximal repeat of a period has a place at which the letters ahead, as many as the period has
at least, occurred before at just that distance: a shorter distance would make the period a multiple
of a shorter one. So the distances between equal words of doubling lengths (Karp, Miller and
Rosenberg, 1972) name the periods, and one comparison of the sequence with itself, shifted, gives
the repeats of each. It takes time n log n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

Letters = np.ndarray[Any, np.dtype[np.int64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Repeat(NamedTuple):
    """Letters from `start` up to `stop` that are each the same as the one a period before."""

    start: int
    stop: int
    period: int

    @property
    def length(self) -> int:
        """Return the number of letters."""
        return self.stop - self.start

    @property
    def trips(self) -> int:
        """Return how many times the period fits in."""
        return self.length // self.period


def find_repeats(letters: Letters, trips: int) -> list[Repeat]:
    """Return the repeats with at least so many trips (four or more), the longest first.

    Of those that are equally long, the one with the shortest period comes first.
    """
    found = {
        repeat
        for period in sorted(set(_periods(letters, trips)))
        for repeat in _repeats_of(letters, period, trips)
    }
    return sorted(found, key=lambda repeat: (-repeat.length, repeat.period, repeat.start))


def apart_from_one_another(
    repeats: Sequence[Repeat], free: Flags, trips: int
) -> tuple[list[Repeat], list[Repeat]]:
    """Return parts of repeats that do not overlap, from left to right, and what is left over.

    Letters that are not free are no part of any. Of the others those given first take what they
    can; one that would lose more than half of itself is left over. What has fewer trips than are
    asked for is neither.
    """
    chosen, left, open_ = [], [], free.copy()
    for repeat in repeats:
        part = _longest_free(repeat, free)
        now = _longest_free(part, open_)
        if now.trips >= trips and 2 * now.length >= part.length:
            chosen.append(now)
            open_[now.start : now.stop] = False
        elif part.trips >= trips:
            left.append(part)
    return sorted(chosen), left


def _longest_free(repeat: Repeat, free: Flags) -> Repeat:
    inside = np.zeros(repeat.length + 2, np.int8)
    inside[1:-1] = free[repeat.start : repeat.stop]
    edges = np.flatnonzero(np.diff(inside)).reshape(-1, 2)
    if not len(edges):
        return Repeat(repeat.start, repeat.start, repeat.period)
    start, stop = edges[np.argmax(edges[:, 1] - edges[:, 0])].tolist()
    return Repeat(repeat.start + start, repeat.start + stop, repeat.period)


def _periods(letters: Letters, trips: int) -> Iterator[int]:
    """Yield the periods that a repeat may have."""
    words, width = letters, 1
    while (width // 2 + 1) * trips <= len(letters):
        yield from _distances(words, width // 2 + 1, width, trips)
        words = _longer(words, width)
        width *= 2


def _distances(words: Letters, low: int, high: int, trips: int) -> list[int]:
    """Return distances from `low` to `high` that lie often enough between equal words."""
    order = np.argsort(words, kind="stable")
    gaps = np.diff(order)[words[order][1:] == words[order][:-1]]
    counts = np.bincount(gaps[(gaps >= low) & (gaps <= high)], minlength=high + 1)
    periods = np.arange(len(counts))
    # The words of a repeat are less than two periods long, and have one before them a period ago.
    return [int(p) for p in periods[counts > (trips - 3) * periods] if p]


def _longer(words: Letters, width: int) -> Letters:
    """Return the words of twice the width, numbered anew."""
    count = len(words) - width
    if count <= 0:
        return words[:0]
    pairs = words[:count] * (int(words.max()) + 1) + words[width:]
    numbers: Letters = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return numbers


def _repeats_of(letters: Letters, period: int, trips: int) -> Iterator[Repeat]:
    same = np.zeros(len(letters) - period + 2, np.int8)
    same[1:-1] = letters[period:] == letters[:-period]
    edges = np.flatnonzero(np.diff(same))
    for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if stop - start >= (trips - 1) * period:
            yield Repeat(start, stop + period, period)
