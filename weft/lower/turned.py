"""Copies of operands that lie turned: whose elements follow one another from row to row.

A kernel turns them itself, by tiles of a few rows. Where passes over whole rows follow one another
and the rows are long, there is no room for such tiles, and a kernel of its own copies the operand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.shape import size_of
from .storage import View

if TYPE_CHECKING:
    from .lowering import Lowered

LONG_ROW = 1 << 10  # elements
LEAST_ROWS = 8


def straightened(lowered: Lowered, view: View, split: int) -> View:
    """Return an operand as it is, or a copy in C order if its rows are long and lie turned."""
    if not _is_long_and_turned(view, split):
        return view
    repeated = zip(view.shape, view.strides, strict=True)
    once = tuple(size if stride else 1 for size, stride in repeated)
    made = lowered.copied(View(view.buffer, once, view.strides, view.offset))
    return made.broadcast(view.shape)


def _is_long_and_turned(view: View, split: int) -> bool:
    axes = list(zip(view.shape, view.strides, strict=True))
    rows = [axis for axis in axes[:split] if axis[0] != 1]
    along = [stride for size, stride in axes[split:] if size != 1]
    if not rows or not along or size_of(view.shape[split:]) <= LONG_ROW:
        return False
    count, down = rows[-1]
    return down == 1 and abs(along[-1]) > 1 and count >= LEAST_ROWS
