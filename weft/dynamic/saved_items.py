"""What collections held at some time, and whether they hold the same now: in a few loops of C."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import is_
from typing import Any, NamedTuple

from ..backends.cpu.runtime.unchanged import (
    SavedRecord,
    are_same_dictionaries,
    are_same_lists,
    record_of_dictionaries,
    record_of_lists,
)

flat = chain.from_iterable


class SavedPart(NamedTuple):
    """One object: what tells what it holds, and what it held."""

    owner: Any
    now: Callable[[], list[Any]]
    before: list[Any]
    like: Callable[[Any, Any], bool] = is_

    def is_same(self) -> bool:
        """Tell whether it holds what it held."""
        now = self.now()
        return len(now) == len(self.before) and all(map(self.like, now, self.before))


class SavedItems:
    """What several lists, sets and the like held, in order."""

    __slots__ = ("_record", "has_others", "items", "lengths", "live")

    def __init__(self) -> None:
        self.live: list[Any] = []
        self.items: list[Any] = []
        self.lengths: list[int] = []
        self.has_others = False  # than lists
        self._record: SavedRecord | None = None

    def add(self, live: Any, items: list[Any]) -> None:
        """Remember what a collection holds."""
        self.live.append(live)
        self.items += items
        self.lengths.append(len(items))
        self.has_others |= live.__class__ is not list

    def record(self) -> SavedRecord:
        """Return the same as native loops take it, when nothing more is added."""
        if self._record is None:
            self._record = record_of_lists(self.live, self.lengths, self.items)
        return self._record

    def of(self, owners: Container[int]) -> Iterator[SavedPart]:
        """Yield some of the collections, by identity."""
        begin = 0
        for live, length in zip(self.live, self.lengths, strict=True):
            if id(live) in owners:
                yield SavedPart(live, partial(list, live), self.items[begin : begin + length])
            begin += length


class SavedDictionaries:
    """What several dictionaries held, in order: those of objects, or such as are their own owners.

    Names are equal where they find the same, whatever string they are; values are told by identity.
    """

    __slots__ = ("_record", "has_others", "lengths", "live", "names", "owners", "values")

    def __init__(self) -> None:
        self.owners: list[Any] = []
        self.live: list[dict[Any, Any]] = []
        self.names: list[Any] = []
        self.values: list[Any] = []
        self.lengths: list[int] = []
        self.has_others = False  # than plain dictionaries
        self._record: SavedRecord | None = None

    def add(self, owner: Any, live: dict[Any, Any]) -> list[Any]:
        """Remember what a dictionary holds; return its values."""
        values = [*dict.values(live)]  # of a subclass, too: what it holds, not what it shows
        self.owners.append(owner)
        self.live.append(live)
        self.names += live
        self.values += values
        self.lengths.append(len(values))
        if live.__class__ is not dict:  # it may keep an order of its own
            self.has_others = True
        return values

    def record(self) -> SavedRecord:
        """Return the same as native loops take it, when nothing more is added."""
        if self._record is None:
            columns = self.lengths, self.names, self.values
            self._record = record_of_dictionaries(self.owners, self.live, *columns)
        return self._record

    def of(self, owners: Container[int]) -> Iterator[SavedPart]:
        """Yield some of the dictionaries, by the identity of their owners."""
        begin = 0
        for owner, live, length in zip(self.owners, self.live, self.lengths, strict=True):
            end = begin + length
            if id(owner) in owners:
                yield SavedPart(owner, partial(list, live.values()), self.values[begin:end])
                yield SavedPart(owner, partial(list, live), self.names[begin:end])
            begin = end


def items_are_same(saved: Sequence[SavedItems]) -> bool:
    """Tell whether all collections hold the same things in the same order."""
    if not any(x.has_others for x in saved):
        told = are_same_lists([x.record() for x in saved if x.live])
        if told is not None:
            return told
    live = [*flat([x.live for x in saved])]
    return list(map(len, live)) == [*flat([x.lengths for x in saved])] and all(
        map(is_, flat(live), flat([x.items for x in saved]))
    )


def dictionaries_are_same(saved: Sequence[SavedDictionaries]) -> bool:
    """Tell whether all dictionaries hold the same things under the same names, in order."""
    if not any(x.has_others for x in saved):
        told = are_same_dictionaries([x.record() for x in saved if x.live])
        if told is not None:
            return told
    live = [*flat([x.live for x in saved])]
    return (
        list(map(len, live)) == [*flat([x.lengths for x in saved])]
        and all(map(is_, flat(map(dict.values, live)), flat([x.values for x in saved])))
        and [*flat(live)] == [*flat([x.names for x in saved])]
        and all(map(_is_held, flat([x.owners for x in saved]), live))
    )


def _is_held(owner: Any, live: dict[Any, Any]) -> bool:
    """Tell whether an object has the attributes that it had, and not another dictionary."""
    return owner is live or owner.__dict__ is live
