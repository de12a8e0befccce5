"""What an entry of a basic index selects: for indices that change from trip to trip.

An entry is an integer, a slice `(start, stop, step)`, None for a new axis, or `...`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

ALL = (None, None, None)
ARRAY = "array"  # where an index array stands in an index of getitem_arrays and setitem_arrays


class EntryAxes(NamedTuple):
    """The axis of the operand that an entry takes from, and that of the result that it makes."""

    taken: int
    made: int


def axes_at(spec: tuple[Any, ...], entry: int, ndim: int) -> EntryAxes:
    """Return the axes that an entry of an index stands for, in an operand of some rank."""
    before = spec[:entry]
    given = sum(item is not None and item is not ... for item in spec)
    filled = ndim - given if any(item is ... for item in before) else 0
    taken = sum(item is not None and item is not ... for item in before)
    made = sum(item is None or item.__class__ is tuple for item in before)
    return EntryAxes(taken + filled, made + filled)


def varying_entries(specs: Sequence[tuple[Any, ...]]) -> list[int]:
    """Return the entries in which indices of one form differ."""
    first = specs[0]
    return [i for i in range(len(first)) if any(spec[i] != first[i] for spec in specs)]


def widened(spec: tuple[Any, ...], entries: Sequence[int]) -> tuple[Any, ...]:
    """Return an index that takes the whole axis at some entries."""
    return tuple(ALL if i in entries else item for i, item in enumerate(spec))


def without(spec: tuple[Any, ...], entries: Sequence[int]) -> tuple[Any, ...]:
    """Return an index for a row, whose axes some integers of the index have taken away."""
    return tuple(item for i, item in enumerate(spec) if i not in entries)


def is_everything(spec: tuple[Any, ...]) -> bool:
    """Tell whether an index selects its operand as it is."""
    return all(item is ... or item == ALL for item in spec)


def from_front(index: int, size: Any) -> int:
    """Return an index counted from the front, if the size is known."""
    return index + size if index < 0 and isinstance(size, int) else index


def positions(item: Any, size: Any) -> int | list[int]:
    """Return what an entry selects along an axis: one index, or those of a slice."""
    if isinstance(item, int):
        return from_front(item, size)
    return list(range(*slice(*item).indices(size)))


def linear(indices: Sequence[int]) -> range | None:
    """Return indices as a range, if they advance by one step that is not 0."""
    step = indices[1] - indices[0] if len(indices) > 1 else 1
    found = range(indices[0], indices[0] + step * len(indices), step) if step else None
    return found if found is not None and list(indices) == list(found) else None
