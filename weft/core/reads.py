"""Who wants to know that Python reads the value of a tensor as a number.

A derivative ends where that happens. Transforms watch for it, so that a result which follows from
such a number is not taken for a constant. Deciding by a value (`if x > 0`) and showing it give no
number to go on with, and count for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Of all threads: each asks whether a tensor is one of its own. Looked at in every `float(x)`.
readers: list[Reads] = []


class Reads:
    """Notes, inside a `with` block, whether a value was read that depends on some others."""

    __slots__ = ("_depends", "seen")

    def __init__(self, depends: Callable[[Any], bool]) -> None:
        self._depends = depends
        self.seen = False

    def note(self, x: Any) -> None:
        """Know that a tensor was read."""
        self.seen = self.seen or self._depends(x)

    def __enter__(self) -> Reads:
        """Begin to watch."""
        readers.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        """End it; what was seen stays."""
        readers.remove(self)


def note_read(x: Any) -> None:
    """Tell all who watch that a tensor is read as a number, or as an array."""
    for reads in tuple(readers):
        reads.note(x)
