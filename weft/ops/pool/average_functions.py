"""Average and power pooling functions with PyTorch's names and signatures.

Inputs are (N, C, *spatial), or (C, *spatial) without a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import is_known
from ...core.dtype import float32, is_float, to_float
from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.op import F, composite
from ...core.shape import Shape, as_int, size_of
from ...core.tensor import Tensor
from .._halves import rounded_once
from ..conv.convolution import Ints
from ..conv.geometry import Pairs, named, per_axis, with_batch
from .average import pool_shape
from .fitting import fit_windows
from .maximum_functions import check_spatial, output_sizes, without_batch


@composite()
@rounded_once
def avg_pool1d(
    x: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the averages of windows of a sequence (N, C, L) or (C, L); see `avg_pool2d`."""
    options = (kernel_size, stride, padding, ceil_mode, count_include_pad, None)
    return _avg_pool("avg_pool1d", x, options)


@composite()
@rounded_once
def avg_pool2d(
    x: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the averages of windows of an image (N, C, H, W) or (C, H, W).

    The stride is the kernel size unless given. Each sum is divided by the number of elements of its
    window within the input and, with count_include_pad, the padding (what ceil_mode adds beyond is
    never counted); or by divisor_override.

    >>> import weft as wf
    >>> x = wf.arange(16.0).reshape(1, 1, 4, 4)
    >>> wf.nn.functional.avg_pool2d(x, 2)
    tensor([[[[ 2.5000,  4.5000],
              [10.5000, 12.5000]]]])
    """
    options = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return _avg_pool("avg_pool2d", x, options)


@composite()
@rounded_once
def avg_pool3d(
    x: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the averages of windows of a volume (N, C, D, H, W) or (C, D, H, W)."""
    options = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return _avg_pool("avg_pool3d", x, options)


@composite()
@rounded_once
def lp_pool1d(
    x: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return (sum of x**p)**(1/p) over windows of a sequence, with p = norm_type."""
    return _lp_pool("lp_pool1d", x, norm_type, (kernel_size, stride, ceil_mode))


@composite()
@rounded_once
def lp_pool2d(
    x: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return (sum of x**p)**(1/p) over windows of an image, with p = norm_type.

    No absolute values are taken. Where the sum is 0 the gradient is 0. A window cut short by
    ceil_mode counts as a full one with the same average, as in PyTorch.
    """
    return _lp_pool("lp_pool2d", x, norm_type, (kernel_size, stride, ceil_mode))


@composite()
@rounded_once
def adaptive_avg_pool1d(x: Tensor, output_size: Any) -> Tensor:
    """Return averages over windows that make the result (N, C, output_size)."""
    return _adaptive_avg_pool("adaptive_avg_pool1d", x, output_size)


@composite()
@rounded_once
def adaptive_avg_pool2d(x: Tensor, output_size: Any) -> Tensor:
    """Return averages over windows that make the result (N, C, *output_size).

    An int stands for both sizes; None keeps the size of the input. Windows follow from the sizes:
    window i of n over size elements runs from floor(i * size / n) to ceil((i + 1) * size / n).
    """
    return _adaptive_avg_pool("adaptive_avg_pool2d", x, output_size)


@composite()
@rounded_once
def adaptive_avg_pool3d(x: Tensor, output_size: Any) -> Tensor:
    """Return averages over windows that make the result (N, C, *output_size)."""
    return _adaptive_avg_pool("adaptive_avg_pool3d", x, output_size)


@composite()
def global_avg_pool(x: Tensor) -> Tensor:
    """Return the average of each channel of (N, C, *spatial) as (N, C, 1, ...)."""
    check_spatial("global_avg_pool", x)
    return F.mean(x, axis=tuple(range(2, x.ndim)), keepdims=True)


def _avg_pool(name: str, x: Any, options: tuple[Any, ...]) -> Tensor:
    kernel_size, stride, padding, ceil_mode, include_pad, override = options
    with named(name, "sum_pool"):
        x, unbatched = with_batch(x, int(name[-2]), F.reshape)
        kernel, strides = pool_shape(x.ndim - 2, kernel_size, stride)
        if include_pad is not True and include_pad is not False:
            raise ArgumentTypeError(
                f"count_include_pad must be True or False. Received: {include_pad!r}"
            )
        divisor = _override(override)
        size, ones = tuple(x.shape[2:]), (1,) * len(kernel)
        pairs = fit_windows(size, kernel, strides, padding, ones, ceil_mode)
        if divisor is None:
            limits = per_axis(padding, len(kernel), "padding", minimum=0)
            counted = limits if include_pad else (0,) * len(kernel)
            divisor = _divisors(size, kernel, strides, pairs, counted)
        return without_batch(_divided(x, (kernel, strides, pairs), divisor), unbatched)


def _divided(x: Any, windows: tuple[Any, ...], divisor: Any) -> Any:
    """Return sums over divisors; a 16-bit sum could overflow where its average does not."""
    dtype = x.dtype
    if dtype.itemsize == 2 and is_float(dtype):
        return F.cast(_divided(F.cast(x, float32), windows, divisor), dtype)
    if isinstance(divisor, np.ndarray):
        divisor = divisor.astype(to_float(dtype)) if divisor.ndim else float(divisor)
    elif not isinstance(divisor, float):
        divisor = F.cast(divisor, to_float(dtype))
    return F.sum_pool(x, *windows) / divisor


def _override(value: Any) -> Any:
    if value is None:
        return None
    divisor = as_int(value, "divisor_override")
    if divisor == 0:
        raise ArgumentError("divisor_override must not be 0. Received: 0")
    return float(divisor)


def _divisors(size: Shape, kernel: Shape, stride: Shape, pairs: Pairs, counted: Shape) -> Any:
    """Return how many elements of each window count; 0-d if it is the same for all windows.

    counted   how far beyond the input elements count: the padding, or nothing
    """
    if not is_known(size):
        return _divisors_when_run(size, kernel, stride, pairs, counted)
    divisors = np.ones(())
    for n, k, s, (before, after), beyond in zip(size, kernel, stride, pairs, counted, strict=True):
        start = np.arange((n + before + after - k) // s + 1) * s - before
        inside = np.minimum(start + k, n + beyond) - np.maximum(start, -beyond)
        divisors = divisors[..., None] * inside
    return np.asarray(divisors.flat[0]) if np.all(divisors == divisors.flat[0]) else divisors


def _divisors_when_run(
    size: Shape, kernel: Shape, stride: Shape, pairs: Pairs, counted: Shape
) -> Any:
    """Return the same as a value of the graph, for sizes that are known when it runs."""
    divisors: Any = 1
    for n, k, s, (before, after), beyond in zip(size, kernel, stride, pairs, counted, strict=True):
        start = F.iota((n + before + after - k) // s + 1) * s - before
        inside = F.minimum(start + k, n + beyond) - F.maximum(start, -beyond)
        divisors = (divisors[..., None] if hasattr(divisors, "ndim") else divisors) * inside
    return divisors


def _lp_pool(name: str, x: Any, norm_type: Any, options: tuple[Any, ...]) -> Tensor:
    if isinstance(norm_type, bool) or not isinstance(norm_type, (int, float, np.number)):
        raise ArgumentTypeError(f"{name}: norm_type must be a number. Received: {norm_type!r}")
    p = float(norm_type)
    if not 0 < p < np.inf:
        raise ArgumentError(f"{name}: norm_type must be positive and finite. Received: {p}")
    kernel_size, stride, ceil_mode = options
    averages = _avg_pool(name, x**p, (kernel_size, stride, 0, ceil_mode, True, None))
    elements = size_of(per_axis(kernel_size, int(name[-2]), "kernel_size"))
    sums: Any = averages * float(elements)
    # d s**(1/p) / ds is infinite at 0; the root is taken of 1 there and put back to 0.
    zero = sums == 0
    return F.where(zero, 0.0, F.where(zero, 1.0, sums) ** (1.0 / p))


def _adaptive_avg_pool(name: str, x: Any, output_size: Any) -> Tensor:
    with named(name, "resize_axis"):
        x, unbatched = with_batch(x, int(name[-2]), F.reshape)
        sizes = output_sizes(output_size, x.shape[2:])
        x = x if is_float(x.dtype) else F.cast(x, to_float(x.dtype))
        for axis, size in enumerate(sizes, start=2):
            x = F.resize_axis(x, size, axis, "area")
        return without_batch(x, unbatched)
