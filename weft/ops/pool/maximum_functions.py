"""Max-pooling functions with PyTorch's names and signatures.

Inputs are (N, C, *spatial), or (C, *spatial) without a batch. In all of them NaN counts as the
largest value, and of equal elements the first in row-major order wins and receives the gradient.
"""

from __future__ import annotations

from typing import Any

from ...core.dim import surely_less
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite
from ...core.tensor import Tensor
from ..conv.convolution import Ints
from ..conv.geometry import named, per_axis, with_batch
from .average import pool_shape

Pooled = Tensor | tuple[Tensor, Tensor]


@composite(fused=True)
def max_pool1d(
    x: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pooled:
    """Return the maxima of windows of a sequence (N, C, L) or (C, L); see `max_pool2d`."""
    options = (kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool("max_pool1d", x, options, return_indices)


@composite(fused=True)
def max_pool2d(
    x: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pooled:
    """Return the maxima of windows of an image (N, C, H, W) or (C, H, W).

    The stride is the kernel size unless given; padding never wins. With ceil_mode a last window may
    reach beyond the padding, if it starts inside the input or the padding before it. With
    return_indices the flat spatial places of the maxima are returned too, for `max_unpool2d`.

    >>> import weft as wf
    >>> x = wf.arange(16.0).reshape(1, 1, 4, 4)
    >>> wf.nn.functional.max_pool2d(x, 2)
    tensor([[[[ 5.,  7.],
              [13., 15.]]]])
    """
    options = (kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool("max_pool2d", x, options, return_indices)


@composite(fused=True)
def max_pool3d(
    x: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pooled:
    """Return the maxima of windows of a volume ([N,] C, D, H, W); see `max_pool2d`."""
    options = (kernel_size, stride, padding, dilation, ceil_mode)
    return _max_pool("max_pool3d", x, options, return_indices)


@composite()
def adaptive_max_pool1d(x: Tensor, output_size: Any, return_indices: bool = False) -> Pooled:
    """Return maxima over windows that make the result (N, C, output_size)."""
    return _adaptive_max_pool("adaptive_max_pool1d", x, output_size, return_indices)


@composite()
def adaptive_max_pool2d(x: Tensor, output_size: Any, return_indices: bool = False) -> Pooled:
    """Return maxima over windows that make the result (N, C, *output_size).

    An int stands for both sizes; None keeps the size of the input. Windows follow from the sizes:
    window i of n over size elements runs from floor(i * size / n) to ceil((i + 1) * size / n).
    """
    return _adaptive_max_pool("adaptive_max_pool2d", x, output_size, return_indices)


@composite()
def adaptive_max_pool3d(x: Tensor, output_size: Any, return_indices: bool = False) -> Pooled:
    """Return maxima over windows that make the result (N, C, *output_size)."""
    return _adaptive_max_pool("adaptive_max_pool3d", x, output_size, return_indices)


@composite()
def max_unpool1d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Any = None,
) -> Tensor:
    """Return zeros with x at the places that `max_pool1d` took it from; see `max_unpool2d`."""
    options = (kernel_size, stride, padding, output_size)
    return _max_unpool("max_unpool1d", x, indices, options)


@composite()
def max_unpool2d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Any = None,
) -> Tensor:
    """Return zeros with x at the places that `max_pool2d` took it from.

    Where windows overlapped and two elements have one place, the last one stands, and it alone
    receives a gradient. Pooling sends several input sizes to one output size: `output_size` chooses
    among them, by default (n - 1) * stride - 2 * padding + kernel_size along each axis.
    """
    options = (kernel_size, stride, padding, output_size)
    return _max_unpool("max_unpool2d", x, indices, options)


@composite()
def max_unpool3d(
    x: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Any = None,
) -> Tensor:
    """Return zeros with x at the places that `max_pool3d` took it from; see `max_unpool2d`."""
    options = (kernel_size, stride, padding, output_size)
    return _max_unpool("max_unpool3d", x, indices, options)


@composite()
def global_max_pool(x: Tensor) -> Tensor:
    """Return the maximum of each channel of (N, C, *spatial) as (N, C, 1, ...); ties share."""
    check_spatial("global_max_pool", x)
    return F.max(x, axis=tuple(range(2, x.ndim)), keepdims=True)


def check_spatial(name: str, x: Any) -> None:
    """Raise unless an input has a batch, channels and more."""
    if x.ndim < 3:
        raise ShapeError(
            f"{name}: the input must be (batch, channels, *spatial). Received: {tuple(x.shape)}"
        )


def output_sizes(output_size: Any, size: tuple[int, ...]) -> tuple[Any, ...]:
    """Return adaptive output sizes for each axis, with None as the size of the input."""
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,)
    if len(given) == 1:
        given *= len(size)
    if len(given) != len(size):
        raise ArgumentError(
            f"output_size must be an int, None, or {len(size)} of them. Received: {output_size!r}"
        )
    return tuple(n if wanted is None else wanted for wanted, n in zip(given, size, strict=True))


def without_batch(result: Tensor, unbatched: bool) -> Tensor:
    """Return a result without the batch axis that was added to its input."""
    return F.reshape(result, result.shape[1:]) if unbatched else result


def _max_pool(name: str, x: Any, options: tuple[Any, ...], return_indices: bool) -> Pooled:
    with named(name, "max_pool"):
        x, unbatched = with_batch(x, int(name[-2]), F.reshape)
        values, indices = F.max_pool(x, *options)
    return _pooled(values, indices, unbatched, return_indices)


def _adaptive_max_pool(name: str, x: Any, output_size: Any, return_indices: bool) -> Pooled:
    with named(name, "adaptive_max_pool"):
        x, unbatched = with_batch(x, int(name[-2]), F.reshape)
        sizes = output_sizes(output_size, x.shape[2:])
        values, indices = F.adaptive_max_pool(x, sizes)
    return _pooled(values, indices, unbatched, return_indices)


def _pooled(values: Any, indices: Any, unbatched: bool, return_indices: bool) -> Pooled:
    if not return_indices:
        return without_batch(values, unbatched)
    return without_batch(values, unbatched), without_batch(indices, unbatched)


def _max_unpool(name: str, x: Any, indices: Any, options: tuple[Any, ...]) -> Tensor:
    spatial = int(name[-2])
    with named(name, "pool_scatter", "pool_last_write"):
        x, unbatched = with_batch(x, spatial, F.reshape)
        indices, _ = with_batch(indices, spatial, F.reshape)
        size = _unpooled_size(x.shape[2:], *options)
        # Chosen by where, not by a factor: an overwritten NaN must leave no trace.
        kept = F.where(F.pool_last_write(indices, size), x, 0)
        return without_batch(F.pool_scatter(kept, indices, size), unbatched)


def _unpooled_size(
    counts: tuple[int, ...], kernel_size: Any, stride: Any, padding: Any, output_size: Any
) -> tuple[int, ...]:
    spatial = len(counts)
    kernel, strides = pool_shape(spatial, kernel_size, stride)
    paddings = per_axis(padding, spatial, "padding", minimum=0)
    axes = zip(counts, kernel, strides, paddings, strict=True)
    default = tuple((n - 1) * s - 2 * p + k for n, k, s, p in axes)
    if output_size is None:
        return default
    size = per_axis(tuple(output_size)[-spatial:], spatial, "output_size", minimum=0)
    near = zip(size, default, strides, strict=True)
    if any(surely_less(s - 1, abs(wanted - usual)) for wanted, usual, s in near):
        raise ArgumentError(
            f"output_size must differ from {default} by less than the stride {strides}. "
            f"Received: {output_size!r}"
        )
    return size
