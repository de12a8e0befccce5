"""Pooling, whose windows round up: the last one may stand out of the input."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.op import F
from ...core.tensor import Tensor
from ...ops.creation import tensor
from ...ops.random.draw import rand
from .base import Layer, Shape, layer
from .windows import pair

LOWEST = float(np.finfo(np.float32).min)  # what Caffe's maxima of empty windows are
Pair = tuple[int, int]


class Windows(NamedTuple):
    """Windows over height and width; `counts` of them along each."""

    kernel: Pair
    stride: Pair
    pad: Pair
    size: Pair  # of the input
    counts: Pair

    @property
    def usual(self) -> bool:
        """Tell whether all windows begin in the input, and pads are at most half a window."""
        return all((count - 1) * s < n + p and 2 * p <= k for n, k, s, p, count in self.axes())

    def axes(self) -> list[tuple[int, int, int, int, int]]:
        """Return size, kernel, stride, pad and count of each axis."""
        return list(zip(self.size, self.kernel, self.stride, self.pad, self.counts, strict=True))


def windows_of(size: Pair, kernel: Pair, stride: Pair, pad: Pair, *, up: bool = True) -> Windows:
    """Return the windows that Caffe lays over an input."""
    counts = []
    for n, k, s, p in zip(size, kernel, stride, pad, strict=True):
        room = n + 2 * p - k
        count = (-(-room // s) if up else room // s) + 1
        if any(pad) and (count - 1) * s >= n + p:  # Caffe clips only if there is some padding
            count -= 1
        counts.append(count)
    return Windows(kernel, stride, pad, size, (counts[0], counts[1]))


def max_pool(x: Tensor, windows: Windows, up: bool = True) -> Tensor:
    """Return the largest element of each window."""
    if windows.usual:
        return F.max_pool2d(x, windows.kernel, windows.stride, windows.pad, 1, up)
    filled = _filled(x, windows, LOWEST)
    return _first(F.max_pool2d(filled, windows.kernel, windows.stride), windows)


def average_pool(x: Tensor, windows: Windows, up: bool = True) -> Tensor:
    """Return the mean of each window; padding counts, what lies behind it does not."""
    if windows.usual:
        return F.avg_pool2d(x, windows.kernel, windows.stride, windows.pad, up, True)
    area = math.prod(windows.kernel)
    means = _first(F.avg_pool2d(_filled(x, windows, 0.0), windows.kernel, windows.stride), windows)
    return means * tensor(area / _areas(windows), dtype=x.dtype)


def stochastic_pool(x: Tensor, windows: Windows, training: bool) -> Tensor:
    """Return an element of each window, drawn in proportion to its value; else their mean by it."""
    patches = _patches(x, windows)
    if not training:
        tiny = float(np.finfo(np.float32).tiny)
        return F.sum(F.square(patches), 2) / (F.sum(patches, 2) + tiny)
    reached = F.cumsum(patches, 2)
    drawn = rand((*reached.shape[:2], 1, *reached.shape[3:]), dtype=x.dtype) * reached[:, :, -1:]
    place = F.sum(F.cast(F.stop_gradient(reached) < F.stop_gradient(drawn), "int64"), 2, True)
    return F.squeeze(F.take_along_axis(patches, place, 2), 2)


def _patches(x: Tensor, windows: Windows) -> Tensor:
    """Return the elements of each window, as (N, C, elements, height, width)."""
    filled = _filled(x, windows, 0.0)
    columns = F.unfold_patches(filled, windows.kernel, 1, 0, windows.stride)
    return F.reshape(columns, (*x.shape[:2], math.prod(windows.kernel), *windows.counts))


def _filled(x: Tensor, windows: Windows, value: float) -> Tensor:
    """Return x with its padding, and as much behind as the last windows need and no more."""
    around, kept = [], []
    for n, k, s, p, count in windows.axes():
        length = (count - 1) * s + k
        around.append((p, max(length - n - p, 0)))
        kept.append(slice(0, length))
    padded = F.pad(x, ((0, 0), (0, 0), *around), "constant", value)
    return padded[(slice(None), slice(None), *kept)]


def _first(x: Tensor, windows: Windows) -> Tensor:
    height, width = windows.counts
    return x[:, :, :height, :width]


def _areas(windows: Windows) -> NDArray[Any]:
    """Return how many elements count in each window; 1 for those that begin behind the padding."""
    lengths = []
    for n, k, s, p, count in windows.axes():
        start = np.arange(count) * s - p
        lengths.append(np.maximum(np.minimum(start + k, n + p) - start, 0))
    areas = lengths[0][:, None] * lengths[1]
    return np.maximum(areas, 1).astype(np.float64)


@layer("Pooling")
class Pooling(Layer):
    """MAX, AVE or STOCHASTIC pooling over windows, or over all there is (global_pooling)."""

    tops = (1, 2)
    shares_in_place = False

    def setup(self, shapes: list[Shape]) -> None:
        """Read the geometry."""
        (shape,) = shapes
        self.check(
            len(shape) == 4,
            f"Input must have 4 axes, corresponding to (num, channels, height, width): {shape}",
        )
        options = self.param.pooling_param
        self.method, self.up = options.which("pool"), options.which("round_mode") == "CEIL"
        if len(self.param.top) > 1:
            self.check(self.method == "MAX", "only MAX pooling has a second top, the mask")
        self.pad, self.stride = pair(self, options, "pad"), pair(self, options, "stride")
        if options.global_pooling:
            self._check_global()
        else:
            self._check_windows()
        self.windows(shape)

    def _check_global(self) -> None:
        options = self.param.pooling_param
        given = any(options.has(f"kernel_{end}") for end in ("size", "h", "w"))
        self.check(not given, "With Global_pooling: true Filter size cannot specified")
        self.check(
            self.pad == (0, 0) and self.stride == (1, 1),
            "With Global_pooling: true; only pad = 0 and stride = 1",
        )

    def _check_windows(self) -> None:
        options = self.param.pooling_param
        self.kernel = pair(self, options, "kernel_size")
        self.check(min(self.kernel) > 0, "Filter dimensions cannot be zero.")
        self.check(min(self.stride) > 0, "stride dimensions cannot be zero.")
        if self.pad != (0, 0):
            self.check(
                self.method != "STOCHASTIC",
                "Padding implemented only for average and max pooling.",
            )
            self.check(
                self.pad[0] < self.kernel[0] and self.pad[1] < self.kernel[1],
                f"pad {self.pad} must be smaller than the kernel {self.kernel}",
            )

    def windows(self, shape: Shape) -> Windows:
        """Return the windows over a bottom of a shape."""
        size = (shape[2], shape[3])
        kernel = size if self.param.pooling_param.global_pooling else self.kernel
        made = windows_of(size, kernel, self.stride, self.pad, up=self.up)
        self.check(min(made.counts) > 0, f"the kernel {kernel} does not fit into {shape}")
        return made

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shapes of the tops."""
        (shape,) = shapes
        return [(*shape[:2], *self.windows(shape).counts)] * max(len(self.param.top), 1)

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Return the pooled windows."""
        windows = self.windows(tuple(x.shape))
        if self.method == "AVE":
            return average_pool(x, windows, self.up)
        if self.method == "STOCHASTIC":
            return stochastic_pool(x, windows, self.training)
        if len(self.param.top) == 1:
            return max_pool(x, windows, self.up)
        return self._with_mask(x, windows)

    def _with_mask(self, x: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
        """Return maxima, and where in the plane of the bottom each was."""
        self.check(windows.usual, "the mask needs windows that begin inside of the bottom")
        options = (windows.kernel, windows.stride, windows.pad, 1, self.up, True)
        pooled, places = F.max_pool2d(x, *options)
        return pooled, F.cast(places, x.dtype)


@layer("SPP")
class SPP(Layer):
    """Pooling over grids of 1, 2 x 2, 4 x 4 ... windows, as one vector."""

    shares_in_place = False

    def setup(self, shapes: list[Shape]) -> None:
        """Check the height of the pyramid."""
        (shape,) = shapes
        options = self.param.spp_param
        self.check(len(shape) == 4, f"Input must have 4 axes: {shape}")
        self.check(min(shape[2:]) > 0, "Input dimensions cannot be zero.")
        self.check(0 < options.pyramid_height <= 12, "pyramid_height must be from 1 to 12")
        self.check(options.which("pool") != "STOCHASTIC", "serves MAX and AVE")
        self.levels(shape)

    def levels(self, shape: Shape) -> list[Windows]:
        """Return the windows of each level."""
        made = []
        for level in range(self.param.spp_param.pyramid_height):
            bins = 2**level
            kernel = (-(-shape[2] // bins), -(-shape[3] // bins))
            pad = ((kernel[0] * bins - shape[2] + 1) // 2, (kernel[1] * bins - shape[3] + 1) // 2)
            self.check(
                pad[0] < kernel[0] and pad[1] < kernel[1],
                f"pyramid_height {level + 1} is too high for {shape}",
            )
            made.append(windows_of((shape[2], shape[3]), kernel, kernel, pad))
        return made

    def forward(self, x: Tensor) -> Tensor:
        """Return the pooled levels beside each other."""
        pool = max_pool if self.param.spp_param.which("pool") == "MAX" else average_pool
        levels = [pool(x, windows) for windows in self.levels(tuple(x.shape))]
        return F.concat([F.reshape(level, (x.shape[0], -1)) for level in levels], 1)
