"""Numbers that code read and has kept: in what it returns, or in what it has changed.

A number that knows where it comes from passes for a float while its example runs. What is left of
them afterwards, in objects, keys, sets and lists, become Python's own, in place: JSON takes no
less, and nothing holds what an ended call has read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from types import CellType
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from .reads import ReadNumber
from .structure import ATOMS, BY_IDENTITY, attributes_of, is_of_python, slot_names

FIXED = (Tensor, frozenset, *BY_IDENTITY)  # what holds no numbers, or cannot be changed


def settle_kept(holders: Iterable[Any]) -> None:
    """Let all that leads to numbers which were read, from some objects on, have plain ones."""
    PlainNumbers().within(list(holders))


class PlainNumbers:
    """Puts Python's own numbers in the places of such as were read, in all that leads to them."""

    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}
        self._ahead: list[Any] = []

    def within(self, x: Any) -> Any:
        """Return an object with plain numbers in it: itself, unless it cannot be changed."""
        found = self._part(x)
        while self._ahead:
            self._change(self._ahead.pop())
        return found

    def _part(self, x: Any) -> Any:
        kind = type(x)
        if kind is ReadNumber:
            return x._number
        if kind in ATOMS or kind is float:
            return x
        if isinstance(x, tuple):
            return self._tuple(x)
        if id(x) not in self._seen:
            self._seen[id(x)] = x
            self._ahead.append(x)
        return x

    def _tuple(self, x: Any) -> Any:
        parts = list(map(self._part, x))
        if all(y is z for y, z in zip(parts, x, strict=True)):
            return x
        return x._make(parts) if hasattr(x, "_make") else tuple(parts)

    def _change(self, x: Any) -> None:
        if isinstance(x, (list, deque)):
            self._change_places(x, enumerate(x))
        elif isinstance(x, CellType):
            self._change_cell(x)
        elif isinstance(x, type):
            self._change_class(x)
        elif isinstance(x, dict):
            self._change_dict(x)
        elif isinstance(x, set):
            self._change_set(x)
        elif isinstance(x, np.ndarray):
            if x.dtype.hasobject:
                self._change_places(x.flat, enumerate(x.flat))
        elif not isinstance(x, FIXED) and all(map(is_of_python, type(x).__mro__)):
            self._change_object(x)

    def _change_places(self, x: Any, parts: Iterable[tuple[Any, Any]]) -> None:
        for place, part in list(parts):
            plain = self._part(part)
            if plain is not part:
                x[place] = plain

    def _change_dict(self, x: dict[Any, Any]) -> None:
        parts = [(self._part(key), self._part(value)) for key, value in x.items()]
        if all(key is plain for key, (plain, _) in zip(x, parts, strict=True)):
            self._change_places(x, x.items())
        else:
            x.clear()
            x.update(parts)

    def _change_set(self, x: set[Any]) -> None:
        parts = list(map(self._part, x))
        if any(y is not z for y, z in zip(x, parts, strict=True)):
            x.clear()
            x.update(parts)

    def _change_cell(self, x: CellType) -> None:
        try:
            part = x.cell_contents
        except ValueError:  # it is empty
            return
        plain = self._part(part)
        if plain is not part:
            x.cell_contents = plain

    def _change_class(self, x: type) -> None:
        for name, part in list(vars(x).items()):
            plain = self._part(part)
            if plain is not part:
                setattr(x, name, plain)

    def _change_object(self, x: Any) -> None:
        held = getattr(x, "__dict__", None)
        if type(held) is dict:
            self._change_dict(held)
        names = slot_names(type(x))
        for name, part in zip(names, attributes_of(x, names), strict=True):
            plain = self._part(part)
            if plain is not part:
                object.__setattr__(x, name, plain)
