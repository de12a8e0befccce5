"""Convolution and its two adjoints on raw arrays: window columns and matrix products.

Windows are laid out as columns (im2col; Chellapilla, Puri and Simard 2006) for a tile of images and
output rows at a time, so that the columns stay in cache and the product runs at BLAS speed. A 1x1
convolution needs no copy at all: its columns are the input itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.dtype import Array
from ...core.products import products
from ...core.shape import Shape, size_of
from .._halves import through_float32
from .geometry import Pairs, window_counts
from .windows import (
    add_windows,
    negated,
    pad_spatial,
    window_view,
)

TILE_ELEMENTS = 1 << 20  # columns of one tile: 4 MB of float32
TILE_WIDTH = 256  # but at least this many columns, or the product would be too narrow for BLAS
SCATTER_COST = 4  # adding an element back into place costs as much as copying four


@through_float32
def correlate(
    x: Array, weight: Array, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Array:
    """Return the cross-correlation of (N, C, *S) with (O, C/groups, *K): (N, O, *P)."""
    kernel = weight.shape[2:]
    counts = window_counts(x.shape[2:], kernel, stride, padding, dilation)
    windows = window_view(pad_spatial(x, padding), kernel, counts, stride, dilation)
    filters = weight.reshape(groups, weight.shape[0] // groups, size_of(weight.shape[1:]))
    out = np.empty((x.shape[0], weight.shape[0], *counts), np.result_type(x, weight))
    for tile in tiles(out.shape, size_of(x.shape[1:2] + kernel)):
        columns = window_columns(windows, tile, groups)
        store(out, tile, groups, filters, columns)
    return out


@through_float32
def correlate_weight(
    x: Array,
    y: Array,
    kernel: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
) -> Array:
    """Return the adjoint of `correlate` in its weight: (N, C, *S), (N, O, *P) -> (O, C/g, *K)."""
    windows = window_view(pad_spatial(x, padding), kernel, y.shape[2:], stride, dilation)
    channels, outputs = x.shape[1] // groups, y.shape[1] // groups
    total = np.zeros((groups, outputs, channels * size_of(kernel)), np.result_type(x, y))
    for tile in tiles(y.shape, size_of(x.shape[1:2] + kernel)):
        columns = window_columns(windows, tile, groups)
        total += products(load(y, tile, groups), columns.swapaxes(1, 2))
    return total.reshape(y.shape[1], channels, *kernel)


@through_float32
def correlate_input(
    y: Array,
    weight: Array,
    input_size: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
) -> Array:
    """Return the adjoint of `correlate` in its input: (N, O, *P) -> (N, C, *S)."""
    per_group = weight.shape[0] // max(groups, 1)
    if all(s == 1 for s in stride) and per_group <= SCATTER_COST * weight.shape[1]:
        return _correlate_flipped(y, weight, padding, dilation, groups)
    return _scatter_products(y, weight, input_size, stride, padding, dilation, groups)


def _correlate_flipped(
    y: Array, weight: Array, padding: Pairs, dilation: Shape, groups: int
) -> Array:
    """With stride 1 the adjoint is a correlation with the flipped kernel, channels exchanged."""
    outputs, channels, *kernel = weight.shape
    grouped = weight.reshape(groups, outputs // groups, channels, *kernel).swapaxes(1, 2)
    turned = grouped.reshape(groups * channels, outputs // groups, *kernel)
    flipped = np.flip(turned, tuple(range(2, turned.ndim)))
    reach = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    pairs = tuple((r - lo, r - hi) for r, (lo, hi) in zip(reach, padding, strict=True))
    ones = (1,) * len(kernel)
    return correlate(y, np.ascontiguousarray(flipped), ones, pairs, dilation, groups)


def _scatter_products(
    y: Array,
    weight: Array,
    input_size: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
) -> Array:
    """In general the products are added back to the places their windows came from (col2im)."""
    outputs, channels, *kernel = weight.shape
    filters = weight.reshape(groups, outputs // groups, channels * size_of(kernel)).swapaxes(1, 2)
    sizes = [n + lo + hi for n, (lo, hi) in zip(input_size, padding, strict=True)]
    padded = np.zeros((y.shape[0], groups * channels, *sizes), np.result_type(y, weight))
    for images, rows in tiles(y.shape, groups * channels * size_of(kernel)):
        counts = (rows.stop - rows.start, *y.shape[3:])
        result = products(filters, load(y, (images, rows), groups))
        shape = (groups * channels, *kernel, images.stop - images.start, *counts)
        columns = np.moveaxis(result.reshape(shape), 1 + len(kernel), 0)
        part = padded[images, :, rows.start * stride[0] :]
        add_windows(part, columns, stride, dilation)
    return pad_spatial(padded, negated(padding))


# -- tiles ------------------------------------------------------------------------------------

Tile = tuple[slice, slice]  # images, and rows of the first spatial axis of the output


def tiles(out_shape: Shape, column_height: int) -> Iterator[Tile]:
    """Yield tiles of an output (N, O, *P): some rows of one image, or some whole images."""
    batch, _, rows, *rest = out_shape
    width = max(TILE_WIDTH, TILE_ELEMENTS // max(column_height, 1))
    row_size = max(size_of(rest), 1)
    images = max(1, width // max(rows * row_size, 1))
    height = max(1, min(rows, width // row_size))
    for first in range(0, batch, images):
        for top in range(0, rows, height):
            yield (
                slice(first, min(first + images, batch)),
                slice(top, min(top + height, rows)),
            )


def window_columns(windows: Array, tile: Tile, groups: int) -> Array:
    """Return a tile of windows (N, C, *K, *P) as matrices (groups, C/groups * K, columns)."""
    images, rows = tile
    spatial = (windows.ndim - 2) // 2
    part = windows[(images, *[slice(None)] * (1 + spatial), rows)]
    moved = part.transpose(*range(1, 2 + spatial), 0, *range(2 + spatial, part.ndim))
    height = size_of(moved.shape[: 1 + spatial]) // groups
    return moved.reshape(groups, height, size_of(moved.shape[1 + spatial :]))


def load(y: Array, tile: Tile, groups: int) -> Array:
    """Return a tile of (N, O, *P) as matrices (groups, O/groups, columns)."""
    images, rows = tile
    part = y[images, :, rows]
    columns = size_of(part.shape[:1] + part.shape[2:])
    return part.swapaxes(0, 1).reshape(groups, y.shape[1] // groups, columns)


def store(out: Array, tile: Tile, groups: int, filters: Array, columns: Array) -> None:
    """Write filters @ columns to a tile of (N, O, *P)."""
    images, rows = tile
    part = out[images, :, rows]
    if part.shape[0] == 1:  # the product already has the layout of the output
        whole = out[images.start].reshape(groups, filters.shape[1], size_of(out.shape[2:]))
        row_size = size_of(out.shape[3:])
        products(filters, columns, out=whole[:, :, rows.start * row_size : rows.stop * row_size])
        return
    result = products(filters, columns)
    part[...] = np.moveaxis(result.reshape(part.shape[1], part.shape[0], *part.shape[2:]), 1, 0)
