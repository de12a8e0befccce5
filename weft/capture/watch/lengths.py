"""Lengths of containers that grow from call to call, as numbers of a recording.

`len` gives an int, whatever a container says. So while a call is recorded for which a length is to
be a number, code of the user's finds another `len`: it gives that number, plus how much the
container has grown since the call began, which follows from the path that is recorded.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .places import PythonPlace
from .trust import Owner, owner_of

LEN = builtins.len


class LengthPlace(PythonPlace):
    """How many elements a container has: a number that effects on its elements change."""

    __slots__ = ()
    kind = "length"

    def __init__(self, holder: Any, text: str = "a container") -> None:
        super().__init__(holder, None, f"the length of {text}")

    def get(self) -> int:
        """Return how many there are."""
        return LEN(self.owner)

    def put(self, value: Any) -> None:
        """Leave it as it is: it changes with what the container holds."""


class RecordedLengths:
    """A context in which `len` of some containers is a number of a recording."""

    def __init__(self, numbers: Mapping[PythonPlace, Any]) -> None:
        places = [place for place in numbers if isinstance(place, LengthPlace)]
        self._begun = {id(place.owner): (place.get(), numbers[place]) for place in places}
        self._holders = [place.owner for place in places]  # whose ids are keys
        self._count = _counting(self._begun)

    def __enter__(self) -> None:
        if self._begun:
            setattr(builtins, "len", self._count)  # noqa: B010  (no name that a checker may know)

    def __exit__(self, *_: object) -> None:
        if self._begun:
            setattr(builtins, "len", LEN)  # noqa: B010  (as above)

    def has(self, holder: Any) -> bool:
        """Tell whether the length of a container is a number of the recording."""
        return id(holder) in self._begun

    def is_counting(self, function: Any) -> bool:
        """Tell whether a function is what stands for `len`."""
        return function is self._count


def _counting(begun: Mapping[int, tuple[int, Any]]) -> Callable[[Any], Any]:
    """Return what stands for `len`: no method, which would be called by its function."""

    def count(holder: Any, /) -> Any:
        if id(holder) not in begun or not _is_users(sys._getframe(1)):
            return LEN(holder)
        before, number = begun[id(holder)]
        grown = LEN(holder) - before
        return number + grown if grown else number

    return count


def _is_users(frame: Any) -> bool:
    return owner_of(frame.f_code) is Owner.USER
