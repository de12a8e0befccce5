"""Keep things in a sequence in which some move ahead of others, and compare their places."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

GAP = 1 << 256  # between the places of neighbours: room for others without counting anew


class Sequenced:
    """Something in a sequence; `place` grows along it."""

    def __init__(self) -> None:
        self.place = 0
        self.previous: Sequenced | None = None
        self.following: Sequenced | None = None


S = TypeVar("S", bound=Sequenced)


class Order(Generic[S]):
    """A sequence. Things are put at its end, moved ahead of others, and taken out.

    Each costs the same however long the sequence is: places have gaps, and are counted anew only
    when one is full.
    """

    def __init__(self) -> None:
        self._first: Sequenced | None = None
        self._last: Sequenced | None = None

    def append(self, item: S) -> None:
        """Put something at the end."""
        item.place = GAP if self._last is None else self._last.place + GAP
        self._link(self._last, item, None)

    def remove(self, item: S) -> None:
        """Take something out."""
        self._join(item.previous, item.following)

    def move_before(self, item: S, moved: Iterable[S]) -> None:
        """Move things, in the order they are in, right before another."""
        ahead = sorted(moved, key=lambda one: one.place)
        for one in ahead:
            self.remove(one)
        if item.place - self._start(item) <= len(ahead):
            self._count_anew()
        start = self._start(item)
        step = (item.place - start) // (len(ahead) + 1)
        for number, one in enumerate(ahead, 1):
            one.place = start + step * number
            self._link(item.previous, one, item)

    @staticmethod
    def _start(item: Sequenced) -> int:
        return 0 if item.previous is None else item.previous.place

    def _link(self, before: Sequenced | None, item: Sequenced, after: Sequenced | None) -> None:
        self._join(before, item)
        self._join(item, after)

    def _join(self, before: Sequenced | None, after: Sequenced | None) -> None:
        """Let two be neighbours; None stands for what is outside, at either end."""
        if before is None:
            self._first = after
        else:
            before.following = after
        if after is None:
            self._last = before
        else:
            after.previous = before

    def _count_anew(self) -> None:
        place, item = GAP, self._first
        while item is not None:
            item.place = place
            place, item = place + GAP, item.following
