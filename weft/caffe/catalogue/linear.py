"""Layers that multiply with matrices, look up rows of them, or are nothing but a blob."""

from __future__ import annotations

import math

from ...core.op import F
from ...core.tensor import Tensor
from .base import Layer, Shape, label_indices, layer


@layer("InnerProduct")
class InnerProduct(Layer):
    """Multiply what lies behind an axis, as one vector, with a matrix."""

    shares_in_place = False

    def setup(self, shapes: list[Shape]) -> None:
        """Make the matrix and the bias."""
        options = self.param.inner_product_param
        self.check(options.num_output > 0, "num_output must be positive")
        self.first = self.axis(options.axis, len(shapes[0]))
        inputs = math.prod(shapes[0][self.first :])
        shape = (options.num_output, inputs)
        self.add_blob("weight", shape[::-1] if options.transpose else shape, options.weight_filler)
        if options.bias_term:
            self.add_blob("bias", (options.num_output,), options.bias_filler)

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the top."""
        (shape,) = shapes
        inputs = math.prod(shape[self.first :])
        expected = self.blob_specs[0].shape[0 if self.transposed else 1]
        self.check(
            inputs == expected,
            f"Input size incompatible with inner product parameters: {inputs} vs. {expected}",
        )
        return [(*shape[: self.first], self.param.inner_product_param.num_output)]

    @property
    def transposed(self) -> bool:
        """Whether the matrix is (inputs, outputs)."""
        return bool(self.param.inner_product_param.transpose)

    def forward(self, x: Tensor) -> Tensor:
        """Return the products."""
        (shape,) = self.top_shapes([tuple(x.shape)])
        rows = F.reshape(x, (math.prod(x.shape[: self.first]), -1))
        weight = F.swapaxes(self.blob(0), 0, 1) if self.transposed else self.blob(0)
        bias = self.blob(1) if len(self.blob_specs) > 1 else None
        made = F.linear(rows, weight, bias)
        return made if tuple(made.shape) == shape else F.reshape(made, shape)


@layer("Embed")
class Embed(Layer):
    """Take rows of a table, whose numbers the bottom holds."""

    shares_in_place = False
    differentiable = ()

    def setup(self, shapes: list[Shape]) -> None:
        """Make the table and the bias."""
        options = self.param.embed_param
        self.check(options.num_output > 0, "EmbedLayer num_output must be positive.")
        self.check(options.input_dim > 0, "EmbedLayer input_dim must be positive.")
        self.add_blob("weight", (options.input_dim, options.num_output), options.weight_filler)
        if options.bias_term:
            self.add_blob("bias", (options.num_output,), options.bias_filler)

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the top."""
        return [(*shapes[0], self.param.embed_param.num_output)]

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows."""
        rows = F.embedding(self.blob(0), label_indices(x))
        return rows + self.blob(1) if len(self.blob_specs) > 1 else rows


@layer("Parameter")
class LearnedBlob(Layer):
    """A blob that is learned, as a top."""

    bottoms = (0, 0)

    def setup(self, shapes: list[Shape]) -> None:
        """Make the blob."""
        self.add_blob("weight", tuple(self.param.parameter_param.shape.dim))

    def forward(self) -> Tensor:
        """Return the blob."""
        return self.blob(0) * 1.0
