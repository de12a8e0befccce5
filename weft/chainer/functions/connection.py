"""Linear maps, convolutions and embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import F
from ...core.tensor import Tensor
from ..utils.sizes import pair, spatial
from ..utils.type_check import expect
from ._common import function


@function
def linear(x: Tensor, W: Tensor, b: Tensor | None = None, n_batch_axes: int = 1) -> Tensor:
    """Return x W^T + b; all axes of x but the first ones are one vector."""
    expect("linear", x.dtype.kind == "f", "x.dtype.kind == f", f"{x.dtype.kind} != f ({x.dtype})")
    lead = x.shape[:n_batch_axes]
    flat = x if x.ndim == 2 and n_batch_axes == 1 else F.reshape(x, (int(np.prod(lead)), -1))
    expect(
        "linear",
        flat.shape[1] == W.shape[1],
        "x.shape[1] == W.shape[1]",
        f"{flat.shape[1]} != {W.shape[1]}",
    )
    y = F.linear(flat, W, b)
    return y if n_batch_axes == 1 else F.reshape(y, (*lead, W.shape[0]))


@function
def bilinear(
    e1: Tensor,
    e2: Tensor,
    W: Tensor,
    V1: Tensor | None = None,
    V2: Tensor | None = None,
    b: Tensor | None = None,
) -> Tensor:
    """Return e1 W e2, with linear terms where they are given."""
    left, right = F.reshape(e1, (e1.shape[0], -1)), F.reshape(e2, (e2.shape[0], -1))
    y = F.einsum("ij,ik,jkl->il", left, right, W)
    if V1 is not None:
        y = y + F.matmul(left, V1) + F.matmul(right, V2) + b
    return y


def _check_channels(name: str, x: Tensor, channels: int) -> None:
    expect(name, x.shape[1] == channels, "x.shape[1] == W.shape[1]", f"{x.shape[1]} != {channels}")


@function
def convolution_nd(
    x: Tensor,
    W: Tensor,
    b: Tensor | None = None,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    dilate: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the convolution of x, of one to three dimensions, with filters."""
    axes = x.ndim - 2
    _check_channels("convolution", x, W.shape[1] * groups)
    stride, pad, dilate = spatial(stride, axes), spatial(pad, axes), spatial(dilate, axes)
    if cover_all:  # rows and columns that a last window would lack
        more = [
            -(size + 2 * p - d * (k - 1) - 1) % s
            for size, k, s, p, d in zip(x.shape[2:], W.shape[2:], stride, pad, dilate, strict=True)
        ]
        x = F.pad(x, ((0, 0), (0, 0), *((0, m) for m in more)))
    compute = (F.conv1d, F.conv2d, F.conv3d)[axes - 1]
    return compute(x, W, b, stride, pad, dilate, groups)


def convolution_2d(
    x: Any,
    W: Any,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    cover_all: bool = False,
    *,
    dilate: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the convolution of images with filters."""
    return convolution_nd(x, W, b, stride, pad, cover_all, dilate, groups)


convolution_1d = convolution_3d = convolution_nd


@function
def dilated_convolution_2d(
    x: Tensor,
    W: Tensor,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    dilate: Any = 1,
    cover_all: bool = False,
) -> Tensor:
    """Return the convolution of images with filters that have gaps."""
    return _plain(convolution_nd)(x, W, b, stride, pad, cover_all, dilate)


@function
def depthwise_convolution_2d(
    x: Tensor, W: Tensor, b: Any = None, stride: Any = 1, pad: Any = 0
) -> Tensor:
    """Return the convolution of each channel with filters of its own.

    W has the shape (multiplier, channels, kh, kw).
    """
    multiplier, channels, kh, kw = W.shape
    _check_channels("depthwise_convolution_2d", x, channels)
    filters = F.reshape(F.permute_dims(W, (1, 0, 2, 3)), (channels * multiplier, 1, kh, kw))
    return F.conv2d(x, filters, b, pair(stride), pair(pad), (1, 1), channels)


@function
def deconvolution_nd(
    x: Tensor,
    W: Tensor,
    b: Tensor | None = None,
    stride: Any = 1,
    pad: Any = 0,
    outsize: Any = None,
    dilate: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return the transposed convolution of x; `outsize` says how large the result is."""
    axes = x.ndim - 2
    _check_channels("deconvolution", x, W.shape[0])
    stride, pad, dilate = spatial(stride, axes), spatial(pad, axes), spatial(dilate, axes)
    extra = (0,) * axes
    if outsize is not None:
        least = [
            s * (size - 1) + d * (k - 1) + 1 - 2 * p
            for size, k, s, p, d in zip(x.shape[2:], W.shape[2:], stride, pad, dilate, strict=True)
        ]
        extra = tuple(wanted - had for wanted, had in zip(outsize, least, strict=True))
    compute = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[axes - 1]
    return compute(x, W, b, stride, pad, extra, groups, dilate)


def deconvolution_2d(
    x: Any,
    W: Any,
    b: Any = None,
    stride: Any = 1,
    pad: Any = 0,
    outsize: Any = None,
    *,
    dilate: Any = 1,
    groups: int = 1,
) -> Any:
    """Return the transposed convolution of images."""
    return deconvolution_nd(x, W, b, stride, pad, outsize, dilate, groups)


deconvolution_1d = deconvolution_3d = deconvolution_nd


@function
def local_convolution_2d(x: Tensor, W: Tensor, b: Any = None, stride: Any = 1) -> Tensor:
    """Return a convolution whose filters differ from place to place."""
    rows, columns, _, kh, kw = W.shape[1:]
    sy, sx = pair(stride)
    patches = F.stack(
        [
            F.stack(
                [x[:, :, i * sy : i * sy + kh, j * sx : j * sx + kw] for j in range(columns)], 1
            )
            for i in range(rows)
        ],
        1,
    )
    y = F.einsum("nhwckl,ohwckl->nohw", patches, W)
    return y if b is None else y + F.expand_dims(b, 0)


@function
def embed_id(x: Tensor, W: Tensor, ignore_label: int | None = None) -> Tensor:
    """Return the rows of W that x names; zeros where x is `ignore_label`."""
    if ignore_label is None:
        return F.embedding(W, x)
    ignored = F.equal(x, ignore_label)
    rows = F.embedding(W, F.where(ignored, F.zeros_like(x), x))
    return F.where(F.expand_dims(ignored, -1), F.zeros_like(rows), rows)


@function
def shift(x: Tensor, ksize: Any = 3, dilate: Any = 1) -> Tensor:
    """Return channels moved by one place each, in the directions of a ksize x ksize grid."""
    kh, kw = pair(ksize)
    dy, dx = pair(dilate)
    height, width = x.shape[2:]
    padded = F.pad(x, ((0, 0), (0, 0), (kh // 2 * dy,) * 2, (kw // 2 * dx,) * 2))
    directions = list(range(kh * kw))
    middle = (kh * kw - 1) // 2
    directions[middle], directions[-1] = (
        directions[-1],
        directions[middle],
    )  # channels left over stay
    ends = [*(i * (x.shape[1] // (kh * kw)) for i in range(kh * kw)), x.shape[1]]
    parts = []
    for i, direction in enumerate(directions):
        top, left = (kh - 1 - direction // kw) * dy, (kw - 1 - direction % kw) * dx
        parts.append(padded[:, ends[i] : ends[i + 1], top : top + height, left : left + width])
    return F.concat(parts, 1)


def _plain(called: Any) -> Any:
    """Return the function of tensors behind one of variables."""
    return called.__wrapped__
