"""Pooling, and its inverses. By default the last window may stand out of the input (cover_all)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import F
from ...core.tensor import Tensor
from ..utils.sizes import pair, spatial
from ..variable import as_tensor, wrapped
from ._common import function


def _filled(x: Tensor, ksize: Any, stride: Any, pad: Any, cover_all: bool) -> Tensor:
    """Return x with `pad` before each axis and as much behind as the last window needs."""
    before_after = []
    for size, k, s, p in zip(x.shape[2:], ksize, stride, pad, strict=True):
        windows = (size + 2 * p - k + (s - 1 if cover_all else 0)) // s + 1
        before_after.append((p, max((windows - 1) * s + k - size - p, 0)))
    return F.pad(x, ((0, 0), (0, 0), *before_after), "constant", -np.inf)


@function
def max_pooling_nd(
    x: Tensor,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window."""
    axes = x.ndim - 2
    ksize, pad = spatial(ksize, axes), spatial(pad, axes)
    stride = ksize if stride is None else spatial(stride, axes)
    compute = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[axes - 1]
    axes_of = list(zip(x.shape[2:], ksize, stride, pad, strict=True))
    exact = all((n + 2 * p - k) % s == 0 for n, k, s, p in axes_of)
    if (cover_all and not exact) or any(2 * p > k for _, k, _, p in axes_of):
        x, pad = _filled(x, ksize, stride, pad, cover_all), (0,) * axes
    if return_indices:
        pooled, places = compute(x, ksize, stride, pad, 1, False, True)
        return pooled, places
    return compute(x, ksize, stride, pad)


@function
def average_pooling_nd(
    x: Tensor, ksize: Any, stride: Any = None, pad: Any = 0, pad_value: float | None = 0
) -> Tensor:
    """Return the mean of each window; with `pad_value` None, of its elements inside the input."""
    axes = x.ndim - 2
    ksize, pad = spatial(ksize, axes), spatial(pad, axes)
    stride = ksize if stride is None else spatial(stride, axes)
    if axes == 3:
        return F.avg_pool3d(x, ksize, stride, pad, False, pad_value is not None)
    compute = (F.avg_pool1d, F.avg_pool2d)[axes - 1]
    return compute(x, ksize, stride, pad, False, pad_value is not None)


def max_pooling_2d(
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    cover_all: bool = True,
    return_indices: bool = False,
) -> Any:
    """Return the largest element of each window of images."""
    return max_pooling_nd(x, ksize, stride, pad, cover_all, return_indices)


def average_pooling_2d(x: Any, ksize: Any, stride: Any = None, pad: Any = 0) -> Any:
    """Return the mean of each window of images; what is outside counts as zero."""
    return average_pooling_nd(x, ksize, stride, pad)


max_pooling_1d = max_pooling_3d = max_pooling_nd
average_pooling_1d = average_pooling_3d = average_pooling_nd


@function
def unpooling_nd(
    x: Tensor,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    outsize: Any = None,
    cover_all: bool = True,
) -> Tensor:
    """Return an input of which x could be the pooling.

    Each element fills its window; where windows meet, elements are added.
    """
    axes = x.ndim - 2
    ksize, pad = spatial(ksize, axes), spatial(pad, axes)
    stride = ksize if stride is None else spatial(stride, axes)
    less = [s - 1 if cover_all else 0 for s in stride]
    wanted = outsize or [
        s * (n - 1) + k - lost - 2 * p
        for n, k, s, p, lost in zip(x.shape[2:], ksize, stride, pad, less, strict=True)
    ]
    channels = x.shape[1]
    ones = as_tensor(np.ones((channels, 1, *ksize), x.dtype))
    compute = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[axes - 1]
    whole = compute(x, ones, None, stride, (0,) * axes, (0,) * axes, channels)
    more = [max(p + n - had, 0) for p, n, had in zip(pad, wanted, whole.shape[2:], strict=True)]
    whole = F.pad(whole, ((0, 0), (0, 0), *((0, m) for m in more)))
    return whole[
        (slice(None), slice(None), *(slice(p, p + n) for p, n in zip(pad, wanted, strict=True)))
    ]


def unpooling_2d(
    x: Any,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    outsize: Any = None,
    cover_all: bool = True,
) -> Any:
    """Return images whose windows are filled with the elements of x."""
    return unpooling_nd(x, ksize, stride, pad, outsize, cover_all)


unpooling_1d = unpooling_3d = unpooling_nd


@function
def upsampling_2d(
    x: Tensor,
    indexes: Tensor,
    ksize: Any,
    stride: Any = None,
    pad: Any = 0,
    outsize: Any = None,
    cover_all: bool = True,
) -> Tensor:
    """Return images with each element of x where max_pooling_2d found it, and zeros elsewhere.

    The indices are those that `max_pooling_2d(..., return_indices=True)` of this face gave.
    """
    return F.max_unpool2d(
        x, indexes, pair(ksize), None if stride is None else pair(stride), pair(pad), outsize
    )


def spatial_pyramid_pooling_2d(x: Any, pyramid_height: int, pooling: str = "max", **_: Any) -> Any:
    """Return the largest elements over grids of 1, 2 x 2, 4 x 4 ... windows, as one vector."""
    tensor = as_tensor(x)
    height, width = tensor.shape[2:]
    if pooling != "max":
        raise ValueError(f"unsupported pooling operation: {pooling!r}; it is 'max'")
    parts = []
    for level in range(pyramid_height):
        cells = 2**level
        ksize = -(-height // cells), -(-width // cells)
        pad = (ksize[0] * cells - height) // 2, (ksize[1] * cells - width) // 2
        pooled = max_pooling_nd.__wrapped__(tensor, ksize, ksize, pad, True)  # type: ignore[attr-defined]  # of `function`
        parts.append(F.reshape(pooled, (tensor.shape[0], -1)))
    return wrapped(F.reshape(F.concat(parts, 1), (tensor.shape[0], -1, 1, 1)))
