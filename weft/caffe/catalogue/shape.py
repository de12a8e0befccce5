"""Layers that move, join, cut and choose elements."""

from __future__ import annotations

import math

from ...core.op import F
from ...core.tensor import Tensor
from .base import MANY, Layer, Shape, label_indices, layer


@layer("Concat")
class Concat(Layer):
    """Join bottoms along an axis."""

    bottoms = (1, MANY)

    def setup(self, shapes: list[Shape]) -> None:
        """Check that all other axes are equal."""
        options = self.param.concat_param
        old = options.has("concat_dim")
        self.check(
            not (old and options.has("axis")),
            "Either axis or concat_dim should be specified; not both.",
        )
        dims = len(shapes[0])
        self.along = self.axis(options.concat_dim if old else options.axis, dims)
        for shape in shapes[1:]:
            self.check(len(shape) == dims, "All inputs must have the same #axes.")
            same = all(
                a == b
                for i, (a, b) in enumerate(zip(shapes[0], shape, strict=True))
                if i != self.along
            )
            self.check(
                same, f"All inputs must have the same shape, except at concat_axis: {shapes}"
            )

    def forward(self, *bottoms: Tensor) -> Tensor:
        """Return the bottoms joined."""
        return bottoms[0] if len(bottoms) == 1 else F.concat(list(bottoms), self.along)


