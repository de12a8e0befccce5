"""Windows as columns, and columns summed back into an image: im2col and col2im."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import folded
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, size_of
from ...core.tensor import Tensor
from .._halves import through_float32
from ..movement.windows import WIDEST_FOLD
from .convolution import Ints
from .geometry import Pairs, padding_pairs, per_axis, require_rank, window_counts
from .windows import add_windows, negated, pad_spatial, window_view


@op(general, linear=("x",), method=False, public={"nn.functional": ("unfold",)}, batch=folded)
def unfold_patches(
    x: Tensor,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> Tensor:
    """Return all windows of x as columns (PyTorch's nn.functional.unfold, in any dimension).

    x is (N, C, *spatial), the result (N, C * kernel elements, windows); padding is with zeros.
    `fold` sums such columns back.
    """


@unfold_patches.canon
def _(x, kernel_size, dilation, padding, stride):
    if x.ndim == 3 and not isinstance(kernel_size, (tuple, list)):
        raise ArgumentError(
            "three dimensions are one (C, H, W) image in PyTorch: say kernel_size=(k,) for windows "
            f"of (N, C, L), or give x[None] for that image. Received: shape {tuple(x.shape)} and "
            f"kernel_size={kernel_size!r}"
        )
    kernel, dilations, pairs, strides = _settings(
        require_rank(x, "the input"), kernel_size, dilation, padding, stride
    )
    window_counts(x.shape[2:], kernel, strides, pairs, dilations)
    return kernel, dilations, pairs, strides


@unfold_patches.infer
def _(x, kernel_size, dilation, padding, stride):
    counts = window_counts(x.shape[2:], kernel_size, stride, padding, dilation)
    return TensorType((x.shape[0], x.shape[1] * size_of(kernel_size), size_of(counts)), x.dtype)


@unfold_patches.eval
def _(x, kernel_size, dilation, padding, stride):
    counts = window_counts(x.shape[2:], kernel_size, stride, padding, dilation)
    windows = window_view(pad_spatial(x, padding), kernel_size, counts, stride, dilation)
    return windows.reshape(x.shape[0], x.shape[1] * size_of(kernel_size), size_of(counts))


@unfold_patches.place
def _(b, x, kernel_size, dilation, padding, stride):
    counts = window_counts(x.shape[2:], kernel_size, stride, padding, dilation)
    batch, column, window = b.coordinates
    if 0 in x.shape or 0 in b.shape:
        return None
    channel, *within = b.unravelled(column.expr, (x.shape[1], *kernel_size))
    places, where = [], None
    settings = zip(stride, dilation, padding, x.shape[2:], strict=True)
    windows = b.unravelled(window.expr, counts)
    for k, i, (step, apart, (before, after), n) in zip(within, windows, settings, strict=True):
        places.append(i * step + k * apart - before)
        if before > 0 or after > 0:
            where = b.both(where, b.inside(places[-1], n))
    return x.at(batch, channel, *places, where=where)


@unfold_patches.vjp("x")
def _(g, x_shape, kernel_size, dilation, padding, stride):
    return F.fold(g, x_shape[2:], kernel_size, dilation, padding, stride)


@op(general, linear=("x",), method=False, public=True, batch=folded)
def fold(
    x: Tensor,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> Tensor:
    """Return columns summed back to where their windows lie (PyTorch's nn.functional.fold).

    x is (N, C * kernel elements, windows), the result (N, C, *output_size). Overlapping windows add
    up: this is the adjoint of `unfold_patches`, not its inverse. The number of spatial axes is that
    of the longest of the size arguments, and two if all are ints.
    """


@fold.canon
def _(x, output_size, kernel_size, dilation, padding, stride):
    given = (output_size, kernel_size, dilation, padding, stride)
    lengths = [len(v) for v in given if isinstance(v, (tuple, list))]
    spatial = max(lengths, default=2)
    size = per_axis(output_size, spatial, "output_size", minimum=0)
    settings = _settings(spatial, kernel_size, dilation, padding, stride)
    _check_columns(x, size, *settings)
    return (size, *settings)


@fold.infer
def _(x, output_size, kernel_size, dilation, padding, stride):
    return TensorType((x.shape[0], x.shape[1] // size_of(kernel_size), *output_size), x.dtype)


@fold.eval
@through_float32
def _(x, output_size, kernel_size, dilation, padding, stride):
    channels = x.shape[1] // size_of(kernel_size)
    sizes = [n + lo + hi for n, (lo, hi) in zip(output_size, padding, strict=True)]
    counts = window_counts(output_size, kernel_size, stride, padding, dilation)
    padded = np.zeros((x.shape[0], channels, *sizes), x.dtype)
    columns = x.reshape(x.shape[0], channels, *kernel_size, *counts)
    add_windows(padded, columns, stride, dilation)
    return pad_spatial(padded, negated(padding))


@fold.place
def _(b, x, output_size, kernel_size, dilation, padding, stride):
    within = size_of(kernel_size)
    counts = window_counts(output_size, kernel_size, stride, padding, dilation)
    if within > WIDEST_FOLD or not size_of(counts):
        return None
    batch, channel, *here = b.coordinates
    settings = list(zip(here, stride, dilation, padding, counts, strict=True))
    total = None
    for number, taps in enumerate(np.ndindex(*kernel_size)):
        window, where = 0, None
        for tap, (at, step, apart, (before, _), count) in zip(taps, settings, strict=True):
            place, holds = b.window_of(at + (before - tap * apart), step, count)
            window, where = place + window * count, b.both(where, holds)
        part = x.at(batch, channel * within + number, window, where=where)
        total = part if total is None else total + part
    return total


@fold.vjp("x")
def _(g, kernel_size, dilation, padding, stride):
    return F.unfold_patches(g, kernel_size, dilation, padding, stride)


# -- checks -----------------------------------------------------------------------------------


def _settings(
    spatial: int, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[Shape, Shape, Pairs, Shape]:
    kernel = per_axis(kernel_size, spatial, "kernel_size")
    dilations = per_axis(dilation, spatial, "dilation")
    strides = per_axis(stride, spatial, "stride")
    return kernel, dilations, padding_pairs(padding, kernel, strides, dilations), strides


def _check_columns(
    x: Any, size: Shape, kernel: Shape, dilation: Shape, pairs: Pairs, stride: Shape
) -> None:
    if x.ndim != 3 or x.shape[1] % size_of(kernel) != 0:
        raise ShapeError(
            f"the input must be (batch, channels * {size_of(kernel)}, windows) for the kernel "
            f"{kernel}. Received: {tuple(x.shape)}"
        )
    counts = window_counts(size, kernel, stride, pairs, dilation)
    if x.shape[2] != size_of(counts):
        raise ShapeError(
            f"output size {size} has {' x '.join(map(str, counts))} windows of the kernel "
            f"{kernel}. Received: {x.shape[2]} columns"
        )


# -- samples ----------------------------------------------------------------------------------

CASES: tuple[tuple[Shape, dict[str, Any]], ...] = (
    ((2, 2, 5), {"kernel_size": (2,)}),
    ((1, 2, 3, 3), {"kernel_size": 2}),
    ((1, 1, 4, 3), {"kernel_size": (2, 1), "stride": (2, 1), "padding": (1, 0)}),
    (
        (1, 1, 5, 4),
        {"kernel_size": (2, 2), "dilation": (2, 1), "stride": (2, 2), "padding": (0, 1)},
    ),
    ((1, 1, 2, 2, 3), {"kernel_size": (1, 2, 2)}),
    ((0, 1, 3, 3), {"kernel_size": (2, 2)}),
)


@unfold_patches.samples
def _(s):
    for shape, settings in CASES:
        yield Sample(s.real(*shape), **settings)
    yield Sample(s.strided(1, 2, 3, 3), (2, 2), label="non-contiguous")
    yield Sample(s.integers(1, 1, 3, 3), (2, 2), grad=0, label="integers")


@unfold_patches.error_samples
def _(s):
    yield ErrorSample(s.real(3, 3), 2, error=ValueError, match=r"channels, \*spatial.*\(3, 3\)")
    yield ErrorSample(s.real(2, 3, 3), 2, error=ValueError, match=r"\(C, H, W\) image")
    yield ErrorSample(s.real(1, 1, 2, 2), 3, error=ValueError, match=r"kernel \(3, 3\) is larger")
    yield ErrorSample(s.real(1, 1, 2, 2), 0, error=ValueError, match="kernel_size must be at least")


@fold.samples
def _(s):
    yield Sample(s.real(2, 4, 4), (5,), (2,), label="1-d")
    yield Sample(s.real(1, 8, 4), 3, 2)
    yield Sample(s.real(1, 2, 9), (4, 3), (2, 1), padding=(1, 0), stride=(2, 1))
    yield Sample(s.real(1, 4, 2), (5, 2), (2, 2), dilation=(2, 2), padding=(0, 1), stride=2)
    yield Sample(s.real(1, 4, 4), (2, 2, 3), (1, 2, 2))
    yield Sample(s.real(0, 4, 4), (3, 3), (2, 2), label="empty")


@fold.error_samples
def _(s):
    yield ErrorSample(s.real(1, 3, 4), 3, 2, error=ValueError, match=r"Received: \(1, 3, 4\)")
    yield ErrorSample(s.real(1, 4, 5), 3, 2, error=ValueError, match="2 x 2 windows.* 5 columns")
    yield ErrorSample(s.real(1, 4, 4), 3, 2, stride=0, error=ValueError, match="stride must be")
