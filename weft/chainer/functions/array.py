"""Functions that move elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...autodiff.checkpointing import checkpoint
from ...core.op import F
from ...core.tensor import Tensor
from ..utils.sizes import pair
from ..utils.type_check import expect
from ..variable import Variable, as_tensor, wrapped
from ._common import function, named

broadcast_to = named("broadcast_to")
expand_dims = named("expand_dims")
fliplr = named("fliplr")
flipud = named("flipud")
moveaxis = named("moveaxis")
repeat = named("repeat")
swapaxes = named("swapaxes")
tile = named("tile")
where = named("where")


@function
def broadcast(*args: Tensor) -> tuple[Tensor, ...]:
    """Return variables with one shape, the one that they broadcast to."""
    shape = np.broadcast_shapes(*(x.shape for x in args))
    return tuple(F.broadcast_to(x, shape) for x in args)


@function
def cast(x: Tensor, typ: Any) -> Tensor:
    """Return x with elements of another type."""
    return F.cast(x, np.dtype(typ))


@function
def concat(xs: Sequence[Tensor], axis: int = 1) -> Tensor:
    """Join variables along an axis, by default the second."""
    return F.concat(list(xs), axis)


@function
def copy(x: Tensor, dst: Any = -1) -> Tensor:
    """Return a copy of x."""
    return x.clone()


@function
def depth2space(X: Tensor, r: int) -> Tensor:
    """Return channels laid out as blocks of r x r places."""
    n, c, h, w = X.shape
    parts = F.reshape(X, (n, r, r, c // r**2, h, w))
    return F.reshape(F.permute_dims(parts, (0, 3, 4, 1, 5, 2)), (n, c // r**2, h * r, w * r))


@function
def space2depth(X: Tensor, r: int) -> Tensor:
    """Return blocks of r x r places laid out as channels."""
    n, c, h, w = X.shape
    parts = F.reshape(X, (n, c, h // r, r, w // r, r))
    return F.reshape(F.permute_dims(parts, (0, 3, 5, 1, 2, 4)), (n, c * r**2, h // r, w // r))


@function
def diagonal(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return diagonals of the matrices that two axes make."""
    return F.diagonal(x, offset, axis1, axis2)


@function
def dstack(xs: Sequence[Tensor]) -> Tensor:
    """Join variables along the third axis."""
    return F.dstack(list(xs))


@function
def hstack(xs: Sequence[Tensor]) -> Tensor:
    """Join variables along the second axis, vectors along the first."""
    return F.hstack(list(xs))


@function
def vstack(xs: Sequence[Tensor]) -> Tensor:
    """Join variables along the first axis, vectors as rows."""
    return F.vstack(list(xs))


@function
def flatten(x: Tensor) -> Tensor:
    """Return the elements as a vector."""
    return F.reshape(x, (-1,))


@function
def flip(x: Tensor, axis: int) -> Tensor:
    """Return x with the order along an axis reversed."""
    return F.flip(x, axis)


@function
def get_item(x: Tensor, slices: Any) -> Tensor:
    """Return x[slices]."""
    return x[slices]


@function
def im2col(
    x: Tensor, ksize: Any, stride: Any = 1, pad: Any = 0, cover_all: bool = False, dilate: Any = 1
) -> Tensor:
    """Return the windows of images as channels: (n, c * kh * kw, oh, ow)."""
    kh, kw = pair(ksize)
    out = [
        _windows(size, k, s, p, d, cover_all)
        for size, k, s, p, d in zip(
            x.shape[2:], (kh, kw), pair(stride), pair(pad), pair(dilate), strict=True
        )
    ]
    more = [
        _needed(x.shape[2 + i], o, k, pair(stride)[i], pair(pad)[i], pair(dilate)[i])
        for i, (o, k) in enumerate(zip(out, (kh, kw), strict=True))
    ]
    padded = F.pad(x, ((0, 0), (0, 0), (pair(pad)[0], more[0]), (pair(pad)[1], more[1])))
    (sy, sx), (dy, dx) = pair(stride), pair(dilate)
    taken = [
        padded[:, :, i * dy : i * dy + sy * out[0] : sy, j * dx : j * dx + sx * out[1] : sx]
        for i in range(kh)
        for j in range(kw)
    ]
    n, c = x.shape[:2]
    return F.reshape(F.stack(taken, 2), (n, c * kh * kw, *out))


def _windows(size: int, k: int, s: int, p: int, d: int, cover_all: bool) -> int:
    """Return how many windows lie along an axis."""
    reach = d * (k - 1) + 1
    room = size + 2 * p - reach + (s - 1 if cover_all else 0)
    return room // s + 1


def _needed(size: int, out: int, k: int, s: int, p: int, d: int) -> int:
    """Return how many elements must follow an axis that has `p` before it."""
    return max((out - 1) * s + d * (k - 1) + 1 - size - p, 0)


@function
def pad(x: Tensor, pad_width: Any, mode: str, **keywords: Any) -> Tensor:
    """Return x with elements around it, as np.pad does."""
    if mode != "constant":
        return F.pad(x, pad_width, mode)
    return F.pad(x, pad_width, "constant", keywords.get("constant_values", 0))


@function
def pad_sequence(xs: Sequence[Tensor], length: int | None = None, padding: Any = 0) -> Tensor:
    """Return sequences of different lengths as one variable, filled up at their ends."""
    longest = max((x.shape[0] for x in xs), default=0)
    size = longest if length is None else length
    expect("pad_sequence", size >= longest, "length >= longest sequence", f"{size} < {longest}")
    return F.stack(
        [
            F.pad(x, ((0, size - x.shape[0]), *[(0, 0)] * (x.ndim - 1)), "constant", padding)
            for x in xs
        ]
    )


