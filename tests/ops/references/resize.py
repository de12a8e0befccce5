"""References of resizing: the value of every output by its textbook formula, in plain loops."""

from __future__ import annotations

from itertools import product
from math import ceil, floor

import numpy as np

from weft.core.samples import ErrorSample, Sample

# -- along one axis -------------------------------------------------------------------------------


def _cubic(distance, a=-0.75):
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def _row(i, size, count, mode, align_corners, scale):
    """Return the shares of all inputs in output i."""
    row = np.zeros(size)
    if mode == "area":
        first, stop = floor(i * size / count), ceil((i + 1) * size / count)
        row[first:stop] = 1 / (stop - first)
        return row
    step = size / count if scale is None else scale
    if mode.startswith("nearest"):
        place = floor((i + 0.5) * step if mode == "nearest-exact" else i * step + 1e-12)
        row[min(place, size - 1)] = 1
        return row
    if mode.endswith("antialias"):
        return _wide_row(i, row, mode, _aligned(size, count) if align_corners else step)
    where = (i + 0.5) * step - 0.5
    if align_corners:
        where = i * (size - 1) / (count - 1) if count > 1 else 0.0
    if mode == "linear":
        where = min(max(where, 0.0), size - 1.0)
    base = floor(where)
    for near in range(base - 1, base + 3):
        distance = where - near
        share = max(0.0, 1 - abs(distance)) if mode == "linear" else _cubic(distance)
        row[min(max(near, 0), size - 1)] += share
    return row


def _aligned(size, count):
    return (size - 1) / (count - 1) if count > 1 else 0.0


def _wide_row(i, row, mode, step):
    """Return shares by a filter that is stretched by the step, over their sum."""
    for place in range(len(row)):
        distance = (place + 0.5 - (i + 0.5) * step) / max(step, 1)
        cubic = mode.startswith("cubic")
        row[place] = _cubic(distance, -0.5) if cubic else max(0.0, 1 - abs(distance))
    return row / row.sum()


def _matrix(size, count, mode="linear", align_corners=False, scale=None):
    rows = [_row(i, size, count, mode, align_corners, scale) for i in range(count)]
    return np.array(rows).reshape(count, size)


def _along(matrix, x, axis):
    result = np.moveaxis(np.tensordot(matrix, x, axes=(1, axis)), 0, axis)
    return result.astype(x.dtype)


def resize_axis(x, size, axis, *options, **named):
    return _along(_matrix(x.shape[axis], size, *options, **named), x, axis)


def resize_axis_adjoint(y, input_size, axis, *options, **named):
    return _along(_matrix(input_size, y.shape[axis], *options, **named).T, y, axis)


