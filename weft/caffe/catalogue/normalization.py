"""Normalisation, and the scales and shifts that follow it."""

from __future__ import annotations

import math
from typing import Any

from ...core.modes import no_grad
from ...core.op import F
from ...core.tensor import Tensor
from ..message import FillerParameter, Message
from .base import Layer, Shape, layer
from .pooling import average_pool, windows_of


@layer("LRN")
class LRN(Layer):
    """Divide by the activity of neighbours: channels beside, or places around."""

    def setup(self, shapes: list[Shape]) -> None:
        """Check the size."""
        size = self.param.lrn_param.local_size
        self.check(size % 2 == 1, f"LRN only supports odd values for local_size. Received: {size}")
        self.check(len(shapes[0]) == 4, f"Input must have 4 axes: {shapes[0]}")

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the bottom."""
        return shapes

    def forward(self, x: Tensor) -> Tensor:
        """Return x over its neighbours' activity."""
        options = self.param.lrn_param
        size = options.local_size
        if options.which("norm_region") == "ACROSS_CHANNELS":
            return F.local_response_norm(x, size, options.alpha, options.beta, options.k)
        around = ((size - 1) // 2,) * 2
        windows = windows_of((x.shape[2], x.shape[3]), (size, size), (1, 1), around)
        activity = average_pool(F.square(x), windows)  # Caffe takes no k here: it is 1
        return x * (activity * options.alpha + 1.0) ** -options.beta


@layer("BatchNorm")
class BatchNorm(Layer):
    """Normalise each channel; its blobs are sums of means, of variances, and of their weights.

    In training statistics are those of the batch, else what has been gathered, unless
    use_global_stats says.
    """

    def setup(self, shapes: list[Shape]) -> None:
        """Make the statistics."""
        (shape,) = shapes
        self.channels = 1 if len(shape) == 1 else shape[1]
        self.add_statistic("mean", (self.channels,))
        self.add_statistic("variance", (self.channels,))
        self.add_statistic("scale_factor", (1,))

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the bottom."""
        return shapes

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        axes = tuple(i for i in range(x.ndim) if i != 1 or x.ndim == 1)
        if self.use_global_stats():
            mean, variance = self._gathered()
        else:
            mean, variance = F.mean(x, axes), F.mean(F.square(self._centred(x, axes)), axes)
            self._gather(mean, variance, math.prod(x.shape) / self.channels)
        spread = (1, self.channels, *(1,) * (x.ndim - 2)) if x.ndim > 1 else (1,)
        scale = F.rsqrt(variance + self.param.batch_norm_param.eps)
        return (x - F.reshape(mean, spread)) * F.reshape(scale, spread)

    def use_global_stats(self) -> bool:
        """Tell whether to use what has been gathered: as the layer says, or unless it trains."""
        options = self.param.batch_norm_param
        given = options.has("use_global_stats")
        return bool(options.use_global_stats) if given else not self.training

    def _centred(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return x - F.mean(x, axes, True)

    def _gathered(self) -> tuple[Any, Any]:
        weight: Any = self.blob(2)
        factor = F.where(weight == 0, 0.0, 1.0 / F.where(weight == 0, 1.0, weight))
        return self.blob(0) * factor, self.blob(1) * factor

    def _gather(self, mean: Any, variance: Any, count: float) -> None:
        """Add the statistics of a batch to the running sums, whose past fades."""
        fraction = self.param.batch_norm_param.moving_average_fraction
        unbiased = count / (count - 1) if count > 1 else 1.0
        with no_grad():
            for index, new in ((0, mean), (1, variance * unbiased), (2, 1.0)):
                sums = self.blob(index)
                sums.copy_(sums * fraction + (F.stop_gradient(new) if index < 2 else new))


@layer("MVN")
class MVN(Layer):
    """Subtract the mean of each channel, or of each example, and divide by the deviation."""

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the bottom."""
        return shapes

    def setup(self, shapes: list[Shape]) -> None:
        """Check the axes."""
        self.check(len(shapes[0]) == 4, f"Input must have 4 axes: {shapes[0]}")

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        options = self.param.mvn_param
        axes = (1, 2, 3) if options.across_channels else (2, 3)
        centred = x - F.mean(x, axes, True)
        if not options.normalize_variance:
            return centred
        return centred / (F.sqrt(F.mean(F.square(centred), axes, True)) + options.eps)


class _Spread(Layer):
    """A blob, learned or a second bottom, that is laid along some axes of the first bottom."""

    bottoms = (1, 2)

    def options(self) -> Message:
        """Return the parameters of the layer."""
        raise NotImplementedError

    def begin(self, shapes: list[Shape], start: float) -> None:
        """Check the second bottom, or make the blob, filled with `start` by default."""
        options = self.options()
        shape = shapes[0]
        if len(shapes) == 2:
            self.first = self._first(shapes)
            inner = shapes[1]
            self.check(
                shape[self.first : self.first + len(inner)] == inner,
                f"dimension mismatch between bottom[0] {shape} and bottom[1] {inner} "
                f"from axis {self.first}",
            )
            self.blob_shape = inner
            return
        self.first = self.axis(options.axis, len(shape)) if options.num_axes != 0 else 0
        last = len(shape) if options.num_axes == -1 else self.first + options.num_axes
        self.check(
            options.num_axes >= -1, "num_axes must be non-negative, or -1 to extend to the end"
        )
        self.check(
            last <= len(shape),
            f"blob's shape extends past bottom[0]'s shape when applied starting at axis "
            f"{self.first}: {shape}",
        )
        self.blob_shape = shape[self.first : last]
        filler = options.filler if options.has("filler") else FillerParameter(value=start)
        self.add_blob("weight", self.blob_shape, filler)

    def _first(self, shapes: list[Shape]) -> int:
        return 0 if not shapes[1] else self.axis(self.options().axis, len(shapes[0]))

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the first bottom."""
        return shapes[:1]

    def spread(self, value: Tensor, dims: int) -> Tensor:
        """Return a blob in a shape that broadcasts with the first bottom."""
        after = dims - self.first - len(self.blob_shape)
        return F.reshape(value, ((1,) * self.first + self.blob_shape + (1,) * after))


@layer("Scale")
class Scale(_Spread):
    """Multiply, and with bias_term add."""

    def options(self) -> Message:
        """Return the parameters of the layer."""
        return self.param.scale_param

    def setup(self, shapes: list[Shape]) -> None:
        """Make scale and shift."""
        self.begin(shapes, 1.0)
        if self.options().bias_term:
            self.add_blob("bias", self.blob_shape, self.options().bias_filler)

    def forward(self, x: Tensor, scale: Tensor | None = None) -> Tensor:
        """Return x scaled."""
        made = x * self.spread(self.blob(0) if scale is None else scale, x.ndim)
        if not self.options().bias_term:
            return made
        return made + self.spread(self.blob(len(self.blob_specs) - 1), x.ndim)


@layer("Bias")
class Bias(_Spread):
    """Add."""

    def options(self) -> Message:
        """Return the parameters of the layer."""
        return self.param.bias_param

    def setup(self, shapes: list[Shape]) -> None:
        """Make the shift."""
        self.begin(shapes, 0.0)

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x shifted."""
        return x + self.spread(self.blob(0) if bias is None else bias, x.ndim)
