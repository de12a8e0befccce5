"""Whether dictionaries and lists of Python hold what they held, by identity, in native loops.

    before = record_of_lists([numbers], [1], [numbers[0]])
    are_same_lists([before])        # True, False, or None: it cannot be told here

Python tells the same at some 60 ns an item, these loops at 5 to 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ....core.dtype import Array
from ..codegen.target import host
from .calls import Entry, address_of_function, layout, make_entry, native_calls_work
from .linking import Library, link
from .native.unchanged import CHANGED, EXPORTS, PYTHON_FUNCTIONS, SAME, unchanged_text
from .objects import runtime_code


class SavedRecord(NamedTuple):
    """What collections held: words of memory, where they lie, and what they are addresses of."""

    words: Array
    address: int
    held: tuple[Any, ...]


def record_of_dictionaries(
    owners: Sequence[Any],
    live: Sequence[dict[Any, Any]],
    lengths: Sequence[int],
    names: Sequence[Any],
    values: Sequence[Any],
) -> SavedRecord:
    """Return dictionaries with what they hold; those of objects, or such as own themselves."""
    return _record(lengths, len(values), (*owners, *live, *names, *values))


def record_of_lists(
    live: Sequence[list[Any]], lengths: Sequence[int], items: Sequence[Any]
) -> SavedRecord:
    """Return lists with what they hold."""
    return _record(lengths, len(items), (*live, *items))


def _record(lengths: Sequence[int], items: int, held: tuple[Any, ...]) -> SavedRecord:
    """Return a record of objects, whose addresses lie in a tuple of them."""
    given = [len(lengths), items, id(held) + layout().tuple_items, *lengths]
    words = np.fromiter(given, np.int64, len(given))
    return SavedRecord(words, words.__array_interface__["data"][0], held)


def are_same_dictionaries(records: Sequence[SavedRecord]) -> bool | None:
    """Tell whether all dictionaries hold the same under the same names; None if Python must."""
    return _answer(0, records)


def are_same_lists(records: Sequence[SavedRecord]) -> bool | None:
    """Tell whether all lists hold the same; None if Python must."""
    return _answer(1, records)


def _answer(which: int, records: Sequence[SavedRecord]) -> bool | None:
    if not native_calls_work():
        return None
    given = np.array([len(records), *[record.address for record in records]], np.int64)
    found = np.empty(1, np.int64)
    _entries()[which](given, found)
    return {SAME: True, CHANGED: False}.get(int(found[0]))


@cache
def _entries() -> list[Entry]:
    library = _library()
    addresses = map(library.address, EXPORTS)
    return [make_entry(code, 2, releases_gil=False, keep=library) for code in addresses]


@cache
def _library() -> Library:
    symbols = {name: address_of_function(name) for name in PYTHON_FUNCTIONS}
    return link([runtime_code(unchanged_text(host()), host())], list(EXPORTS), symbols)
