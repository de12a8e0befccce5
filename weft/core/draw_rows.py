"""Whose rows of a larger draw this program draws: processes that share a batch draw as one would.

Random numbers are counted, so that the rows of one process can be drawn without those of the
others. What is drawn for a batch is known by its size along the first or second axis.
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


_rows: ContextVar[DrawRows | None] = ContextVar("weft_draw_rows", default=None)
current_rows = _rows.get


@contextmanager
def drawing_rows(rows: DrawRows | None) -> Iterator[None]:
    """Draw these rows of what all processes together draw."""
    token = _rows.set(rows)
    try:
        yield
    finally:
        _rows.reset(token)
