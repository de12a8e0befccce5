"""Max-pooling layers, and the layers that put maxima back to their places."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.errors import ArgumentError
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


class _FractionalMaxPool(Module):
    _printed = ("kernel_size", "output_size", "output_ratio")
    _spatial: ClassVar[int]
    _function: ClassVar[str]

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        n, name = self._spatial, type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise ArgumentError(
                f"{name} takes either output_size or output_ratio. Received: "
                f"output_size={output_size}, output_ratio={output_ratio}"
            )
        self.kernel_size = as_sizes(self, "kernel_size", kernel_size, n)
        sizes = None if output_size is None else as_sizes(self, "output_size", output_size, n)
        self.output_size, self.output_ratio = sizes, _ratios(name, output_ratio, n)
        self.return_indices = as_flag(self, "return_indices", return_indices)
        self.register_buffer("_random_samples", _random_samples, persistent=False)

    def forward(self, x: Tensor) -> Any:
        """Return the maxima, or the pair (maxima, indices)."""
        options = (self.output_size, self.output_ratio, self.return_indices)
        samples = {"random_samples": self._random_samples}
        return getattr(F, self._function)(x, self.kernel_size, *options, **samples)


def _ratios(name: str, given: Any, count: int) -> tuple[float, ...] | None:
    if given is None:
        return None
    ratios = tuple(given) if isinstance(given, (tuple, list)) else (given,) * count
    if len(ratios) != count or not all(0 < ratio < 1 for ratio in ratios):
        raise ArgumentError(
            f"{name}: output_ratio must be a number between 0 and 1, or {count} of them. "
            f"Received: {given}"
        )
    return ratios


class FractionalMaxPool2d(_FractionalMaxPool):
    """Take maxima of (N, C, H, W) over windows at random distances (Graham 2015).

    output_size       the size of the result, or
    output_ratio      its part of the input's, between 0 and 1
    _random_samples   (N, C, 2): numbers that fix the windows, instead of new ones in each call

    >>> import weft as wf
    >>> wf.nn.FractionalMaxPool2d(2, output_size=(3, 4))(wf.zeros((1, 2, 6, 8))).shape
    (1, 2, 3, 4)
    """

    _spatial, _function = 2, "fractional_max_pool2d"


class FractionalMaxPool3d(_FractionalMaxPool):
    """Take maxima of (N, C, D, H, W) over windows at random distances; see FractionalMaxPool2d."""

    _spatial, _function = 3, "fractional_max_pool3d"


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
