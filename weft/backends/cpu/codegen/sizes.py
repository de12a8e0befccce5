"""Sizes that only a run knows, as code sees them: words of a table that the host fills.

A kernel for many sizes reads them where its functions begin. What the words are, expressions of the
sizes that a run is told, is a list beside the text; the text itself knows numbers of words only, so
that kernels that differ in the names of sizes are one.
"""

from __future__ import annotations

from ....core.dim import Dim

TABLE = "%sizes"  # the address of the words, in every function that needs them


class SizeTable:
    """The words of one kernel, in the order in which code asked for them."""

    def __init__(self) -> None:
        self._numbers: dict[Dim, int] = {}

    @property
    def words(self) -> tuple[Dim, ...]:
        """Return what the words are."""
        return tuple(self._numbers)

    def number(self, size: Dim) -> int:
        """Return the number of the word that holds a size."""
        return self._numbers.setdefault(size, len(self._numbers))
