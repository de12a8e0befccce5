"""Whether dictionaries and lists of Python hold what they held, by identity, in native loops.

    before = record_of_lists([numbers], [1], [numbers[0]])
    are_same_lists([before])        # True, False, or None: it cannot be told here

A record holds addresses only: whoever keeps it keeps the objects alive that it is made of. Python
tells the same at some 60 ns an item, these loops at 5 to 10.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ....core.dtype import Array
from ..codegen.target import host
from .calls import Entry, address_of_function, make_entry, native_calls_work
from .linking import Library, link
from .native.unchanged import CHANGED, EXPORTS, PYTHON_FUNCTIONS, SAME, unchanged_text
from .objects import runtime_code


class SavedRecord(NamedTuple):
    """What collections held, as words of memory, and where these lie."""

    words: Array
    address: int


def record_of_dictionaries(
    owners: Sequence[Any],
    live: Sequence[dict[Any, Any]],
    lengths: Sequence[int],
    names: Sequence[Any],
    values: Sequence[Any],
) -> SavedRecord:
    """Return dictionaries with what they hold; those of objects, or such as own themselves."""
    whose, whole = _addresses(owners), _addresses(live)
    others = np.where(whose == whole, 0, whose)
    return _record(len(values), others, whole, lengths, _addresses(names), _addresses(values))


def record_of_lists(
    live: Sequence[list[Any]], lengths: Sequence[int], items: Sequence[Any]
) -> SavedRecord:
    """Return lists with what they hold."""
    return _record(len(items), _addresses(live), lengths, _addresses(items))


def _record(items: int, *columns: Array | Sequence[int]) -> SavedRecord:
    words = np.concatenate([[len(columns[0]), items], *columns], dtype=np.int64)
    return SavedRecord(words, words.__array_interface__["data"][0])


def _addresses(objects: Sequence[Any]) -> Array:
    """Return `id` of all objects: an array of objects is their addresses."""
    pointers = np.fromiter(objects, object, len(objects))
    start = pointers.__array_interface__["data"][0]
    return np.frombuffer(ctypes.string_at(start, pointers.nbytes), np.int64)


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
