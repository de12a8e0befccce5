"""Pooling over windows, and over all positions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ...nn import functional
from ...nn.calls import F
from .windows import WindowLayer, padded, same_widths


class _Pooling(WindowLayer):
    """Base of poolings; the strides are the size of the window unless given."""

    _options = ("pool_size", "strides", "padding", "data_format")
    _function: ClassVar[str]

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.take_layout(data_format, padding, ("valid", "same"))
        self.pool_size = self.sizes("pool_size", pool_size)
        self.strides = self.pool_size if strides is None else self.sizes("strides", strides)

    def call(self, inputs: Any) -> Any:
        """Return what the windows make of the input."""
        x = self.first(inputs)
        same = self.padding == "same"
        widths = same_widths(self, x, self.pool_size, self.strides) if same else None
        return self.back(self._pooled(x, widths))

    def _windows(self, x: Any) -> Any:
        return getattr(functional, self._function)(x, self.pool_size, self.strides)

    def _pooled(self, x: Any, widths: list[int] | None) -> Any:
        raise NotImplementedError


class _MaxPooling(_Pooling):
    def _pooled(self, x: Any, widths: list[int] | None) -> Any:
        return self._windows(padded(x, widths, -math.inf))


class _AveragePooling(_Pooling):
    def _pooled(self, x: Any, widths: list[int] | None) -> Any:
        sums = self._windows(padded(x, widths))
        if widths is None:
            return sums
        # The padding is no part of the mean: divide by the share of each window that is not.
        return sums / self._windows(padded(F.ones_like(x[:1, :1]), widths))


class MaxPooling1D(_MaxPooling):
    """Take the maxima of windows of (N, T, C)."""

    _spatial, _function = 1, "max_pool1d"


class MaxPooling2D(_MaxPooling):
    """Take the maxima of windows of (N, H, W, C).

    >>> import weft as wf
    >>> MaxPooling2D(2)(wf.arange(16.0).reshape(1, 4, 4, 1)).flatten()
    tensor([ 5.,  7., 13., 15.])
    """

    _spatial, _function = 2, "max_pool2d"


class AveragePooling1D(_AveragePooling):
    """Average windows of (N, T, C); padding counts for nothing."""

    _spatial, _function = 1, "avg_pool1d"


class AveragePooling2D(_AveragePooling):
    """Average windows of (N, H, W, C); padding counts for nothing."""

    _spatial, _function = 2, "avg_pool2d"


class _GlobalPooling(WindowLayer):
    _options = ("data_format", "keepdims")
    _reduction: ClassVar[str]

    def __init__(
        self, data_format: str | None = None, keepdims: bool = False, **options: Any
    ) -> None:
        super().__init__(**options)
        self.take_layout(data_format, "valid", ("valid",))
        self.keepdims = bool(keepdims)

    def call(self, inputs: Any) -> Any:
        """Return one number for each channel."""
        self.channels((*inputs.shape[:-1], 1))
        start = 1 if self.data_format == "channels_last" else 2
        axes = tuple(range(start, start + self._spatial))
        return getattr(F, self._reduction)(inputs, axis=axes, keepdims=self.keepdims)


class GlobalAveragePooling1D(_GlobalPooling):
    """Average (N, T, C) over the steps, to (N, C)."""

    _spatial, _reduction = 1, "mean"


class GlobalAveragePooling2D(_GlobalPooling):
    """Average (N, H, W, C) over the pixels, to (N, C)."""

    _spatial, _reduction = 2, "mean"


class GlobalMaxPooling1D(_GlobalPooling):
    """Take the maxima of (N, T, C) over the steps, to (N, C)."""

    _spatial, _reduction = 1, "max"


class GlobalMaxPooling2D(_GlobalPooling):
    """Take the maxima of (N, H, W, C) over the pixels, to (N, C)."""

    _spatial, _reduction = 2, "max"
