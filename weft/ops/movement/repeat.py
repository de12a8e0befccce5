"""Repeat whole tensors or single elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import Dim, may_equal, surely_less
from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.op import F, composite
from ...core.shape import as_int, as_shape, normalize_axis
from .reshape import sizes_from


@composite(method=True)
def tile(x: Any, *repeats: Any, dims: Any = None) -> Any:
    """Return x laid out several times along each axis, as NumPy's tile; dims is PyTorch's name.

    >>> import weft as wf
    >>> wf.tile(wf.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    if dims is not None:
        if repeats:
            raise ArgumentTypeError("tile: repeats and dims are the same argument; give one")
        repeats = (dims,)
    counts = as_shape(sizes_from(repeats), "tile: repeats")
    ndim = max(len(counts), x.ndim)
    counts = (1,) * (ndim - len(counts)) + counts
    sizes = (1,) * (ndim - x.ndim) + tuple(x.shape)
    once = tuple(dim for size in sizes for dim in (1, size))
    often = tuple(dim for pair in zip(counts, sizes, strict=True) for dim in pair)
    result = tuple(count * size for count, size in zip(counts, sizes, strict=True))
    return F.reshape(F.broadcast_to(F.reshape(x, once), often), result)


@composite()
def repeat(x: Any, repeats: Any, axis: int | None = None) -> Any:
    """Return x with each element along an axis repeated, as NumPy's repeat.

    `repeats` is one number, alone or in a list, or one for each element. Without an axis x is
    flattened first. (To lay out the whole tensor several times, PyTorch's Tensor.repeat, use
    `tile`. The method x.repeat, where both meanings exist, wants the axis by name.)

    >>> import weft as wf
    >>> wf.repeat(wf.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if axis is None:
        x, axis = F.ravel(x), 0
    axis = normalize_axis(axis, x.ndim, "repeat: axis")
    if isinstance(repeats, Dim) or np.ndim(repeats) == 0:
        return _repeat_evenly(x, as_int(repeats, "repeat: repeats"), axis)
    counts = np.asarray(repeats)
    if counts.shape == (1,) and counts.dtype.kind in "iu":
        return _repeat_evenly(x, int(counts[0]), axis)
    fits = may_equal(counts.shape, (x.shape[axis],))
    if not fits or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise ArgumentError(
            f"repeat: repeats must be {x.shape[axis]} integers >= 0, one for each element along "
            f"axis {axis}. Received: {repeats!r:.80}"
        )
    if isinstance(x.shape[axis], Dim):
        x = F.ensure_shape(x, (*x.shape[:axis], len(counts), *x.shape[axis + 1 :]))
    return F.take(x, np.repeat(np.arange(len(counts)), counts), axis)


def _repeat_evenly(x: Any, count: int, axis: int) -> Any:
    if surely_less(count, 0):
        raise ArgumentError(f"repeat: repeats must not be negative. Received: {count}")
    lead, size, tail = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    often = F.broadcast_to(F.unsqueeze(x, axis + 1), (*lead, size, count, *tail))
    return F.reshape(often, (*lead, size * count, *tail))


@composite(method=True)
def repeat_interleave(x: Any, repeats: Any, axis: int | None = None) -> Any:
    """Return x with each element along an axis repeated: PyTorch's name of `repeat`."""
    return repeat(x, repeats, axis)
