"""Sampling images at given places: spatial transformers (Jaderberg et al. 2015)."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ...core.dim import Dim, may_equal
from ...core.dtype import int64, is_float
from ...core.errors import ArgumentError, DTypeError, ShapeError
from ...core.op import F, composite
from ...core.shape import as_shape, size_of
from ...core.tensor import Tensor
from .._halves import rounded_once

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


@composite()
@rounded_once
def grid_sample(
    x: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = False,
) -> Tensor:
    """Return x read at the places of a grid, by interpolation.

    x is (N, C, H, W) and grid (N, h, w, 2), the result (N, C, h, w); or (N, C, D, H, W) and
    (N, d, h, w, 3). The last axis of the grid holds (x, y[, z]) in -1..1, from the left (top,
    front) to the right (bottom, back): between the outer borders, or between the centres of the
    corner elements with align_corners. Beyond, x counts as zero, or as its nearest element
    ("border"), or is mirrored ("reflection"). "nearest" rounds halves to even and has no gradient
    in the grid; "bicubic", of images only, reads 16 elements (Keys 1981, with a = -3/4).
    """
    _check_sampling(x, grid, mode, padding_mode)
    size = tuple(x.shape[2:])
    padding = "zeros" if mode == "bicubic" else padding_mode  # which brings inside what it reads
    where = [
        _place(grid[..., len(size) - 1 - axis], n, padding, bool(align_corners))
        for axis, n in enumerate(size)
    ]
    if mode == "bicubic":
        return _bicubic(x, where, padding_mode, bool(align_corners))
    if mode == "nearest":
        return _read(x, [F.round(c) for c in where], None)
    below = [F.floor(c) for c in where]
    above = [c - b for c, b in zip(where, below, strict=True)]
    total = None
    for corner in product((0, 1), repeat=len(size)):
        places = [b + step for b, step in zip(below, corner, strict=True)]
        shares = [a if step else 1 - a for a, step in zip(above, corner, strict=True)]
        part = _read(x, places, _product(shares))
        total = part if total is None else total + part
    assert total is not None
    return total


def _bicubic(x: Any, where: list[Any], padding_mode: str, align_corners: bool) -> Tensor:
    below = [F.floor(c) for c in where]
    shares = [_cubic_shares(c - b) for c, b in zip(where, below, strict=True)]
    total = None
    for corner in product(range(4), repeat=2):
        places = [
            _brought_inside(b + (step - 1), n, padding_mode, align_corners)
            for b, step, n in zip(below, corner, x.shape[2:], strict=True)
        ]
        share = _product([s[step] for s, step in zip(shares, corner, strict=True)])
        part = _read(x, places, share)
        total = part if total is None else total + part
    assert total is not None
    return total


def _cubic_shares(t: Any, a: float = -0.75) -> list[Any]:
    """Return the weights of the elements at -1, 0, 1 and 2 for a place t between 0 and 1."""

    def near(d: Any) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


@composite()
@rounded_once
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = False) -> Tensor:
    """Return the grid that `grid_sample` reads to transform images by affine maps.

    theta is (N, 2, 3) and size (N, C, H, W), the result (N, H, W, 2); or (N, 3, 4), (N, C, D, H, W)
    and (N, D, H, W, 3). Row i of a map gives coordinate i (x, y[, z]) from those of the output.
    """
    shape = as_shape(size, "affine_grid: size")
    spatial = shape[2:]
    expected = (shape[0] if shape else 0, len(spatial), len(spatial) + 1)
    if len(spatial) not in (2, 3) or not may_equal(tuple(theta.shape), expected):
        raise ShapeError(
            "affine_grid: theta must be (N, 2, 3) for a size (N, C, H, W), or (N, 3, 4) for "
            f"(N, C, D, H, W). Received: theta {tuple(theta.shape)}, size {shape}"
        )
    if not is_float(theta.dtype):
        raise DTypeError(f"affine_grid: theta must be floating-point. Received: {theta.dtype}")
    base = _base_coordinates(spatial, bool(align_corners)).astype(theta.dtype)
    moved = F.matmul(base, F.permute(theta, (0, 2, 1)))
    return F.reshape(moved, (shape[0], *spatial, len(spatial)))


def _base_coordinates(spatial: tuple[int, ...], align_corners: bool) -> np.ndarray[Any, Any]:
    """Return homogeneous coordinates (x, y[, z], 1) of all elements of an image."""
    axes = [(2.0 * np.arange(n) - (n - 1)) / max(n - 1 if align_corners else n, 1) for n in spatial]
    grids = np.meshgrid(*axes, indexing="ij")[::-1]
    columns = [*(g.reshape(-1) for g in grids), np.ones(size_of(spatial))]
    return np.stack(columns, axis=-1)


def _check_sampling(x: Any, grid: Any, mode: Any, padding_mode: Any) -> None:
    if mode == "bicubic" and x.ndim == 5:
        raise ShapeError(
            f"grid_sample: bicubic is for images (N, C, H, W). Received: input {tuple(x.shape)}"
        )
    if mode not in MODES:
        raise ArgumentError(f"grid_sample: mode must be one of {MODES}. Received: {mode!r}")
    if padding_mode not in PADDINGS:
        raise ArgumentError(
            f"grid_sample: padding_mode must be one of {PADDINGS}. Received: {padding_mode!r}"
        )
    if x.ndim not in (4, 5) or grid.ndim != x.ndim or grid.shape[-1] != x.ndim - 2:
        raise ShapeError(
            "grid_sample: needs an input (N, C, H, W) with a grid (N, h, w, 2), or (N, C, D, H, W) "
            f"with (N, d, h, w, 3). Received: input {tuple(x.shape)}, grid {tuple(grid.shape)}"
        )
    if x.shape[0] != grid.shape[0] or 0 in x.shape[2:]:
        raise ShapeError(
            "grid_sample: input and grid must have the same batch size, and the input must not be "
            f"empty. Received: input {tuple(x.shape)}, grid {tuple(grid.shape)}"
        )
    if not is_float(x.dtype) or x.dtype != grid.dtype:
        raise DTypeError(
            "grid_sample: input and grid must have the same floating-point dtype. "
            f"Received: {x.dtype} and {grid.dtype}"
        )


def _place(g: Any, size: int, padding_mode: str, align_corners: bool) -> Any:
    """Return grid coordinates as positions along an axis, brought inside as the padding asks."""
    where = (g + 1) * ((size - 1) / 2) if align_corners else ((g + 1) * size - 1) / 2
    return _brought_inside(where, size, padding_mode, align_corners)


def _brought_inside(where: Any, size: int, padding_mode: str, align_corners: bool) -> Any:
    if padding_mode == "zeros":
        return where
    if padding_mode == "reflection":
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        where = _reflect(where, low, high)
    return F.clip(where, 0, size - 1)


def _reflect(where: Any, low: Any, high: Any) -> Any:
    """Return positions mirrored at both ends until they lie between them."""
    span = high - low
    if isinstance(span, Dim):
        span = F.size_value(span, where.dtype)
        single = F.equal(span, 0)  # one element: every position is its own
        return F.where(single, where * 0 + low, _mirrored(where, low, F.where(single, 1, span)))
    return where * 0 + low if span == 0 else _mirrored(where, low, span)


def _mirrored(where: Any, low: float, span: Any) -> Any:
    distance = F.abs(where - low)
    turns = F.floor(distance / span)
    rest = distance - turns * span
    odd = turns - 2 * F.floor(turns / 2)
    return F.where(odd == 0, rest, span - rest) + low


def _read(x: Any, places: list[Any], share: Any) -> Tensor:
    """Return x at whole-numbered positions (N, *output), times a share; zero outside of x."""
    size = x.shape[2:]
    inside, flat = None, None
    for place, n in zip(places, size, strict=True):
        here = (place >= 0) & (place <= n - 1)
        inside = here if inside is None else inside & here
    for place, n in zip(places, size, strict=True):
        # Chosen before the cast: far, infinite and NaN positions have no integer.
        index = F.cast(F.where(inside, place, 0), int64)
        flat = index if flat is None else flat * n + index
    values = F.pool_gather(x, _for_channels(flat, x))
    values = F.where(_for_channels(inside, x), values, 0)
    if share is not None:
        values = values * F.unsqueeze(F.where(inside, share, 0), 1)
    return values


def _for_channels(places: Any, x: Any) -> Any:
    batch, *output = places.shape
    return F.broadcast_to(F.unsqueeze(places, 1), (batch, x.shape[1], *output))


def _product(factors: list[Any]) -> Any:
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result
