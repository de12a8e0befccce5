"""Max-pooling over windows at random places, by any ratio (Graham 2015, arXiv:1412.6071)."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ...core.dim import may_equal
from ...core.dtype import int64
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite
from ...core.rng import Generator
from ...core.tensor import Tensor
from .._operands import names_errors, operand
from ..conv.convolution import Ints
from ..conv.geometry import per_axis, with_batch
from ..random.draw import rand

Pooled = Tensor | tuple[Tensor, Tensor]


@composite()
@names_errors
def fractional_max_pool2d(
    x: Tensor,
    kernel_size: Ints,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    *,
    random_samples: Any = None,
    generator: Generator | None = None,
) -> Pooled:
    """Return maxima of windows of an image ([N,] C, H, W) whose distances vary at random.

    output_size      the size of the result, or
    output_ratio     its part of the input's
    random_samples   (N, C, 2): uniform numbers that fix the windows, for columns and rows
    """
    given = (kernel_size, output_size, output_ratio)
    return _fractional("fractional_max_pool2d", x, given, return_indices, random_samples, generator)


@composite()
@names_errors
def fractional_max_pool3d(
    x: Tensor,
    kernel_size: Ints,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    *,
    random_samples: Any = None,
    generator: Generator | None = None,
) -> Pooled:
    """Return maxima of windows of a volume ([N,] C, D, H, W); see `fractional_max_pool2d`.

    random_samples   (N, C, 3), for depth, rows and columns
    """
    given = (kernel_size, output_size, output_ratio)
    return _fractional("fractional_max_pool3d", x, given, return_indices, random_samples, generator)


def _fractional(
    fn: str, x: Any, given: tuple[Any, ...], indices: bool, samples: Any, generator: Any
) -> Pooled:
    spatial = 2 if fn.endswith("2d") else 3
    x, added = with_batch(operand(fn, "x", x), spatial, F.reshape)
    size = tuple(x.shape[2:])
    kernel = per_axis(given[0], spatial, f"{fn}: kernel_size")
    wanted = _output_size(fn, size, kernel, given[1], given[2])
    if samples is None:
        drawn = rand((*x.shape[:2], spatial), dtype="float32", generator=generator)
    else:
        drawn = operand(fn, "random_samples", samples)
        if not may_equal(tuple(drawn.shape), (*x.shape[:2], spatial)):
            raise ShapeError(
                f"{fn}: random_samples must have shape {(*x.shape[:2], spatial)}. "
                f"Received: {tuple(drawn.shape)}"
            )
    order = (1, 0) if spatial == 2 else (0, 1, 2)
    starts = [
        _starts(drawn[..., order[axis]], size[axis], wanted[axis], kernel[axis])
        for axis in range(spatial)
    ]
    places = _largest(x, _window_places(starts, size, kernel))
    values = F.pool_gather(x, places)
    if added:
        values, places = F.squeeze(values, 0), F.squeeze(places, 0)
    return (values, places) if indices else values


def _output_size(fn: str, size: Any, kernel: Any, wanted: Any, ratio: Any) -> tuple[int, ...]:
    if (wanted is None) == (ratio is None):
        raise ArgumentError(f"{fn}: give either output_size or output_ratio")
    if wanted is None:
        parts = ratio if isinstance(ratio, (tuple, list)) else (ratio,) * len(size)
        if not all(0 < part < 1 for part in parts):
            raise ArgumentError(f"{fn}: output_ratio must lie in (0, 1). Received: {ratio}")
        found = tuple(int(n * part) for n, part in zip(size, parts, strict=True))
    else:
        found = per_axis(wanted, len(size), f"{fn}: output_size")
    if any(out + k - 1 > n for out, k, n in zip(found, kernel, size, strict=True)):
        raise ShapeError(
            f"{fn}: windows of {tuple(kernel)} do not make {found} of an input of {tuple(size)}"
        )
    return found


def _starts(u: Any, size: int, count: int, kernel: int) -> Any:
    """Return where windows begin, (N, C, count), from one uniform number for each channel."""
    last = size - kernel
    if count == 1:
        return F.cast(F.zeros_like(u[..., None]) + last, int64)
    alpha = np.asarray(last / (count - 1), u.dtype)
    place = F.cast(F.iota(count), u.dtype)
    begun = F.floor((place + u[..., None]) * alpha) - F.floor(u[..., None] * alpha)
    return F.cast(F.where(F.iota(count) == count - 1, float(last), begun), int64)


def _window_places(starts: list[Any], size: Any, kernel: Any) -> Any:
    """Return the flat places of all elements of all windows, those of one along the last axis."""
    spatial = len(size)
    found = []
    for offsets in product(*map(range, kernel)):
        flat: Any = 0
        for axis in range(spatial):
            along = starts[axis] + offsets[axis]
            shape = [1] * spatial
            shape[axis] = along.shape[-1]
            flat = flat * size[axis] + F.reshape(along, (*along.shape[:2], *shape))
        found.append(flat)
    return F.stack(found, -1)


def _largest(x: Any, places: Any) -> Any:
    """Return the place of the largest element of each window; of equal ones the first."""
    values = F.pool_gather(F.stop_gradient(x), F.flatten(places, 2))
    chosen = F.argmax(F.reshape(values, tuple(places.shape)), -1)
    return F.take_along_axis(places, chosen[..., None], -1)[..., 0]
