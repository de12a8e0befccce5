"""Convolutions, their transposes, and the patches that they read."""

from __future__ import annotations

import math
from typing import ClassVar

from ...core.op import F
from ...core.tensor import Tensor
from .base import MANY, Count, Layer, Shape, layer
from .windows import per_axis


class _Windowed(Layer):
    """What convolutions share: the geometry of their windows."""

    bottoms: ClassVar[Count] = (1, MANY)
    tops: ClassVar[Count] = (1, MANY)
    as_many_tops = True
    shares_in_place = False

    def read_windows(self, shape: Shape) -> None:
        """Read the geometry for bottoms of a shape."""
        options = self.param.convolution_param
        self.channel_axis = self.axis(options.axis, len(shape))
        self.spatial = len(shape) - self.channel_axis - 1
        self.check(1 <= self.spatial <= 3, f"serves 1 to 3 spatial axes. Received: {shape}")
        self.kernel = per_axis(self, options, "kernel_size", self.spatial, None)
        self.stride = per_axis(self, options, "stride", self.spatial, 1)
        self.pad = per_axis(self, options, "pad", self.spatial, 0)
        self.dilation = per_axis(self, options, "dilation", self.spatial, 1)
        for name in ("kernel", "stride", "dilation"):
            sizes = getattr(self, name)
            self.check(all(n > 0 for n in sizes), f"{name} dimensions must be nonzero: {sizes}")

    @property
    def extent(self) -> Shape:
        """How far a window reaches along each axis."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    def forward_size(self, shape: Shape) -> Shape:
        """Return how many windows a bottom has along each spatial axis."""
        sizes = shape[self.channel_axis + 1 :]
        counts = []
        for n, k, s, p in zip(sizes, self.extent, self.stride, self.pad, strict=True):
            self.check(
                n + 2 * p >= k, f"the kernel of {k} does not fit into {n} with pad {p}: {shape}"
            )
            counts.append((n + 2 * p - k) // s + 1)
        return tuple(counts)

    def as_batch(self, x: Tensor) -> Tensor:
        """Return x as (N, C, *spatial): axes before the channels are a batch together."""
        if self.channel_axis == 1:
            return x
        return F.reshape(x, (-1, *x.shape[self.channel_axis :]))

    def lead(self, shape: Shape) -> Shape:
        """Return the sizes before the channels."""
        return shape[: self.channel_axis]


class _Filtered(_Windowed):
    """A bank of filters with a bias."""

    def setup(self, shapes: list[Shape]) -> None:
        """Make filters and biases."""
        self.read_windows(shapes[0])
        options = self.param.convolution_param
        self.channels, self.groups = shapes[0][self.channel_axis], options.group
        for shape in shapes:
            self.check(
                shape[1:] == shapes[0][1:] and len(shape) == len(shapes[0]),
                f"shape mismatch - bottom[0]: {shapes[0]} vs. {shape}",
            )
        self.check(options.num_output > 0, "num_output must be positive")
        self.check(self.groups > 0, "group must be positive")
        self.check(
            self.channels % self.groups == 0,
            f"the {self.channels} channels of the bottom must be a multiple of group {self.groups}",
        )
        self.check(
            options.num_output % self.groups == 0,
            "Number of output should be multiples of group.",
        )
        self.add_blob("weight", self.filter_shape(options.num_output), options.weight_filler)
        if options.bias_term:
            self.add_blob("bias", (options.num_output,), options.bias_filler)

    def filter_shape(self, outputs: int) -> Shape:
        """Return the shape of the filters."""
        raise NotImplementedError

    def forward(self, *bottoms: Tensor) -> tuple[Tensor, ...]:
        """Return what the filters give of each bottom."""
        bias = self.blob(1) if len(self.blob_specs) > 1 else None
        return tuple(self._one(x, bias) for x in bottoms)

    def _one(self, x: Tensor, bias: Tensor | None) -> Tensor:
        made = self.compute(self.as_batch(x), bias)
        if self.channel_axis == 1:
            return made
        return F.reshape(made, (*self.lead(x.shape), *made.shape[1:]))

    def compute(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Return what the filters give of (N, C, *spatial)."""
        raise NotImplementedError


@layer("Convolution")
class Convolution(_Filtered):
    """Correlate with filters (num_output, channels / group, *kernel)."""

    def filter_shape(self, outputs: int) -> Shape:
        """Return the shape of the filters."""
        return (outputs, self.channels // self.groups, *self.kernel)

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shapes of the tops."""
        outputs = self.param.convolution_param.num_output
        return [(*self.lead(shape), outputs, *self.forward_size(shape)) for shape in shapes]

    def compute(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Return the convolution."""
        function = (F.conv1d, F.conv2d, F.conv3d)[self.spatial - 1]
        options = (self.stride, self.pad, self.dilation, self.groups)
        return function(x, self.blob(0), bias, *options)


@layer("Deconvolution")
class Deconvolution(_Filtered):
    """The transpose of a convolution, with filters (channels, num_output / group, *kernel)."""

    def filter_shape(self, outputs: int) -> Shape:
        """Return the shape of the filters."""
        return (self.channels, outputs // self.groups, *self.kernel)

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shapes of the tops."""
        return [self._top_shape(shape) for shape in shapes]

    def _top_shape(self, shape: Shape) -> Shape:
        sizes = shape[self.channel_axis + 1 :]
        grown = tuple(
            s * (n - 1) + k - 2 * p
            for n, k, s, p in zip(sizes, self.extent, self.stride, self.pad, strict=True)
        )
        self.check(all(n > 0 for n in grown), f"the pad leaves nothing: top would be {grown}")
        return (*self.lead(shape), self.param.convolution_param.num_output, *grown)

    def compute(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """Return the transposed convolution."""
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self.spatial - 1]
        options = (self.stride, self.pad, 0, self.groups, self.dilation)
        return function(x, self.blob(0), bias, *options)


@layer("Im2col")
class Im2col(_Windowed):
    """The patches that a convolution would read, as channels."""

    bottoms = (1, 1)
    tops = (1, 1)

    def setup(self, shapes: list[Shape]) -> None:
        """Read the geometry."""
        self.read_windows(shapes[0])
        self.check(self.spatial == 2, f"serves 2 spatial axes. Received: {shapes[0]}")

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the top."""
        (shape,) = shapes
        channels = shape[self.channel_axis] * math.prod(self.kernel)
        return [(*self.lead(shape), channels, *self.forward_size(shape))]

    def forward(self, x: Tensor) -> Tensor:
        """Return the patches."""
        (shape,) = self.top_shapes([tuple(x.shape)])
        columns = F.unfold_patches(
            self.as_batch(x), self.kernel, self.dilation, self.pad, self.stride
        )
        return F.reshape(columns, shape)
