"""Max-pooling layers, and the layers that put maxima back to their places."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.tensor import Tensor
from .arguments import as_flag, as_sizes
from .calls import F
from .module import Module
from .pooling import AdaptivePool, OutputSize, Sizes, checked


class _MaxPool(Module):
    _printed = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    _spatial: ClassVar[int]
    _function: ClassVar[str]

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        n = self._spatial
        self.kernel_size = checked(self, "kernel_size", kernel_size, n)
        self.stride = checked(self, "stride", kernel_size if stride is None else stride, n)
        self.padding = checked(self, "padding", padding, n, 0)
        self.dilation = checked(self, "dilation", dilation, n)
        self.return_indices = as_flag(self, "return_indices", return_indices)
        self.ceil_mode = as_flag(self, "ceil_mode", ceil_mode)

    def _options(self) -> tuple[Any, ...]:
        windows = (self.kernel_size, self.stride, self.padding, self.dilation)
        return (*windows, self.ceil_mode, self.return_indices)

    def forward(self, x: Tensor) -> Any:
        """Return the maxima, or the pair (maxima, indices)."""
        return getattr(F, self._function)(x, *self._options())


class MaxPool1d(_MaxPool):
    """Take the maxima of windows of (N, C, L); the stride is the kernel size unless given.

    With return_indices the places of the maxima are returned too, for MaxUnpool1d.
    """

    _spatial, _function = 1, "max_pool1d"


class MaxPool2d(_MaxPool):
    """Take the maxima of windows of (N, C, H, W); see MaxPool1d.

    >>> import weft as wf
    >>> wf.nn.MaxPool2d(2)(wf.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    _spatial, _function = 2, "max_pool2d"


class MaxPool3d(_MaxPool):
    """Take the maxima of windows of (N, C, D, H, W); see MaxPool1d."""

    _spatial, _function = 3, "max_pool3d"


class _AdaptiveMaxPool(AdaptivePool):
    def __init__(self, output_size: OutputSize, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = as_flag(self, "return_indices", return_indices)

    def forward(self, x: Tensor) -> Any:
        """Return the maxima, or the pair (maxima, indices)."""
        return getattr(F, self._function)(x, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Take maxima of (N, C, L) over windows that make the result (N, C, output_size)."""

    _spatial, _function = 1, "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Take maxima of (N, C, H, W) over windows that make the result (N, C, *output_size)."""

    _spatial, _function = 2, "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Take maxima of (N, C, D, H, W) over windows that make the result (N, C, *output_size)."""

    _spatial, _function = 3, "adaptive_max_pool3d"


class _MaxUnpool(Module):
    _printed = ("kernel_size", "stride", "padding")
    _spatial: ClassVar[int]
    _function: ClassVar[str]

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        n = self._spatial
        self.kernel_size = as_sizes(self, "kernel_size", kernel_size, n)
        self.stride = as_sizes(self, "stride", kernel_size if stride is None else stride, n)
        self.padding = as_sizes(self, "padding", padding, n, 0)

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Any:
        """Return the spread maxima; output_size chooses among sizes that pool to the same."""
        options = (self.kernel_size, self.stride, self.padding, output_size)
        return getattr(F, self._function)(x, indices, *options)


class MaxUnpool1d(_MaxUnpool):
    """Put maxima back to the places that MaxPool1d took them from; zeros elsewhere."""

    _spatial, _function = 1, "max_unpool1d"


class MaxUnpool2d(_MaxUnpool):
    """Put maxima back to the places that MaxPool2d took them from; zeros elsewhere."""

    _spatial, _function = 2, "max_unpool2d"


class MaxUnpool3d(_MaxUnpool):
    """Put maxima back to the places that MaxPool3d took them from; zeros elsewhere."""

    _spatial, _function = 3, "max_unpool3d"