@layer("Slice")
class Slice(Layer):
    """Cut a bottom along an axis: at slice points, or into equal parts."""

    tops = (1, MANY)

    def setup(self, shapes: list[Shape]) -> None:
        """Find where to cut."""
        (shape,) = shapes
        options = self.param.slice_param
        old = options.has("slice_dim")
        self.check(
            not (old and options.has("axis")),
            "Either axis or slice_dim should be specified; not both.",
        )
        self.along = self.axis(options.slice_dim if old else options.axis, len(shape))
        size, tops = shape[self.along], len(self.param.top)
        points = list(options.slice_point)
        if not points:
            self.check(
                size % tops == 0,
                f"Number of top blobs ({tops}) should evenly divide input slice axis ({size})",
            )
            points = [size // tops * i for i in range(1, tops)]
        self.check(len(points) == tops - 1, f"{tops} tops need {tops - 1} slice points: {points}")
        self.bounds = [0, *points, size]
        self.check(
            all(a < b for a, b in zip(self.bounds, self.bounds[1:], strict=False)) or tops == 1,
            f"slice points must grow and lie inside of the axis of {size}: {points}",
        )

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the parts."""
        before = (slice(None),) * self.along
        return tuple(
            x[(*before, slice(a, b))] for a, b in zip(self.bounds, self.bounds[1:], strict=False)
        )


@layer("Split")
class Split(Layer):
    """The bottom, as often as there are tops; gradients are added."""

    tops = (1, MANY)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the bottom several times."""
        return (x,) * len(self.param.top)


@layer("Silence")
class Silence(Layer):
    """Take bottoms that nobody else wants."""

    bottoms = (1, MANY)
    tops = (0, 0)

    def forward(self, *bottoms: Tensor) -> tuple[Tensor, ...]:
        """Return nothing."""
        return ()


@layer("Flatten")
class Flatten(Layer):
    """Make one axis of several."""

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the top."""
        (shape,) = shapes
        options = self.param.flatten_param
        first = self.axis(options.axis, len(shape))
        last = self.axis(options.end_axis, len(shape), "end_axis")
        self.check(first <= last, f"axis {first} must not lie behind end_axis {last}")
        return [(*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])]

    def forward(self, x: Tensor) -> Tensor:
        """Return x flattened."""
        return F.reshape(x, self.top_shapes([tuple(x.shape)])[0])


@layer("Reshape")
class Reshape(Layer):
    """Give some axes another shape: 0 keeps a size, -1 is what is left."""

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the top."""
        (shape,) = shapes
        options = self.param.reshape_param
        dims = list(options.shape.dim)
        first = options.axis if options.axis >= 0 else len(shape) + options.axis + 1
        self.check(0 <= first <= len(shape), f"axis {options.axis} out of range for {shape}")
        self.check(options.num_axes >= -1, "num_axes must be >= 0, or -1 for all")
        last = len(shape) if options.num_axes == -1 else first + options.num_axes
        self.check(last <= len(shape), f"end_axis = axis + num_axes is out of range for {shape}")
        self.check(dims.count(-1) <= 1, f"new shape contains multiple -1 dims: {dims}")
        self.check(all(n >= -1 for n in dims), f"sizes must not be negative: {dims}")
        copied = [i for i, n in enumerate(dims) if n == 0]
        self.check(
            all(first + i < len(shape) for i in copied),
            f"new shape contains a 0, but there is no corresponding bottom axis to copy: {dims}",
        )
        made = [shape[first + i] if n == 0 else n for i, n in enumerate(dims)]
        return [self._settled(shape, first, last, made)]

    def _settled(self, shape: Shape, first: int, last: int, made: list[int]) -> Shape:
        count = math.prod(shape[first:last])
        known = math.prod(n for n in made if n != -1)
        if -1 in made:
            self.check(
                known and count % known == 0,
                f"bottom count ({count}) must be divisible by the product of the specified "
                f"dimensions ({known})",
            )
            made = [count // known if n == -1 else n for n in made]
        self.check(
            math.prod(made) == count,
            f"output count must match input count: {tuple(made)} against {shape[first:last]}",
        )
        return (*shape[:first], *made, *shape[last:])

    def forward(self, x: Tensor) -> Tensor:
        """Return x in its new shape."""
        return F.reshape(x, self.top_shapes([tuple(x.shape)])[0])


@layer("Tile")
class Tile(Layer):
    """Repeat a bottom along an axis."""

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the top."""
        (shape,) = shapes
        options = self.param.tile_param
        self.check(options.tiles > 0, "Number of tiles must be positive.")
        axis = self.axis(options.axis, len(shape))
        return [(*shape[:axis], shape[axis] * options.tiles, *shape[axis + 1 :])]

    def forward(self, x: Tensor) -> Tensor:
        """Return x repeated."""
        options = self.param.tile_param
        axis = self.axis(options.axis, x.ndim)
        return F.tile(x, tuple(options.tiles if i == axis else 1 for i in range(x.ndim)))


@layer("Crop")
class Crop(Layer):
    """Cut the first bottom to the sizes of the second, from an axis on, at offsets."""

    bottoms = (2, 2)
    differentiable = (0,)

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the top."""
        shape, wanted = shapes
        first = self.axis(self.param.crop_param.axis, len(shape))
        self.check(len(wanted) == len(shape), f"both bottoms need the same axes: {shapes}")
        for axis, offset in enumerate(self.offsets(len(shape))):
            self.check(
                axis < first or shape[axis] - offset >= wanted[axis],
                f"the crop for dimension {axis} is out-of-bounds with size {wanted[axis]} and "
                f"offset {offset}",
            )
        return [(*shape[:first], *wanted[first:])]

    def offsets(self, dims: int) -> list[int]:
        """Return the offset along each axis."""
        options = self.param.crop_param
        first = self.axis(options.axis, dims)
        given = list(options.offset)
        self.check(
            len(given) in {0, 1, dims - first},
            "number of offset values specified must be equal to the number of dimensions "
            f"following axis: {given}",
        )
        inner = given if len(given) > 1 else (given or [0]) * (dims - first)
        return [0] * first + inner

    def forward(self, x: Tensor, like: Tensor) -> Tensor:
        """Return the part of x."""
        (shape,) = self.top_shapes([tuple(x.shape), tuple(like.shape)])
        starts = self.offsets(x.ndim)
        return x[tuple(slice(a, a + n) for a, n in zip(starts, shape, strict=True))]


@layer("Filter")
class Filter(Layer):
    """Keep the examples whose number in the last bottom is not 0."""

    bottoms = (2, MANY)
    tops = (1, MANY)

    def setup(self, shapes: list[Shape]) -> None:
        """Check the selector."""
        *kept, selector = shapes
        self.check(len(self.param.top) == len(kept), "tops are the bottoms but the last one")
        self.check(
            math.prod(selector) == (selector[0] if selector else 1),
            f"Selector blob must have all singleton dimensions except the first: {selector}",
        )
        for shape in kept:
            self.check(
                shape and selector and shape[0] == selector[0],
                f"Each bottom should have the same 0th dimension as the selector blob: {shapes}",
            )

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shapes that tops have at most."""
        return shapes[:-1]

    def forward(self, *bottoms: Tensor) -> tuple[Tensor, ...]:
        """Return what is kept."""
        *kept, selector = bottoms
        (rows,) = F.nonzero(F.reshape(selector, (-1,)) != 0)
        return tuple(F.take(x, rows, 0) for x in kept)


@layer("BatchReindex")
class BatchReindex(Layer):
    """Take examples by the numbers that the second bottom holds."""

    bottoms = (2, 2)
    differentiable = (0,)

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the top."""
        shape, index = shapes
        self.check(len(index) == 1, f"the index must have one axis. Received: {index}")
        return [(index[0], *shape[1:])]

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        """Return the examples."""
        return F.take(x, label_indices(index), 0)
