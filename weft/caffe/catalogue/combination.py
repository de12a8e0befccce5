"""Layers that reduce, combine and choose values."""

from __future__ import annotations

from functools import reduce

from ...core.op import F
from ...core.tensor import Tensor
from .base import MANY, Layer, Shape, layer


@layer("Eltwise")
class Eltwise(Layer):
    """Add (with coefficients), multiply or take the largest of bottoms of one shape."""

    bottoms = (2, MANY)

    def setup(self, shapes: list[Shape]) -> None:
        """Check coefficients and shapes."""
        options = self.param.eltwise_param
        self.operation, coefficients = options.which("operation"), list(options.coeff)
        self.check(
            len(coefficients) in {0, len(shapes)},
            "Eltwise Layer takes one coefficient per bottom blob.",
        )
        self.check(
            not (self.operation == "PROD" and coefficients),
            "Eltwise layer only takes coefficients for summation.",
        )
        for index, shape in enumerate(shapes):
            self.check(
                shape == shapes[0],
                f"bottom[0]: {shapes[0]}, bottom[{index}]: {shape}; shapes must be equal",
            )
        self.coefficients = coefficients or [1.0] * len(shapes)

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the bottoms."""
        return shapes[:1]

    def forward(self, *bottoms: Tensor) -> Tensor:
        """Return the combination."""
        if self.operation == "PROD":
            return reduce(lambda a, b: a * b, bottoms)
        if self.operation == "MAX":
            first = F.where(bottoms[0] > bottoms[1], bottoms[0], bottoms[1])
            return reduce(lambda a, b: F.where(b > a, b, a), bottoms[2:], first)
        scaled = [x if c == 1 else x * c for x, c in zip(bottoms, self.coefficients, strict=True)]
        return reduce(lambda a, b: a + b, scaled)


@layer("Reduction")
class Reduction(Layer):
    """Reduce all axes from one on to a number."""

    def setup(self, shapes: list[Shape]) -> None:
        """Find the axes."""
        (shape,) = shapes
        axis = self.param.reduction_param.axis
        self.first = self.axis(axis, len(shape)) if shape else 0

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the top."""
        return [shapes[0][: self.first]]

    def forward(self, x: Tensor) -> Tensor:
        """Return the reduction, times the coefficient."""
        options = self.param.reduction_param
        axes = tuple(range(self.first, x.ndim))
        prepared = {"ASUM": F.abs, "SUMSQ": F.square}.get(options.which("operation"), _as_it_is)(x)
        reduced = (F.mean if options.which("operation") == "MEAN" else F.sum)(prepared, axes)
        return reduced if options.coeff == 1 else reduced * options.coeff


def _as_it_is(x: Tensor) -> Tensor:
    return x


@layer("Softmax")
class Softmax(Layer):
    """Probabilities along an axis."""

    def setup(self, shapes: list[Shape]) -> None:
        """Find the axis."""
        self.along = self.axis(self.param.softmax_param.axis, len(shapes[0]))

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the bottom."""
        return shapes

    def forward(self, x: Tensor) -> Tensor:
        """Return the probabilities."""
        return F.softmax(x, self.along)
