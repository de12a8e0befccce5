"""Convolutions and pooling: channels last by default, padding "SAME" or "VALID"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.op import F
from ..array_ops import shape_tensor
from ..environment import whole_numbers
from ..recording import Tensor, convert_to_tensor, pair, record


class Layout:
    """Where channels stand, and how windows move."""

    def __init__(
        self, spatial: int, data_format: Any, padding: Any, strides: Any, dilations: Any = None
    ) -> None:
        self.spatial = spatial
        formats = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}[spatial]
        chosen = formats[0] if data_format is None else data_format
        if chosen not in formats:
            raise ValueError(
                f"data_format must be one of {', '.join(formats)}. Received: {data_format!r}"
            )
        self.last = chosen == formats[0]
        self.padding = padding
        if isinstance(padding, str):
            self.padding = padding.upper()
            if self.padding not in ("SAME", "VALID"):
                raise ValueError(
                    f"Value for attr 'padding' of \"{padding}\" is "
                    'not in the list of allowed values: "SAME", "VALID"'
                )
        self.strides = self.sizes(strides, "strides")
        self.dilations = self.sizes(1 if dilations is None else dilations, "dilations")

    def sizes(self, given: Any, what: str) -> tuple[int, ...]:
        """Return settings for the axes of space; those of examples and channels must be 1."""
        if given is None:
            given = 1
        if isinstance(given, int):
            return (given,) * self.spatial
        numbers = tuple(int(x) for x in given)
        if len(numbers) == 1:
            return numbers * self.spatial
        if len(numbers) == self.spatial:
            return numbers
        if len(numbers) != self.spatial + 2:
            raise ValueError(
                f"{what} should be of length 1, {self.spatial} or {self.spatial + 2} but was "
                f"{len(numbers)}"
            )
        outer = (numbers[0], numbers[-1 if self.last else 1])
        if outer != (1, 1):
            raise ValueError(
                f"Current implementation does not yet support {what} in the batch and depth "
                "dimensions."
            )
        return numbers[1:-1] if self.last else numbers[2:]

    def inward(self, x: Any) -> Any:
        """Return a value with channels first."""
        if x.ndim != self.spatial + 2:
            raise ValueError(f"Shape must be rank {self.spatial + 2} but is rank {x.ndim}")
        return F.moveaxis(x, -1, 1) if self.last else x

    def outward(self, x: Any) -> Any:
        """Return a value with channels where the program has them."""
        return F.moveaxis(x, 1, -1) if self.last else x

    def pairs(self, size: Sequence[Any], kernel: Sequence[int]) -> Any:
        """Return the padding before and after each axis of space."""
        if self.padding == "VALID":
            return ((0, 0),) * self.spatial
        if not isinstance(self.padding, str):
            whole = [tuple(p) for p in self.padding]
            return tuple(whole[1:-1] if self.last else whole[2:])
        found = []
        for n, k, s, d in zip(size, kernel, self.strides, self.dilations, strict=True):
            if s == 1 or not isinstance(n, int):
                total = (k - 1) * d if s == 1 else max((k - 1) * d + 1 - s, 0)
            else:
                total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
            found.append((total // 2, total - total // 2))
        return tuple(found)


def _weights(w: Any, spatial: int) -> Any:
    """Return filters (*window, in, out) as Weft has them: (out, in, *window)."""
    if w.ndim != spatial + 2:
        raise ValueError(f"Shape must be rank {spatial + 2} but is rank {w.ndim}")
    return F.permute_dims(w, (spatial + 1, spatial, *range(spatial)))


def convolved(layout: Layout, x: Any, w: Any, groups: int = 1) -> Any:
    """Return the convolution of Weft's tensors."""
    inner = layout.inward(x)
    channels = inner.shape[1]
    if isinstance(channels, int) and channels != w.shape[layout.spatial] * groups:
        raise ValueError(
            f"Dimensions must be equal, but are {channels} and {w.shape[layout.spatial] * groups}"
        )
    pairs = layout.pairs(inner.shape[2:], w.shape[: layout.spatial])
    made = F.conv(
        inner, _weights(w, layout.spatial), layout.strides, pairs, layout.dilations, groups
    )
    return layout.outward(made)


