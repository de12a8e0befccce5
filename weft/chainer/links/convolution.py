"""Convolutions and their transposes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from .. import initializers as init
from ..functions import activation, connection
from ..link import ChainList, Link
from ..utils.sizes import spatial
from ..variable import Parameter, Variable


class ConvolutionND(Link):
    """A convolution over so many axes; the number of input channels may come later (None)."""

    def __init__(  # noqa: PLR0913, PLR0917  (Chainer's arguments, in its order)
        self,
        ndim: int,
        in_channels: int | None,
        out_channels: int | None,
        ksize: Any = None,
        stride: Any = 1,
        pad: Any = 0,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
        cover_all: bool = False,
        dilate: Any = 1,
        groups: int = 1,
    ) -> None:
        super().__init__()
        if ksize is None:
            out_channels, ksize, in_channels = in_channels, out_channels, None
        self.ndim, self.out_channels = ndim, out_channels
        self.ksize, self.stride = spatial(ksize, ndim), spatial(stride, ndim)
        self.pad, self.dilate = spatial(pad, ndim), spatial(dilate, ndim)
        self.cover_all, self.groups = cover_all, int(groups)
        with self.init_scope():
            self.W = Parameter(init.chosen(initialW, init.LeCunNormal()))
            if in_channels is not None:
                self._initialize_params(in_channels)
            self.b = None if nobias else Parameter(init.chosen(initial_bias, 0.0), out_channels)

    def _initialize_params(self, in_channels: int) -> None:
        if in_channels % self.groups or (self.out_channels or 0) % self.groups:
            raise ValueError("the numbers of channels must be divisible by that of groups")
        self.W.initialize((self.out_channels, in_channels // self.groups, *self.ksize))

    def forward(self, x: Any) -> Variable:
        """Return the convolution of x."""
        if not self.W.is_initialized:
            self._initialize_params(x.shape[1])
        return connection.convolution_nd(
            x, self.W, self.b, self.stride, self.pad, self.cover_all, self.dilate, self.groups
        )


class Convolution1D(ConvolutionND):
    """A convolution over one axis."""

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int | None,
        ksize: Any = None,
        *args: Any,
        **options: Any,
    ) -> None:
        super().__init__(1, in_channels, out_channels, ksize, *args, **options)


class Convolution2D(ConvolutionND):
    """A convolution over images."""

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int | None,
        ksize: Any = None,
        stride: Any = 1,
        pad: Any = 0,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
        *,
        dilate: Any = 1,
        groups: int = 1,
        **_: Any,
    ) -> None:
        super().__init__(
            2,
            in_channels,
            out_channels,
            ksize,
            stride,
            pad,
            nobias,
            initialW,
            initial_bias,
            False,
            dilate,
            groups,
        )


class Convolution3D(ConvolutionND):
    """A convolution over three axes."""

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int | None,
        ksize: Any = None,
        *args: Any,
        **options: Any,
    ) -> None:
        super().__init__(3, in_channels, out_channels, ksize, *args, **options)


class DilatedConvolution2D(ConvolutionND):
    """A convolution over images whose filters have gaps."""

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int | None,
        ksize: Any = None,
        stride: Any = 1,
        pad: Any = 0,
        dilate: Any = 1,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
    ) -> None:
        super().__init__(
            2,
            in_channels,
            out_channels,
            ksize,
            stride,
            pad,
            nobias,
            initialW,
            initial_bias,
            False,
            dilate,
        )


class DeconvolutionND(Link):
    """A transposed convolution over so many axes."""

    def __init__(  # noqa: PLR0913, PLR0917  (likewise)
        self,
        ndim: int,
        in_channels: int | None,
        out_channels: int | None,
        ksize: Any = None,
        stride: Any = 1,
        pad: Any = 0,
        nobias: bool = False,
        outsize: Any = None,
        initialW: Any = None,
        initial_bias: Any = None,
        dilate: Any = 1,
        groups: int = 1,
    ) -> None:
        super().__init__()
        if ksize is None:
            out_channels, ksize, in_channels = in_channels, out_channels, None
        self.ndim, self.out_channels, self.outsize = ndim, out_channels, outsize
        self.ksize, self.stride = spatial(ksize, ndim), spatial(stride, ndim)
        self.pad, self.dilate, self.groups = spatial(pad, ndim), spatial(dilate, ndim), int(groups)
        with self.init_scope():
            self.W = Parameter(init.chosen(initialW, init.LeCunNormal()))
            if in_channels is not None:
                self._initialize_params(in_channels)
            self.b = None if nobias else Parameter(init.chosen(initial_bias, 0.0), out_channels)

    def _initialize_params(self, in_channels: int) -> None:
        self.W.initialize((in_channels, (self.out_channels or 0) // self.groups, *self.ksize))

    def forward(self, x: Any) -> Variable:
        """Return the transposed convolution of x."""
        if not self.W.is_initialized:
            self._initialize_params(x.shape[1])
        return connection.deconvolution_nd(
            x, self.W, self.b, self.stride, self.pad, self.outsize, self.dilate, self.groups
        )


class Deconvolution1D(DeconvolutionND):
    """A transposed convolution over one axis."""

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int | None,
        ksize: Any = None,
        *args: Any,
        **options: Any,
    ) -> None:
        super().__init__(1, in_channels, out_channels, ksize, *args, **options)


class Deconvolution2D(DeconvolutionND):
    """A transposed convolution over images."""

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int | None,
        ksize: Any = None,
        *args: Any,
        **options: Any,
    ) -> None:
        super().__init__(2, in_channels, out_channels, ksize, *args, **options)


class Deconvolution3D(DeconvolutionND):
    """A transposed convolution over three axes."""

    def __init__(
        self,
        in_channels: int | None,
        out_channels: int | None,
        ksize: Any = None,
        *args: Any,
        **options: Any,
    ) -> None:
        super().__init__(3, in_channels, out_channels, ksize, *args, **options)


class DepthwiseConvolution2D(Link):
    """A convolution of each channel with filters of its own."""

    def __init__(
        self,
        in_channels: int | None,
        channel_multiplier: int,
        ksize: Any,
        stride: Any = 1,
        pad: Any = 0,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
    ) -> None:
        super().__init__()
        self.ksize, self.stride, self.pad = spatial(ksize, 2), spatial(stride, 2), spatial(pad, 2)
        self.channel_multiplier, self.nobias = channel_multiplier, nobias
        with self.init_scope():
            self.W = Parameter(init.chosen(initialW, init.LeCunNormal()))
            self.b = None if nobias else Parameter(init.chosen(initial_bias, 0.0))
        if in_channels is not None:
            self._initialize_params(in_channels)

    def _initialize_params(self, in_channels: int) -> None:
        self.W.initialize((self.channel_multiplier, in_channels, *self.ksize))
        if self.b is not None:
            self.b.initialize((self.channel_multiplier * in_channels,))

    def forward(self, x: Any) -> Variable:
        """Return the convolution of x."""
        if not self.W.is_initialized:
            self._initialize_params(x.shape[1])
        return connection.depthwise_convolution_2d(x, self.W, self.b, self.stride, self.pad)


class LocalConvolution2D(Link):
    """A convolution whose filters differ from place to place."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        in_size: Any,
        ksize: Any,
        stride: Any = 1,
        nobias: bool = False,
        initialW: Any = None,
        initial_bias: Any = None,
    ) -> None:
        super().__init__()
        self.stride = spatial(stride, 2)
        k = spatial(ksize, 2)
        out = tuple(
            (n - size) // s + 1
            for n, size, s in zip(spatial(in_size, 2), k, self.stride, strict=True)
        )
        with self.init_scope():
            shape = (out_channels, *out, in_channels, *k)
            self.W = Parameter(init.chosen(initialW, init.LeCunNormal()), shape)
            self.b = (
                None if nobias else Parameter(init.chosen(initial_bias, 0.0), (out_channels, *out))
            )

    def forward(self, x: Any) -> Variable:
        """Return the convolution of x."""
        return connection.local_convolution_2d(x, self.W, self.b, self.stride)


class MLPConvolution2D(ChainList):
    """A convolution followed by convolutions of one place, with activations between."""

    def __init__(
        self,
        in_channels: int | None,
        out_channels: Any,
        ksize: Any,
        stride: Any = 1,
        pad: Any = 0,
        activation: Any = activation.relu,
        conv_init: Any = None,
        bias_init: Any = None,
    ) -> None:
        made = {"initialW": conv_init, "initial_bias": bias_init}
        convs = [Convolution2D(in_channels, out_channels[0], ksize, stride, pad, **made)]
        for before, after in pairwise(out_channels):
            convs.append(Convolution2D(before, after, 1, **made))
        super().__init__(*convs)
        self.activation = activation

    def forward(self, x: Any) -> Any:
        """Return the result of all convolutions."""
        for index, conv in enumerate(self):
            x = conv(x)
            x = self.activation(x) if index + 1 < len(self) else x
        return x
