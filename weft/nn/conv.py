"""Convolution layers, with PyTorch's options and layouts."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.errors import ArgumentError
from ..core.shape import Shape, size_of
from ..core.tensor import Tensor
from . import init
from .arguments import as_choice, as_flag, as_size, as_sizes, placement
from .calls import F
from .lazy import LazySize, OpenInput, channels_of
from .parameter import Parameter, new_parameter

Sizes = int | tuple[int, ...]
PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class ConvBase(OpenInput):
    """What convolutions of all dimensions share: options, parameters, initialisation, printing."""

    _size_name = "in_channels"
    _spatial: ClassVar[int]
    _function: ClassVar[str]
    _transposed: ClassVar[bool] = False
    in_channels: int
    padding: str | tuple[int, ...]
    output_padding: tuple[int, ...]
    weight: Parameter
    bias: Parameter | None

    def _take_windows(self, size: Any, stride: Any, padding: Any, dilation: Any) -> None:
        """Check and take what says where windows lie."""
        count = self._spatial
        self.kernel_size = as_sizes(self, "kernel_size", size, count)
        self.stride = as_sizes(self, "stride", stride, count)
        self.dilation = as_sizes(self, "dilation", dilation, count)
        self.padding = self._checked_padding(padding)
        self.output_padding = (0,) * count
        self.padding_mode = "zeros"

    def _checked_padding(self, padding: Any) -> str | tuple[int, ...]:
        if not isinstance(padding, str):
            return as_sizes(self, "padding", padding, self._spatial, 0)
        as_choice(self, "padding", padding, ("same", "valid"))
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ArgumentError(
                f"{type(self).__name__}: padding='same' needs stride 1. "
                f"Received: stride={self.stride}; give padding as numbers"
            )
        return padding

    def _make_parameters(
        self, inputs: Any, outputs: Any, groups: Any, bias: Any, factory: dict[str, Any]
    ) -> None:
        self.groups = as_size(self, "groups", groups)
        size = None if inputs is None else self._grouped("in_channels", inputs)
        self.in_channels = size or 0
        self.out_channels = self._grouped("out_channels", outputs)
        place = placement(self, factory)
        self.weight = self._new_parameter("weight", size, **place)
        has_bias = as_flag(self, "bias", bias)
        made = new_parameter((self.out_channels,), **place) if has_bias else None
        self.register_parameter("bias", made)
        self._begin(size)

    def _grouped(self, name: str, value: Any) -> int:
        channels = as_size(self, name, value)
        if channels % self.groups:
            raise ArgumentError(
                f"{type(self).__name__}: groups must divide {name}. "
                f"Received: {name}={channels}, groups={self.groups}"
            )
        return channels

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, uniform within 1 / sqrt(fan_in)."""
        bound = 1 / math.sqrt(init.fans(self.weight)[0])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def _shapes(self, size: int) -> dict[str, Shape]:
        # With several groups, size 1 asks only for the number of dimensions.
        ends = (size, self.out_channels) if self._transposed else (self.out_channels, size)
        return {"weight": (ends[0], ends[1] // self.groups, *self.kernel_size)}

    def _size_of(self, name: str, shape: Shape) -> int | None:
        size: int = shape[0] if self._transposed else shape[1] * self.groups
        return size

    def _input_size(self, x: Any) -> int:
        return self._grouped("in_channels", channels_of(self, x, self._spatial))

    def extra_repr(self) -> str:
        """Return the options, those at their defaults left out."""
        plain: tuple[int, ...] = (0,) * self._spatial
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        parts += [f"padding={self.padding}"] if self.padding != plain else []
        parts += [f"dilation={self.dilation}"] if size_of(self.dilation) != 1 else []
        parts += [f"output_padding={self.output_padding}"] if self.output_padding != plain else []
        parts += [f"groups={self.groups}"] if self.groups != 1 else []
        parts += ["bias=False"] if self.bias is None else []
        parts += [f"padding_mode={self.padding_mode}"] if self.padding_mode != "zeros" else []
        return ", ".join(parts)


class _Conv(ConvBase):
    """A convolution, whose padding may also reflect, repeat or wrap the input."""

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        **factory: Any,
    ) -> None:
        super().__init__()
        self._take_windows(kernel_size, stride, padding, dilation)
        self.padding_mode = as_choice(self, "padding_mode", padding_mode, PADDING_MODES)
        self._make_parameters(in_channels, out_channels, groups, bias, factory)

    def forward(self, x: Tensor) -> Any:
        """Return the convolution."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            x, padding = F.pad_torch(x, self._pad_widths(), self.padding_mode), 0
        options = (self.stride, padding, self.dilation, self.groups)
        return getattr(F, self._function)(x, self.weight, self.bias, *options)

    def _pad_widths(self) -> tuple[int, ...]:
        """Return the widths for `pad`: pairs from the last axis backwards."""
        if self.padding == "valid":
            return (0, 0) * self._spatial
        widths: list[int] = []
        for axis in reversed(range(self._spatial)):
            if isinstance(self.padding, str):
                total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                widths += [total // 2, total - total // 2]
            else:
                widths += [self.padding[axis]] * 2
        return tuple(widths)


class Conv1d(_Conv):
    """Convolve (N, C, L) or (C, L) with `out_channels` kernels; weight is (out, C / groups, k).

    padding is a number, "valid" or "same"; padding_mode "zeros", "reflect", "replicate" or
    "circular". in_channels=None leaves the channels open until the first call.
    """

    _spatial, _function = 1, "conv1d"


class Conv2d(_Conv):
    """Convolve (N, C, H, W) or (C, H, W); weight is (out, C / groups, kh, kw). See Conv1d.

    >>> import weft as wf
    >>> wf.nn.Conv2d(3, 8, kernel_size=3, padding="same")(wf.zeros(1, 3, 10, 10)).shape
    (1, 8, 10, 10)
    """

    _spatial, _function = 2, "conv2d"


class Conv3d(_Conv):
    """Convolve (N, C, D, H, W) or (C, D, H, W); weight is (out, C / groups, kd, kh, kw).

    See Conv1d.
    """

    _spatial, _function = 3, "conv3d"


class LazyConv(LazySize):
    """Base of convolutions whose in_channels the first input tells."""

    def __init__(self, out_channels: int, kernel_size: Sizes, *args: Any, **kwargs: Any) -> None:
        super().__init__(out_channels, kernel_size, *args, **kwargs)


class LazyConv1d(LazyConv, Conv1d):
    """A Conv1d whose in_channels the first input tells."""


class LazyConv2d(LazyConv, Conv2d):
    """A Conv2d whose in_channels the first input tells."""


class LazyConv3d(LazyConv, Conv3d):
    """A Conv3d whose in_channels the first input tells."""
