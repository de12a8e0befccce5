"""Images as operands of products: a row for each element of a window, or for each window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.shape import Shape, size_of
from .kernels import Windows
from .padded import Axis, Padded
from .storage import View

if TYPE_CHECKING:
    from .lowering import Lowering

Places = Sequence[np.ndarray[Any, Any]]  # for each axis, offsets of its places
Columns = tuple[tuple[int, int], ...]  # sizes and strides of axes


def reshaped(lowered: Lowering, view: View, shape: Shape) -> View:
    """Return a view in another shape, or a copy if it has none."""
    made = view.reshaped(shape) or lowered.copied(view).reshaped(shape)
    assert made is not None
    return made


def padded_images(lowered: Lowering, images: View, axes: Sequence[Axis]) -> Padded:
    """Return images with padding, copied by kernels that are added."""
    padded = Padded(images.shape[:2], axes, images.dtype)
    lowered.copies.append(padded.whole)
    lowered.kernels += padded.kernels(images)
    return padded


def sums_of(first: np.ndarray[Any, Any], places: Places) -> np.ndarray[Any, Any]:
    """Return the sums of all combinations of offsets, as one row."""
    for offsets in places:
        first = np.add.outer(first, offsets)
    return first.reshape(-1)


def steps(count: int, stride: int) -> np.ndarray[Any, Any]:
    """Return the offsets of so many places that lie a stride apart."""
    return np.arange(count, dtype=np.int64) * stride


def window_operand(
    lowered: Lowering,
    padded: Padded,
    batch: Shape,
    group: int,
    offsets: np.ndarray[Any, Any],
    columns: Columns,
) -> tuple[View, Windows]:
    """Return padded images as an operand with a row for each offset, and how it lies.

    The batch is (images, groups), or only groups, which lie so many elements apart.
    """
    lead = (padded.strides[0], group)[-len(batch) :]
    shape = (*batch, len(offsets), size_of(size for size, _ in columns))
    y = View(padded.whole.buffer, shape, (*lead, 0, 0), padded.start)
    table = lowered.table(offsets)
    rows = View(table.buffer, shape, (*[0] * len(batch), 1, 0))
    return y, Windows(rows, columns)
