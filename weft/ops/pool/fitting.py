"""Where pooling windows lie: PyTorch's sizes, and padding fitted to the windows that are used."""

from __future__ import annotations

from typing import Any

from ...core.dim import Dim, size_min, surely_less
from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ...core.shape import Shape
from ..conv.geometry import Pairs, is_pairs, padding_pairs, per_axis, spans, window_counts


def fit_windows(
    size: Shape, kernel: Shape, stride: Shape, padding: Any, dilation: Shape, ceil_mode: Any
) -> Pairs:
    """Return padding as (before, after) pairs that the windows fill exactly.

    Where the last window reaches beyond the padding (ceil_mode) `after` grows; where elements are
    left over it becomes negative. Fitted padding fits again, so the result may be passed back in.
    """
    if ceil_mode is not True and ceil_mode is not False:
        raise ArgumentTypeError(f"ceil_mode must be True or False. Received: {ceil_mode!r}")
    extent = spans(kernel, dilation)
    if is_pairs(padding):
        pairs = padding_pairs(padding, kernel, stride, dilation)
        counts = window_counts(size, kernel, stride, pairs, dilation)
    else:
        given = per_axis(padding, len(kernel), "padding", minimum=0)
        _check_padding(given, extent)
        pairs = tuple((p, p) for p in given)
        counts = _pool_counts(size, extent, stride, given, ceil_mode)
    return tuple(
        (before, (count - 1) * step + reach - n - before)
        for (before, _), count, step, reach, n in zip(
            pairs, counts, stride, extent, size, strict=True
        )
    )


def _check_padding(padding: Shape, extent: Shape) -> None:
    if any(2 * p > reach for p, reach in zip(padding, extent, strict=True)):
        raise ArgumentError(
            "padding must be at most half of the (dilated) kernel, or windows would hold padding "
            f"only. Received: padding={padding}, kernel extent {extent}"
        )


def _pool_counts(
    size: Shape, extent: Shape, stride: Shape, padding: Shape, ceil_mode: bool
) -> Shape:
    axes = zip(size, extent, stride, padding, strict=True)
    counts = tuple(_count(*axis, ceil_mode) for axis in axes)
    if any(surely_less(count, 1) for count in counts):
        raise ShapeError(
            f"kernel of extent {extent} is larger than the padded input. "
            f"Received: input size {size}, padding {padding}"
        )
    return counts


def _count(size: Any, extent: int, stride: int, padding: int, ceil_mode: bool) -> Any:
    """Return the number of windows along one axis; the last starts in the input or before it."""
    room = size + 2 * padding - extent
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    if isinstance(size, Dim):  # the same as below: as many as start before the padded end
        return size_min(count, -(-(size + padding) // stride))
    return count - 1 if (count - 1) * stride >= size + padding else count
