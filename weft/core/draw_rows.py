"""Whose part of a larger draw this program draws: processes that share work draw as one would.

Random numbers are counted, so that the rows of one process can be drawn without those of the
others. What is drawn for a batch is known by its size along the first or second axis; layers that
are divided along another one say along which.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DrawRows:
    """Part `index` of `count` parts, each with `batch` rows."""

    index: int
    count: int
    batch: Any

    def axis_of(self, shape: tuple[Any, ...]) -> int | None:
        """Return along which axis a draw has the rows of a batch; None if it is for all alike."""
        return next((axis for axis, size in enumerate(shape[:2]) if size == self.batch), None)


@dataclass(frozen=True)
class DrawPart:
    """Part `index` of `count` equal parts of all that is drawn, along an axis."""

    index: int
    count: int
    axis: int


_rows: ContextVar[DrawRows | None] = ContextVar("weft_draw_rows", default=None)
_part: ContextVar[DrawPart | None] = ContextVar("weft_draw_part", default=None)
current_rows, current_part = _rows.get, _part.get


@contextmanager
def drawing_rows(rows: DrawRows | None) -> Iterator[None]:
    """Draw these rows of what all processes together draw."""
    token = _rows.set(rows)
    try:
        yield
    finally:
        _rows.reset(token)


@contextmanager
def drawing_part(part: DrawPart) -> Iterator[None]:
    """Draw this part of what the processes that divide a layer draw together."""
    token = _part.set(part)
    try:
        yield
    finally:
        _part.reset(token)
