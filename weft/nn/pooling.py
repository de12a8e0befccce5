"""Pooling layers over windows: averages, power means, and windows that follow from the output size.

Inputs are (N, C, *spatial), or (C, *spatial) without a batch.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.errors import ArgumentError
from ..core.shape import as_int, size_of
from ..core.tensor import Tensor
from .arguments import as_flag, as_number, as_size, as_sizes
from .calls import F
from .module import Module

Sizes = int | tuple[int, ...]
OutputSize = int | None | tuple[int | None, ...]


def checked(layer: Module, name: str, value: Any, spatial: int, least: int = 1) -> Any:
    """Return an option as it was given, for the repr, after checking it."""
    as_sizes(layer, name, value, spatial, least)
    return value


# -- averages ------------------------------------------------------------------------------------


class AvgPool1d(Module):
    """Average windows of (N, C, L); the stride is the kernel size unless given."""

    _printed = ("kernel_size", "stride", "padding")

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = as_sizes(self, "kernel_size", kernel_size, 1)
        self.stride = as_sizes(self, "stride", kernel_size if stride is None else stride, 1)
        self.padding = as_sizes(self, "padding", padding, 1, 0)
        self.ceil_mode = as_flag(self, "ceil_mode", ceil_mode)
        self.count_include_pad = as_flag(self, "count_include_pad", count_include_pad)

    def forward(self, x: Tensor) -> Tensor:
        """Return the averages."""
        options = (self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return F.avg_pool1d(x, self.kernel_size, *options)


class _AvgPool(Module):
    _printed = ("kernel_size", "stride", "padding")
    _spatial: ClassVar[int]
    _function: ClassVar[str]

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        n = self._spatial
        self.kernel_size = checked(self, "kernel_size", kernel_size, n)
        self.stride = checked(self, "stride", kernel_size if stride is None else stride, n)
        self.padding = checked(self, "padding", padding, n, 0)
        self.ceil_mode = as_flag(self, "ceil_mode", ceil_mode)
        self.count_include_pad = as_flag(self, "count_include_pad", count_include_pad)
        self.divisor_override = self._divisor(divisor_override)

    def _divisor(self, value: Any) -> int | None:
        if value is None:
            return None
        divisor = as_int(value, f"{type(self).__name__}: divisor_override")
        if divisor == 0:
            raise ArgumentError(f"{type(self).__name__}: divisor_override must not be 0")
        return divisor

    def forward(self, x: Tensor) -> Any:
        """Return the averages."""
        windows = (self.kernel_size, self.stride, self.padding)
        flags = (self.ceil_mode, self.count_include_pad, self.divisor_override)
        return getattr(F, self._function)(x, *windows, *flags)


class AvgPool2d(_AvgPool):
    """Average windows of (N, C, H, W); the stride is the kernel size unless given.

    Each sum is divided by the number of elements in its window, padding included unless
    count_include_pad=False, or by divisor_override.

    >>> import weft as wf
    >>> wf.nn.AvgPool2d(2)(wf.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """

    _spatial, _function = 2, "avg_pool2d"


class AvgPool3d(_AvgPool):
    """Average windows of (N, C, D, H, W); see AvgPool2d."""

    _spatial, _function = 3, "avg_pool3d"


# -- power means ---------------------------------------------------------------------------------


class _LPPool(Module):
    _printed = ("norm_type", "kernel_size", "stride", "ceil_mode")
    _spatial: ClassVar[int]
    _function: ClassVar[str]

    def __init__(
        self,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = as_number(self, "norm_type", norm_type)
        if not 0 < self.norm_type < math.inf:
            raise ArgumentError(
                f"{type(self).__name__}: norm_type must be positive and finite. "
                f"Received: {norm_type!r}"
            )
        self.kernel_size = checked(self, "kernel_size", kernel_size, self._spatial)
        if stride is not None:
            checked(self, "stride", stride, self._spatial)
        self.stride = stride
        self.ceil_mode = as_flag(self, "ceil_mode", ceil_mode)

    def forward(self, x: Tensor) -> Any:
        """Return the power sums."""
        windows = (self.kernel_size, self.stride, self.ceil_mode)
        return getattr(F, self._function)(x, self.norm_type, *windows)


class LPPool1d(_LPPool):
    """Return (sum of x**p)**(1/p) over windows of (N, C, L), with p = norm_type."""

    _spatial, _function = 1, "lp_pool1d"


class LPPool2d(_LPPool):
    """Return (sum of x**p)**(1/p) over windows of (N, C, H, W), with p = norm_type."""

    _spatial, _function = 2, "lp_pool2d"


class LPPool3d(_LPPool):
    """Return (sum of x**p)**(1/p) over windows of (N, C, D, H, W), with p = norm_type."""

    _spatial = 3

    def forward(self, x: Tensor) -> Tensor:
        """Return the power sums."""
        windows = (self.kernel_size, self.stride, 0, self.ceil_mode)
        elements = size_of(as_sizes(self, "kernel_size", self.kernel_size, 3))
        sums = F.avg_pool3d(F.pow(x, self.norm_type), *windows) * float(elements)
        # The root has an infinite slope at 0: it is taken of 1 there, and put back to 0.
        zero = F.equal(sums, 0.0)
        root = F.pow(F.where(zero, 1.0, sums), 1.0 / self.norm_type)
        return F.where(zero, 0.0, root)


# -- windows that follow from the output size ----------------------------------------------------


class AdaptivePool(Module):
    """Base of pooling layers that are given the output size; None keeps that of the input."""

    _printed = ("output_size",)
    _spatial: ClassVar[int]
    _function: ClassVar[str]

    def __init__(self, output_size: OutputSize) -> None:
        super().__init__()
        given = output_size if isinstance(output_size, (tuple, list)) else (output_size,)
        if len(given) not in (1, self._spatial):
            raise ArgumentError(
                f"{type(self).__name__}: output_size must be an int, None, or {self._spatial} of "
                f"them. Received: {output_size!r}"
            )
        for size in given:
            if size is not None:
                as_size(self, "output_size", size, 0)
        self.output_size = output_size

    def forward(self, x: Tensor) -> Any:
        """Return what the windows make of x."""
        return getattr(F, self._function)(x, self.output_size)


class AdaptiveAvgPool1d(AdaptivePool):
    """Average (N, C, L) over windows that make the result (N, C, output_size)."""

    _spatial, _function = 1, "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(AdaptivePool):
    """Average (N, C, H, W) over windows that make the result (N, C, *output_size)."""

    _spatial, _function = 2, "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(AdaptivePool):
    """Average (N, C, D, H, W) over windows that make the result (N, C, *output_size)."""

    _spatial, _function = 3, "adaptive_avg_pool3d"


class _GlobalPool(Module):
    _function: ClassVar[str]

    def forward(self, x: Tensor) -> Any:
        """Return one number for each channel."""
        return getattr(F, self._function)(x)


class GlobalAvgPool(_GlobalPool):
    """Average each channel of (N, C, *spatial) over all positions, to (N, C, 1, ...)."""

    _function = "global_avg_pool"


class GlobalMaxPool(_GlobalPool):
    """Take the maximum of each channel of (N, C, *spatial), to (N, C, 1, ...)."""

    _function = "global_max_pool"
