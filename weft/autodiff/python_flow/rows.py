"""What a `for` runs over, as columns of a scan: ranges, tensors, and zips of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.modes import current_tracer
from ...core.tensor import Tensor
from ...graph.symbol import Symbol
from .kinds import as_number


class LoopRows:
    """A tensor or a range of which each trip gets one row, or a tuple of such."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts

    @property
    def length(self) -> int:
        """Return the number of trips."""
        if isinstance(self.parts, tuple):
            return min(int(part.length) for part in self.parts)
        return len(self.parts)

    def columns(self, label: str) -> dict[str, Any]:
        """Return the tensors to be taken apart, by the names of the loop's variables."""
        found = [_column(x, self.length) for x in self._leaves()]
        names = re.findall(r"\w+", label)
        if len(names) != len(found) or len(set(names)) != len(names):
            names = [f"row_{i}" for i in range(len(found))]
        return dict(zip(names, found, strict=True))

    def item(self, rows: dict[str, Any]) -> Any:
        """Return what a trip gets, from its rows."""
        return self._built(iter(rows.values()))

    def _leaves(self) -> list[Any]:
        if isinstance(self.parts, tuple):
            return [leaf for part in self.parts for leaf in part._leaves()]
        return [self.parts]

    def _built(self, rows: Iterator[Any]) -> Any:
        if isinstance(self.parts, tuple):
            return tuple(part._built(rows) for part in self.parts)
        row = next(rows)
        return as_number(row) if isinstance(self.parts, range) else row


class Zipped:
    """`zip(...)` or `enumerate(...)` that can be looked at before it runs."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.parts, strict=False)


class CountedRows:
    """`range(...)` of symbols."""

    def __init__(self, start: Any, stop: Any, step: int) -> None:
        self.start, self.stop, self.step = start, stop, step


def zipped(*parts: Any, strict: bool = False) -> Any:
    """Return `zip(*parts)`."""
    if any(rows_of(part) is None for part in parts):
        return zip(*parts, strict=strict)
    return Zipped(parts)


def enumerated(items: Any, start: int = 0) -> Any:
    """Return `enumerate(items)`."""
    rows = rows_of(items)
    if rows is None:
        return enumerate(items, start)
    return Zipped((range(start, start + rows.length), items))


def ranged(*ends: Any) -> Any:
    """Return `range(*ends)`, also of symbols."""
    if not any(isinstance(end, Symbol) for end in ends):
        return range(*ends)
    start, stop, step = (0, *ends, 1) if len(ends) == 1 else (*ends, 1)[:3]
    return CountedRows(start, stop, int(step))


def backwards(items: Any) -> Any:
    """Return `reversed(items)`."""
    if isinstance(items, Tensor):
        return items[::-1]
    return items[::-1] if isinstance(items, range) else reversed(items)


def rows_of(items: Any) -> LoopRows | None:
    """Return what a loop runs over as rows, None if it is something of Python's."""
    if isinstance(items, Zipped):
        parts = [rows_of(part) for part in items.parts]
        return None if None in parts or not parts else LoopRows(tuple(parts))
    known = isinstance(items, Tensor) and bool(items.ndim) and isinstance(items.shape[0], int)
    return LoopRows(items) if known or isinstance(items, range) else None


def _column(x: Any, length: int) -> Any:
    if isinstance(x, range):
        return current_tracer().constant(np.array(x[:length], np.int64))
    return x if x.shape[0] == length else x[:length]