@function
def permutate(x: Tensor, indices: Tensor, axis: int = 0, inv: bool = False) -> Tensor:
    """Return x with the elements along an axis in another order."""
    return F.take(x, F.argsort(indices) if inv else indices, axis)


@function
def reshape(x: Tensor, shape: Any) -> Tensor:
    """Return x in another shape."""
    return F.reshape(x, tuple(shape))


@function
def resize_images(
    x: Tensor, output_shape: Any, mode: str = "bilinear", align_corners: bool = True
) -> Tensor:
    """Return images of another size; corners are aligned by default, as in Chainer."""
    if mode == "nearest":
        return F.interpolate(x, tuple(output_shape), mode="nearest")
    return F.interpolate(x, tuple(output_shape), mode=mode, align_corners=align_corners)


@function
def rollaxis(x: Tensor, axis: int, start: int = 0) -> Tensor:
    """Return x with an axis moved in front of another."""
    axis, start = axis % x.ndim, start + x.ndim if start < 0 else start
    return F.moveaxis(x, axis, start - 1 if axis < start else start)


@function
def scatter_add(a: Tensor, slices: Any, b: Tensor) -> Tensor:
    """Return a with b added at some places; places that occur twice receive both."""
    places = np.arange(int(np.prod(a.shape, dtype=np.int64))).reshape(a.shape)[_plain_index(slices)]
    flat = F.reshape(F.broadcast_to(b, places.shape), (-1,))
    added = F.index_add(F.reshape(a, (-1,)), 0, as_tensor(places.reshape(-1)), flat)
    return F.reshape(added, a.shape)


def _plain_index(slices: Any) -> Any:
    if isinstance(slices, tuple):
        return tuple(map(_plain_index, slices))
    return slices.numpy() if isinstance(slices, Tensor) else slices


@function
def select_item(x: Tensor, t: Tensor) -> Tensor:
    """Return of each row the element that t names."""
    return F.reshape(F.take_along_axis(x, F.expand_dims(F.cast(t, np.int64), 1), 1), t.shape)


@function
def separate(x: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the parts of x along an axis, without that axis."""
    return tuple(F.unbind(x, axis))


@function
def split_axis(
    x: Tensor, indices_or_sections: Any, axis: int, force_tuple: bool = True
) -> tuple[Tensor, ...] | Tensor:
    """Return parts of x: of equal size, or cut at given places."""
    size = x.shape[axis]
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        expect(
            "split_axis",
            size % sections == 0,
            "x.shape[axis] % sections == 0",
            f"{size} % {sections}",
        )
        sizes: list[int] = [size // sections] * sections
    else:
        cuts = [0, *(int(i) for i in _plain_index(indices_or_sections)), size]
        sizes = [max(b - a, 0) for a, b in pairwise(cuts)]
    parts = tuple(F.split(x, tuple(sizes), axis))
    return parts if force_tuple or len(parts) > 1 else parts[0]


@function
def spatial_transformer_grid(theta: Tensor, output_shape: Any, **_: Any) -> Tensor:
    """Return sampling points (n, 2, h, w) of an affine transformation."""
    h, w = output_shape
    grid = F.affine_grid(theta, (theta.shape[0], 1, h, w), align_corners=True)
    return F.permute_dims(grid, (0, 3, 1, 2))


@function
def spatial_transformer_sampler(x: Tensor, grid: Tensor, **_: Any) -> Tensor:
    """Return images read at sampling points (n, 2, h, w), bilinearly."""
    return F.grid_sample(x, F.permute_dims(grid, (0, 2, 3, 1)), align_corners=True)


@function
def squeeze(x: Tensor, axis: Any = None) -> Tensor:
    """Return x without axes of size one."""
    return F.squeeze(x, axis)


@function
def stack(xs: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join variables along a new axis."""
    return F.stack(list(xs), axis)


@function
def transpose(x: Tensor, axes: Any = None) -> Tensor:
    """Return x with its axes permuted, by default reversed."""
    return F.permute_dims(x, tuple(reversed(range(x.ndim))) if axes is None else tuple(axes))


def transpose_sequence(xs: Sequence[Any]) -> tuple[Variable, ...]:
    """Turn sequences, the longest first, into one batch for each time step."""
    given = [as_tensor(x) for x in xs]
    lengths = [x.shape[0] for x in given]
    expect(
        "transpose_sequence",
        all(a >= b for a, b in pairwise(lengths)),
        "lengths of xs in descending order",
        str(lengths),
    )
    return tuple(
        wrapped(F.stack([x[t] for x in given if x.shape[0] > t]))
        for t in range(max(lengths, default=0))
    )


def forget(func: Any, *xs: Any) -> Any:
    """Return func(*xs) and keep none of its intermediate results: backward computes them again."""

    def inner(*given: Tensor) -> Any:
        result = func(*map(wrapped, given))
        many = isinstance(result, (tuple, list))
        return tuple(as_tensor(y) for y in result) if many else as_tensor(result)

    return wrapped(checkpoint(inner)(*(as_tensor(x) for x in xs)))


def identity(*inputs: Any) -> Any:
    """Return the inputs as they are."""
    return inputs[0] if len(inputs) == 1 else inputs
