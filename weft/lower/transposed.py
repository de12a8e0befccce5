"""Copies of operands that lie transposed: whose elements follow one another from row to row.

A kernel transposes them itself, by tiles of a few rows. Where passes over whole rows follow one
another and the rows are long, there is no room for such tiles, and a kernel of its own copies the
operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.shape import size_of
from .storage import View

if TYPE_CHECKING:
    from .lowering import Lowering

LONG_ROW = 1 << 10  # elements, of all transposed operands
LEAST_ROWS = 8


def straightened(lowered: Lowering, views: Sequence[View], split: int) -> list[View]:
    """Return operands as they are, or copies in C order of transposed ones whose rows are long."""
    transposed = [view for view in views if _is_transposed(view, split)]
    if not transposed or len(transposed) * size_of(transposed[0].shape[split:]) <= LONG_ROW:
        return list(views)
    return [_copied(lowered, view) if view in transposed else view for view in views]


def _copied(lowered: Lowering, view: View) -> View:
    """Return a copy in C order; what is repeated is copied once."""
    axes = zip(view.shape, view.strides, strict=True)
    once = tuple(size if stride else 1 for size, stride in axes)
    made = lowered.copied(View(view.buffer, once, view.strides, view.offset))
    return made.broadcast(view.shape)


def _is_transposed(view: View, split: int) -> bool:
    axes = list(zip(view.shape, view.strides, strict=True))
    rows = [axis for axis in axes[:split] if axis[0] != 1]
    along = [stride for size, stride in axes[split:] if size != 1]
    if not rows or not along:
        return False
    count, down = rows[-1]
    return bool(down == 1 and abs(along[-1]) > 1 and count >= LEAST_ROWS)
