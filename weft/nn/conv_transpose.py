"""Transposed convolution layers, with PyTorch's options and layouts."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentError, ShapeError
from ..core.tensor import Tensor
from .arguments import as_sizes
from .calls import F
from .conv import ConvBase, LazyConv, Sizes

Wanted = tuple[int, ...] | list[int] | None


class _ConvTranspose(ConvBase):
    """The adjoint of a convolution: spreads each input element over an output window."""

    _transposed = True

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        **factory: Any,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if padding_mode != "zeros":
            raise ArgumentError(f"{name}: padding_mode must be 'zeros'. Received: {padding_mode!r}")
        if isinstance(padding, str):
            raise ArgumentError(f"{name}: padding must be numbers. Received: {padding!r}")
        self._take_windows(kernel_size, stride, padding, dilation)
        extra = as_sizes(self, "output_padding", output_padding, self._spatial, 0)
        self.output_padding = extra
        self._make_parameters(in_channels, out_channels, groups, bias, factory)

    def forward(self, x: Tensor, output_size: Wanted = None) -> Any:
        """Return the transposed convolution."""
        extra = self.output_padding if output_size is None else self._extra(x, tuple(output_size))
        options = (self.stride, self.padding, extra, self.groups, self.dilation)
        return getattr(F, self._function)(x, self.weight, self.bias, *options)

    def _extra(self, x: Any, output_size: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output padding that gives the wanted size."""
        sizes = self._spatial_sizes(x, output_size)
        least = self._least_sizes(x.shape[-self._spatial :])
        extra = tuple(wanted - n for wanted, n in zip(sizes, least, strict=True))
        if any(not 0 <= e < s for e, s in zip(extra, self.stride, strict=True)):
            most = tuple(n + s - 1 for n, s in zip(least, self.stride, strict=True))
            raise ShapeError(
                f"{type(self).__name__}: output_size must lie from {least} to {most} for input "
                f"{tuple(x.shape)}. Received: {sizes}"
            )
        return extra

    def _least_sizes(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output sizes without output padding."""
        options = zip(self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        axes: Any = zip(sizes, options, strict=True)
        return tuple((n - 1) * s - 2 * p + d * (k - 1) + 1 for n, (s, p, d, k) in axes)

    def _spatial_sizes(self, x: Any, output_size: tuple[int, ...]) -> tuple[int, ...]:
        if len(output_size) not in (self._spatial, x.ndim):
            raise ArgumentError(
                f"{type(self).__name__}: output_size must have {self._spatial} entries. "
                f"Received: {output_size}"
            )
        return output_size[-self._spatial :]


class ConvTranspose1d(_ConvTranspose):
    """Apply the adjoint of Conv1d to (N, C, L) or (C, L); weight is (C, out / groups, k).

    output_padding adds to one end of the output, whose size a stride leaves ambiguous; or give
    forward the `output_size`.
    """

    _spatial, _function = 1, "conv_transpose1d"


class ConvTranspose2d(_ConvTranspose):
    """Apply the adjoint of Conv2d; weight is (C, out / groups, kh, kw). See ConvTranspose1d."""

    _spatial, _function = 2, "conv_transpose2d"


class ConvTranspose3d(_ConvTranspose):
    """Apply the adjoint of Conv3d; weight is (C, out / groups, kd, kh, kw). See ConvTranspose1d."""

    _spatial, _function = 3, "conv_transpose3d"


class LazyConvTranspose1d(LazyConv, ConvTranspose1d):
    """A ConvTranspose1d whose in_channels the first input tells."""


class LazyConvTranspose2d(LazyConv, ConvTranspose2d):
    """A ConvTranspose2d whose in_channels the first input tells."""


class LazyConvTranspose3d(LazyConv, ConvTranspose3d):
    """A ConvTranspose3d whose in_channels the first input tells."""