def interpolate(
    x,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    kinds = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
    kind = kinds.get(mode, mode) + "-antialias" * antialias
    spatial = x.ndim - 2
    if size is None:
        factors = np.broadcast_to(scale_factor, spatial).tolist()
        sizes = [floor(n * f) for n, f in zip(x.shape[2:], factors, strict=True)]
        keep = not recompute_scale_factor and not align_corners and kind != "area"
        steps = [1 / f if keep else None for f in factors]
    else:
        sizes, steps = np.broadcast_to(size, spatial).tolist(), [None] * spatial
    if x.dtype.kind != "f" and not kind.startswith("nearest"):
        x = x.astype(np.float32)
    for axis, (count, step) in enumerate(zip(sizes, steps, strict=True), start=2):
        x = resize_axis(x, count, axis, kind, bool(align_corners), step)
    return x


# -- rearrangements -------------------------------------------------------------------------------


def pixel_shuffle(x, upscale_factor):
    r = upscale_factor
    *lead, channels, height, width = x.shape
    result = np.zeros((*lead, channels // r**2, height * r, width * r), x.dtype)
    for c, i, j in product(range(channels), range(height), range(width)):
        out, rest = divmod(c, r * r)
        result[..., out, i * r + rest // r, j * r + rest % r] = x[..., c, i, j]
    return result


def pixel_unshuffle(x, downscale_factor):
    r = downscale_factor
    *lead, channels, height, width = x.shape
    result = np.zeros((*lead, channels * r**2, height // r, width // r), x.dtype)
    for c, i, j in product(range(channels), range(height), range(width)):
        place = c * r * r + (i % r) * r + j % r
        result[..., place, i // r, j // r] = x[..., c, i, j]
    return result


def channel_shuffle(x, groups):
    per_group = x.shape[1] // groups
    order = [g * per_group + i for i in range(per_group) for g in range(groups)]
    return x[:, order]


# -- sampling -------------------------------------------------------------------------------------


def _mirrored(where, low, high):
    while high > low and not low <= where <= high:
        where = 2 * low - where if where < low else 2 * high - where
    return where if high > low else low


def _position(g, n, padding_mode, align_corners):
    where = (g + 1) / 2 * (n - 1) if align_corners else ((g + 1) * n - 1) / 2
    if padding_mode == "reflection":
        where = _mirrored(where, *((0, n - 1) if align_corners else (-0.5, n - 0.5)))
    return where if padding_mode == "zeros" else min(max(where, 0), n - 1)


def keys(distance, a=-0.75):
    """Return Keys's cubic kernel."""
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def bicubic_sample(x, grid, padding_mode, align_corners):
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    scale = [(n - 1) / 2 if align_corners else n / 2 for n in x.shape[2:]]
    for n, *out in np.ndindex(grid.shape[:-1]):
        middle = [(m - 1) / 2 for m in x.shape[2:]]
        where = [g * s + c for g, s, c in zip(grid[(n, *out)][::-1], scale, middle, strict=True)]
        for corner in product(range(-1, 3), repeat=2):
            places = [floor(w) + c for w, c in zip(where, corner, strict=True)]
            share = np.prod([keys(w - p) for w, p in zip(where, places, strict=True)])
            if padding_mode == "border":
                places = [min(max(p, 0), m - 1) for p, m in zip(places, x.shape[2:], strict=True)]
            if all(0 <= p < m for p, m in zip(places, x.shape[2:], strict=True)):
                result[(n, slice(None), *out)] += share * x[(n, slice(None), *places)]
    return result


def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    if mode == "bicubic":
        return bicubic_sample(x, grid, padding_mode, align_corners)
    size = x.shape[2:]
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    for n, *out in np.ndindex(grid.shape[:-1]):
        coordinates = grid[(n, *out)][::-1]
        where = [
            _position(g, m, padding_mode, align_corners)
            for g, m in zip(coordinates, size, strict=True)
        ]
        if not np.all(np.isfinite(where)):
            continue
        if mode == "nearest":
            where = [round(w) for w in where]
        for corner in product((0, 1), repeat=len(size)):
            places = [floor(w) + c for w, c in zip(where, corner, strict=True)]
            share = np.prod([1 - abs(w - p) for w, p in zip(where, places, strict=True)])
            if all(0 <= p < m for p, m in zip(places, size, strict=True)):
                result[(n, slice(None), *out)] += share * x[(n, slice(None), *places)]
    return result


def affine_grid(theta, size, align_corners=False):
    batch, _, *spatial = size
    result = np.zeros((batch, *spatial, len(spatial)), theta.dtype)
    for place in np.ndindex(*spatial):
        point = [
            -1 + 2 * i / (n - 1) if align_corners and n > 1 else -1 + (2 * i + 1) / n
            for i, n in zip(place, spatial, strict=True)
        ]
        result[(slice(None), *place)] = theta @ np.array([*point[::-1], 1.0])
    return result


REFERENCES = {
    "resize_axis": resize_axis,
    "resize_axis_adjoint": resize_axis_adjoint,
    "interpolate": interpolate,
    "pixel_shuffle": pixel_shuffle,
    "pixel_unshuffle": pixel_unshuffle,
    "channel_shuffle": channel_shuffle,
    "grid_sample": grid_sample,
    "affine_grid": affine_grid,
}


# -- samples --------------------------------------------------------------------------------------


def _interpolate(s):
    for mode in ("nearest", "nearest-exact", "area"):
        yield Sample(s.real(1, 2, 3), 5, mode=mode)
        yield Sample(s.real(1, 1, 2, 3), (3, 2), mode=mode)
        yield Sample(s.real(1, 1, 2, 2, 2), scale_factor=(1.5, 1, 2), mode=mode)
    for mode, shape in (("linear", (3,)), ("bilinear", (3, 2)), ("trilinear", (2, 2, 1))):
        yield Sample(s.real(1, 2, *shape), 3, mode=mode)
        yield Sample(s.real(1, 1, *shape), 4, mode=mode, align_corners=True)
        yield Sample(s.real(1, 1, *shape), scale_factor=1.7, mode=mode)
    yield Sample(s.real(1, 1, 3, 4), (5, 2), mode="bicubic")
    yield Sample(s.real(1, 1, 4, 3), (2, 4), mode="bicubic", align_corners=True)
    for mode in ("bilinear", "bicubic"):
        yield Sample(s.real(1, 1, 5, 3), (2, 4), mode=mode, antialias=True)
        yield Sample(s.real(1, 1, 5, 4), scale_factor=0.7, mode=mode, antialias=True)
        yield Sample(s.real(1, 1, 5, 3), (2, 1), mode=mode, antialias=True, align_corners=True)
    yield Sample(s.real(1, 1, 3), scale_factor=1.7, mode="linear", recompute_scale_factor=True)
    yield Sample(s.real(0, 1, 3), 2, label="empty batch")
    yield Sample(s.integers(1, 1, 3), 5, grad=0, label="integers stay")
    yield Sample(s.integers(1, 1, 3), 5, mode="linear", grad=0, label="integers become floats")


def _pixel_shuffle(s):
    yield Sample(s.real(1, 4, 2, 2), 2)
    yield Sample(s.real(9, 1, 2), 3, label="unbatched")
    yield Sample(s.integers(0, 4, 1, 1), 2, grad=0)


def _pixel_unshuffle(s):
    yield Sample(s.real(1, 1, 4, 4), 2)
    yield Sample(s.real(2, 1, 1, 3, 3), 3)


def _channel_shuffle(s):
    yield Sample(s.real(1, 6, 2), 3)
    yield Sample(s.real(2, 4, 1, 2), 2)


def _between_cells(s, *shape):
    """Return grid coordinates that stay away from where interpolation and mirroring have kinks."""
    cells = s.integers(*shape, low=-8, high=8)
    return (cells + s.rng.uniform(0.2, 0.8, shape)) / 6


def _grid_sample(s):
    places = s.real(1, 2, 2, 2, low=-1.1, high=1.1)
    yield Sample(s.real(1, 2, 4, 3), places, "bicubic")
    yield Sample(s.real(1, 1, 4, 3), places, "bicubic", "border", align_corners=True)
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            # With a size of 3, cell borders lie at multiples of 1/3 (or 1 with align_corners).
            for align in (False, True):
                grid = _between_cells(s, 1, 2, 2, 2)
                yield Sample(s.real(1, 2, 3, 3), grid, mode, padding, align)
    yield Sample(s.real(1, 1, 3, 3, 3), _between_cells(s, 1, 1, 2, 1, 3), label="3-d")
    wild = np.array([[[[np.inf, 0.1], [-np.inf, 0.3], [1e30, 1e30]]]])
    yield Sample(s.real(1, 1, 3, 3), wild, grad=0, label="far away")
    yield Sample(s.real(1, 1, 1, 3), _between_cells(s, 1, 1, 2, 2), "nearest", "reflection", True)


def _affine_grid(s):
    yield Sample(s.real(2, 2, 3), (2, 1, 2, 3))
    yield Sample(s.real(1, 2, 3), (1, 3, 3, 2), True)
    yield Sample(s.real(1, 3, 4), (1, 1, 2, 1, 2))


COMPOSITE_SAMPLES = {
    "interpolate": _interpolate,
    "pixel_shuffle": _pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
    "channel_shuffle": _channel_shuffle,
    "grid_sample": _grid_sample,
    "affine_grid": _affine_grid,
}


def _interpolate_errors(s):
    x = s.real(1, 1, 4, 4)
    yield ErrorSample(x, error=ValueError, match="either size or scale_factor.*None")
    yield ErrorSample(x, 2, 2.0, error=ValueError, match="size=2, scale_factor=2.0")
    yield ErrorSample(x, 2, mode="linear", error=ValueError, match=r"'linear'.*\(1, 1, 4, 4\)")
    yield ErrorSample(x, 2, mode="lanczos", error=ValueError, match="'lanczos'")
    yield ErrorSample(x, 2, align_corners=True, error=ValueError, match="mode='nearest'")
    yield ErrorSample(x, 2, antialias=True, error=ValueError, match="antialias .*'nearest'")
    yield ErrorSample(x, scale_factor=-1, error=ValueError, match="positive number.*-1")
    yield ErrorSample(x, scale_factor=0.1, error=ValueError, match=r"leaves nothing .*\(4, 4\)")
    yield ErrorSample(x, scale_factor="2", error=TypeError, match="scale_factor .*'2'")
    yield ErrorSample(x, (2, 2, 2), error=ValueError, match=r"size must be .*\(2, 2, 2\)")


def _shuffle_errors(name):
    def errors(s):
        yield ErrorSample(s.real(2, 2), 2, error=ValueError, match=r"Received: \(2, 2\)")
        yield ErrorSample(s.real(1, 3, 3, 3), 2, error=ValueError, match=rf"^{name}: .*(3|\(1, 3)")
        yield ErrorSample(s.real(1, 4, 2, 2), 0, error=ValueError, match="at least 1.*0")

    return errors


def _grid_errors(s):
    x, grid = s.real(1, 1, 3, 3), s.real(1, 2, 2, 2)
    yield ErrorSample(x, grid[..., :1], error=ValueError, match=r"grid \(1, 2, 2, 1\)")
    yield ErrorSample(x, s.real(2, 2, 2, 2), error=ValueError, match=r"grid \(2, 2, 2, 2\)")
    yield ErrorSample(x, grid, "cubic", error=ValueError, match="'cubic'")
    yield ErrorSample(x, grid, padding_mode="wrap", error=ValueError, match="'wrap'")
    yield ErrorSample(x, grid.astype("f4"), error=TypeError, match="float64 and float32")


def _affine_errors(s):
    yield ErrorSample(s.real(1, 2, 3), (1, 1, 2), error=ValueError, match=r"size \(1, 1, 2\)")
    yield ErrorSample(s.real(1, 3, 3), (1, 1, 2, 2), error=ValueError, match=r"theta \(1, 3, 3\)")


COMPOSITE_ERROR_SAMPLES = {
    "interpolate": _interpolate_errors,
    "pixel_shuffle": _shuffle_errors("pixel_shuffle"),
    "pixel_unshuffle": _shuffle_errors("pixel_unshuffle"),
    "channel_shuffle": _shuffle_errors("channel_shuffle"),
    "grid_sample": _grid_errors,
    "affine_grid": _affine_errors,
}
