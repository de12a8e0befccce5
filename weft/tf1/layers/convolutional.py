"""Convolutional layers; channels are last by default."""

from __future__ import annotations

from typing import Any

from ..array_ops import shape
from ..nn import windows
from ..nn.activations import bias_add
from ..recording import Tensor
from .base import Layer, last_size, zeros

_FORMATS = {
    "channels_last": {1: "NWC", 2: "NHWC", 3: "NDHWC"},
    "channels_first": {1: "NCW", 2: "NCHW", 3: "NCDHW"},
}


def sizes(value: Any, count: int, what: str) -> tuple[int, ...]:
    """Return a number, or several, as one for each axis."""
    found = (value,) * count if isinstance(value, int) else tuple(value)
    if len(found) != count:
        raise ValueError(
            f"The `{what}` argument must be a tuple of {count} integers. Received: {value}"
        )
    return found


class _Conv(Layer):
    """A convolution over some axes."""

    spatial = 2
    names = ("kernel", "bias")

    def __init__(
        self,
        filters: Any,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            trainable=trainable, name=name, activity_regularizer=activity_regularizer, **options
        )
        if data_format not in _FORMATS:
            raise ValueError(
                f"The `data_format` argument must be one of {', '.join(_FORMATS)}. Received: "
                f"{data_format}"
            )
        self.filters = int(filters)
        self.window = sizes(kernel_size, self.spatial, "kernel_size")
        self.strides = sizes(strides, self.spatial, "strides")
        self.dilation = sizes(dilation_rate, self.spatial, "dilation_rate")
        self.padding, self.data_format = padding.upper(), data_format
        self.activation, self.use_bias = activation, use_bias
        self._kernel = {
            "initializer": kernel_initializer,
            "regularizer": kernel_regularizer,
            "constraint": kernel_constraint,
        }
        self._bias = {
            "initializer": bias_initializer or zeros(),
            "regularizer": bias_regularizer,
            "constraint": bias_constraint,
        }

    @property
    def _format(self) -> str:
        return _FORMATS[self.data_format][self.spatial]

    def _channels(self, input_shape: Any) -> int:
        return last_size(
            input_shape, -1 if self.data_format == "channels_last" else 1, "channel dimension"
        )

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.window, channels, self.filters]

    def build(self, input_shape: Any) -> None:
        """Make kernel and bias."""
        self.kernel = self.add_variable(
            "kernel", self._kernel_shape(self._channels(input_shape)), **self._kernel
        )
        self.bias = (
            self.add_variable("bias", [self.filters], **self._bias) if self.use_bias else None
        )

    def _convolved(self, x: Any) -> Tensor:
        return windows.convolution(
            x, self.kernel, self.padding, self.strides, self.dilation, None, self._format
        )

    def call(self, inputs: Any, **options: Any) -> Any:
        """Return the function."""
        made = self._convolved(inputs)
        made = made if self.bias is None else bias_add(made, self.bias, self._format)
        return made if self.activation is None else self.activation(made)


class Conv1D(_Conv):
    """A convolution of sequences."""

    spatial = 1


class Conv2D(_Conv):
    """A convolution of images."""

    spatial = 2


class Conv3D(_Conv):
    """A convolution of volumes."""

    spatial = 3


class Conv2DTranspose(_Conv):
    """The adjoint of a convolution of images."""

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.window, self.filters, channels]

    def _convolved(self, x: Any) -> Tensor:
        first = 1 if self.data_format == "channels_last" else 2
        known = x.shape.sizes
        grown = [
            self._grown(
                known[first + i]
                if known is not None and known[first + i] is not None
                else shape(x)[first + i],
                i,
            )
            for i in range(2)
        ]
        batch = known[0] if known is not None and known[0] is not None else shape(x)[0]
        whole = [batch, *grown, self.filters] if first == 1 else [batch, self.filters, *grown]
        return windows.conv2d_transpose(
            x, self.kernel, whole, self.strides, self.padding, self._format
        )

    def _grown(self, size: Any, axis: int) -> Any:
        made = size * self.strides[axis]
        return (
            made + max(self.window[axis] - self.strides[axis], 0)
            if self.padding == "VALID"
            else made
        )


class SeparableConv2D(_Conv):
    """A convolution of each channel, then one that mixes channels."""

    def __init__(
        self,
        filters: Any,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            bias_initializer=bias_initializer,
            **options,
        )
        self.depth_multiplier = depth_multiplier
        self._starts = (depthwise_initializer, pointwise_initializer)

    def build(self, input_shape: Any) -> None:
        """Make both kernels and the bias."""
        channels = self._channels(input_shape)
        inner = channels * self.depth_multiplier
        self.depthwise_kernel = self.add_variable(
            "depthwise_kernel",
            [*self.window, channels, self.depth_multiplier],
            initializer=self._starts[0],
        )
        self.pointwise_kernel = self.add_variable(
            "pointwise_kernel", [1, 1, inner, self.filters], initializer=self._starts[1]
        )
        self.bias = (
            self.add_variable("bias", [self.filters], **self._bias) if self.use_bias else None
        )

    def _convolved(self, x: Any) -> Tensor:
        strides = (
            (1, *self.strides, 1) if self.data_format == "channels_last" else (1, 1, *self.strides)
        )
        return windows.separable_conv2d(
            x,
            self.depthwise_kernel,
            self.pointwise_kernel,
            strides,
            self.padding,
            self.dilation,
            None,
            self._format,
        )


def _function(kind: type[_Conv], public: str) -> Any:
    def called(
        inputs: Any, filters: Any, kernel_size: Any, *args: Any, reuse: Any = None, **options: Any
    ) -> Tensor:
        made: Tensor = kind(filters, kernel_size, *args, _reuse=reuse, **options)(inputs)
        return made

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return {public} of inputs, with variables of its own."
    return called


conv1d, conv2d, conv3d = (_function(k, k.__name__.lower()) for k in (Conv1D, Conv2D, Conv3D))
conv2d_transpose = _function(Conv2DTranspose, "conv2d_transpose")
separable_conv2d = _function(SeparableConv2D, "separable_conv2d")
