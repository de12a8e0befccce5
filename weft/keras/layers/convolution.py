"""Convolutions in one and two dimensions, depthwise and separable ones, and transposes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ... import nn
from ...core.errors import ArgumentError
from .. import activations, initializers
from .base import Layer
from .weights import Weight, kernel
from .windows import WindowLayer, padded, same_widths


class _Convolution(WindowLayer):
    """What convolutions share; the core is made when the channels are known."""

    _core: ClassVar[Any]
    _paddings: ClassVar[tuple[str, ...]] = ("valid", "same")
    _options: ClassVar[tuple[str, ...]] = (
        *("filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate"),
        *("groups", "activation", "use_bias", "kernel_initializer", "bias_initializer"),
    )
    core: Any

    def __init__(  # noqa: PLR0913, PLR0917  (Keras's signature)
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.take_layout(data_format, padding, self._paddings)
        self.filters, self.groups, self.use_bias = filters, groups, bool(use_bias)
        self.kernel_size = self.sizes("kernel_size", kernel_size)
        self.strides = self.sizes("strides", strides)
        self.dilation_rate = self.sizes("dilation_rate", dilation_rate)
        self.activation = activations.get(activation)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)

    def build(self, input_shape: Any) -> None:
        """Make kernel (*kernel_size, channels / groups, filters) and bias."""
        self.core = self._made(self.channels(input_shape))
        drawn = self.kernel_initializer, self.bias_initializer
        for weight, initializer in zip(self.own_weights(), drawn, strict=False):
            weight.assign(initializer(weight.shape))

    def _made(self, channels: int) -> Any:
        windows = (self.kernel_size, self.strides, 0, self.dilation_rate)
        return self._core(channels, self.filters, *windows, self.groups, self.use_bias)

    def call(self, inputs: Any) -> Any:
        """Return the convolution."""
        made = self.core(padded(*self._edges(self.first(inputs))))
        return self._activated(made)

    def _activated(self, made: Any) -> Any:
        """Return the activation in the layout of the inputs.

        One of elements comes before the axes are moved: so moves of layers in a row meet.
        """
        if activations.is_elementwise(self.activation):
            return self.back(self.activation(made))
        return self.activation(self.back(made))

    def _edges(self, x: Any) -> tuple[Any, list[int] | None]:
        extent = tuple(
            (k - 1) * d + 1 for k, d in zip(self.kernel_size, self.dilation_rate, strict=True)
        )
        if self.padding == "same":
            return x, same_widths(self, x, extent, self.strides)
        return x, [extent[0] - 1, 0] if self.padding == "causal" else None

    def own_weights(self) -> list[Weight]:
        """Return kernel and bias."""
        found = [kernel("kernel", self.core.weight)]
        return found if self.core.bias is None else [*found, Weight("bias", self.core.bias)]


class Conv1D(_Convolution):
    """Convolve (N, T, C) with `filters` kernels; padding may be "causal" too."""

    _spatial, _core, _paddings = 1, nn.Conv1d, ("valid", "same", "causal")


class Conv2D(_Convolution):
    """Convolve (N, H, W, C) with `filters` kernels.

    >>> import weft as wf
    >>> Conv2D(8, 3, strides=2, padding="same")(wf.zeros(1, 9, 9, 3)).shape
    (1, 5, 5, 8)
    """

    _spatial, _core = 2, nn.Conv2d


class Conv3D(_Convolution):
    """Convolve (N, D, H, W, C) with `filters` kernels."""

    _spatial, _core = 3, nn.Conv3d


class DepthwiseConv2D(_Convolution):
    """Convolve each channel of (N, H, W, C) with `depth_multiplier` kernels of its own."""

    _spatial, _core = 2, nn.Conv2d
    _options: ClassVar[tuple[str, ...]] = (
        *("kernel_size", "strides", "padding", "depth_multiplier", "data_format"),
        *("dilation_rate", "activation", "use_bias", "depthwise_initializer", "bias_initializer"),
    )

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **options: Any,
    ) -> None:
        windows = (kernel_size, strides, padding, data_format, dilation_rate, 1)
        drawn = (depthwise_initializer, bias_initializer)
        super().__init__(depth_multiplier, *windows, activation, use_bias, *drawn, **options)
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer = self.kernel_initializer

    def _made(self, channels: int) -> Any:
        outputs = channels * self.depth_multiplier
        windows = (self.kernel_size, self.strides, 0, self.dilation_rate)
        return self._core(channels, outputs, *windows, channels, self.use_bias)

    def own_weights(self) -> list[Weight]:
        """Return kernel (*kernel_size, channels, depth_multiplier) and bias."""
        tensor, times = self.core.weight, self.depth_multiplier

        def show(array: Any) -> Any:
            grouped = array.reshape(-1, times, *array.shape[2:])
            return np.moveaxis(grouped, (0, 1), (-2, -1))

        def take(array: Any) -> Any:
            return np.moveaxis(array, (-2, -1), (0, 1)).reshape(tensor.shape)

        found = [Weight("depthwise_kernel", tensor, show, take)]
        return found if self.core.bias is None else [*found, Weight("bias", self.core.bias)]


class SeparableConv2D(Layer):
    """A depthwise convolution, and one of single pixels over its channels."""

    _options: ClassVar[tuple[str, ...]] = (
        *("filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate"),
        *("depth_multiplier", "activation", "use_bias"),
    )

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        each = (kernel_size, strides, padding, depth_multiplier, data_format, dilation_rate)
        self.depthwise = DepthwiseConv2D(*each, use_bias=False, name="depthwise")
        self.pointwise = Conv2D(
            *(filters, 1, 1, "valid", data_format),
            activation=activation,
            use_bias=use_bias,
            name="pointwise",
        )
        self.filters, self.use_bias, self.depth_multiplier = filters, use_bias, depth_multiplier
        for name in ("kernel_size", "strides", "padding", "data_format", "dilation_rate"):
            setattr(self, name, getattr(self.depthwise, name))
        self.activation = self.pointwise.activation

    def call(self, inputs: Any) -> Any:
        """Return the convolution."""
        return self.pointwise(self.depthwise(inputs))

    def own_weights(self) -> list[Weight]:
        """Return depthwise kernel, pointwise kernel and bias."""
        return [*self.depthwise.own_weights(), *self.pointwise.own_weights()]


class _Transpose(_Convolution):
    """Base of transposed convolutions, whose output is `strides` times as large."""

    def _made(self, channels: int) -> Any:
        if self.groups != 1 or any(d != 1 for d in self.dilation_rate):
            raise ArgumentError(
                f"{self.name}: groups and dilation_rate other than 1 are not served"
            )
        # Where windows leave gaps, the gap after the last is part of the output.
        gaps = tuple(max(s - k, 0) for s, k in zip(self.strides, self.kernel_size, strict=True))
        windows = (self.kernel_size, self.strides, 0, gaps)
        return self._core(channels, self.filters, *windows, 1, self.use_bias)

    def call(self, inputs: Any) -> Any:
        """Return the convolution: strides * size with "same", or all that windows reach."""
        x = self.first(inputs)
        made = self.core(x)
        if self.padding == "same":
            kept: list[Any] = [slice(None), slice(None)]
            for size, k, s in zip(x.shape[2:], self.kernel_size, self.strides, strict=True):
                before = max(k - s, 0) // 2
                kept.append(slice(before, before + size * s))
            made = made[tuple(kept)]
        return self._activated(made)


class Conv1DTranspose(_Transpose):
    """The transpose of Conv1D: (N, T, C) becomes longer."""

    _spatial, _core = 1, nn.ConvTranspose1d


class Conv2DTranspose(_Transpose):
    """The transpose of Conv2D: (N, H, W, C) becomes larger."""

    _spatial, _core = 2, nn.ConvTranspose2d
