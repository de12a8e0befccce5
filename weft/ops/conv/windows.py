"""Window views, padding and their adjoint on raw arrays of shape (batch, channels, *spatial)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...core.dtype import Array
from ...core.shape import Shape
from .geometry import Pairs


def pad_spatial(x: Array, pairs: Pairs, value: float = 0.0) -> Array:
    """Return x with each spatial axis extended by (before, after) elements; negative ones crop."""
    if all(pair == (0, 0) for pair in pairs):
        return x
    sizes = [n + before + after for n, (before, after) in zip(x.shape[2:], pairs, strict=True)]
    padded = np.full((*x.shape[:2], *sizes), value, x.dtype)
    target, source = [slice(None)] * 2, [slice(None)] * 2
    for n, (before, after) in zip(x.shape[2:], pairs, strict=True):
        target.append(slice(max(before, 0), max(before, 0) + n + min(before, 0) + min(after, 0)))
        source.append(slice(max(-before, 0), n - max(-after, 0)))
    padded[tuple(target)] = x[tuple(source)]
    return padded


def negated(pairs: Pairs) -> Pairs:
    """Return the padding that undoes another one."""
    return tuple((-before, -after) for before, after in pairs)


def window_view(x: Array, kernel: Shape, counts: Shape, stride: Shape, dilation: Shape) -> Array:
    """Return all windows of a padded array as a view (batch, channels, *kernel, *counts)."""
    steps = x.strides[2:]
    within = tuple(s * d for s, d in zip(steps, dilation, strict=True))
    between = tuple(s * t for s, t in zip(steps, stride, strict=True))
    shape = (*x.shape[:2], *kernel, *counts)
    return as_strided(x, shape, (*x.strides[:2], *within, *between), writeable=False)


def kernel_slices(
    kernel: Shape, counts: Shape, stride: Shape, dilation: Shape
) -> Iterator[tuple[Shape, tuple[slice, ...]]]:
    """Yield each kernel position with the places of a padded array it meets in all windows."""
    axes = list(zip(counts, stride, dilation, strict=True))
    for position in product(*map(range, kernel)):
        places = tuple(
            slice(k * d, k * d + (n - 1) * s + 1, s)
            for k, (n, s, d) in zip(position, axes, strict=True)
        )
        yield position, places


def add_windows(padded: Array, columns: Array, stride: Shape, dilation: Shape) -> None:
    """Add windows (batch, channels, *kernel, *counts) to where they lie in a padded array.

    The loop runs over kernel positions: for each, all windows are added at once.
    """
    spatial = len(stride)
    kernel, counts = columns.shape[2 : 2 + spatial], columns.shape[2 + spatial :]
    if 0 in counts:
        return
    for position, places in kernel_slices(kernel, counts, stride, dilation):
        target: Any = (slice(None), slice(None), *places)
        source: Any = (slice(None), slice(None), *position)
        padded[target] += columns[source]