def _conv(
    type: str, spatial: int, input: Any, filter: Any, layout: Layout, name: str | None
) -> Tensor:
    made: Tensor = record(
        type, lambda x, w: convolved(layout, x, w), pair(type, input, filter), name=name
    )
    return made


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: Any = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Return the convolution of images (N, H, W, C) with filters (h, w, in, out)."""
    weights = filter if filters is None else filters
    if padding is None or strides is None:
        raise TypeError("conv2d() missing 1 required positional argument: 'padding' or 'strides'")
    return _conv(
        "Conv2D", 2, input, weights, Layout(2, data_format, padding, strides, dilations), name
    )


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: Any = None,
    data_format: Any = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Return the convolution of sequences (N, W, C) with filters (w, in, out)."""
    formats = {"NHWC": "NWC", "NCHW": "NCW"}
    layout = Layout(1, formats.get(data_format, data_format), padding, stride, dilations)
    return _conv("Conv1D", 1, value if input is None else input, filters, layout, name or "conv1d")


def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: Any = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """Return the convolution of volumes (N, D, H, W, C) with filters (d, h, w, in, out)."""
    weights = filter if filters is None else filters
    return _conv(
        "Conv3D", 3, input, weights, Layout(3, data_format, padding, strides, dilations), name
    )


def convolution(
    input: Any,
    filter: Any,
    padding: Any,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: Any = None,
) -> Tensor:
    """Return the convolution over one to three axes."""
    x = convert_to_tensor(input)
    spatial = (convert_to_tensor(filter).shape.ndims or 4) - 2
    return _conv(
        "Conv",
        spatial,
        x,
        filter,
        Layout(spatial, data_format, padding, strides, dilation_rate),
        name or "convolution",
    )


def atrous_conv2d(
    value: Any, filters: Any, rate: int, padding: Any, name: str | None = None
) -> Tensor:
    """Return the convolution with filters that have gaps."""
    return _conv("AtrousConv2D", 2, value, filters, Layout(2, None, padding, 1, rate), name)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Return the convolution of each channel with filters (h, w, channels, times) of its own."""
    layout = Layout(2, data_format, padding, strides, rate if dilations is None else dilations)

    def compute(x: Any, w: Any) -> Any:
        height, width, channels, times = w.shape
        return convolved(layout, x, F.reshape(w, (height, width, 1, channels * times)), channels)

    made: Tensor = record(
        "DepthwiseConv2dNative",
        compute,
        pair("DepthwiseConv2d", input, filter),
        name=name or "depthwise",
    )
    return made


depthwise_conv2d_native = depthwise_conv2d


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Return a convolution of each channel, then one that mixes channels."""
    between = depthwise_conv2d(
        input, depthwise_filter, strides, padding, rate, None, data_format, dilations
    )
    return conv2d(
        between,
        pointwise_filter,
        (1, 1, 1, 1),
        "VALID",
        data_format=data_format,
        name=name or "separable_conv2d",
    )


def _transposed(
    type: str,
    spatial: int,
    value: Any,
    filter: Any,
    output_shape: Any,
    layout: Layout,
    name: str | None,
) -> Tensor:
    def compute(y: Any, w: Any, to: Any) -> Any:
        sizes = whole_numbers(to)
        size = sizes[1:-1] if layout.last else sizes[2:]
        pairs = layout.pairs(size, w.shape[:spatial])
        inner = layout.inward(y)
        weights = F.permute_dims(w, (spatial + 1, spatial, *range(spatial)))  # of the forward one
        made = F.conv_input_grad(inner, weights, size, layout.strides, pairs, layout.dilations)
        return layout.outward(made)

    x, w = pair(type, value, filter)
    made: Tensor = record(type, compute, [x, w, shape_tensor(output_shape)], static=[2], name=name)
    return made


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: Any = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Return the adjoint of conv2d: filters are (h, w, out, in)."""
    layout = Layout(2, data_format, padding, strides, dilations)
    given = value if input is None else input
    return _transposed(
        "Conv2DTranspose",
        2,
        given,
        filter if filters is None else filters,
        output_shape,
        layout,
        name or "conv2d_transpose",
    )


def conv3d_transpose(
    value: Any,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: Any = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Return the adjoint of conv3d."""
    return _transposed(
        "Conv3DTranspose",
        3,
        value,
        filter,
        output_shape,
        Layout(3, data_format, padding, strides),
        name,
    )
