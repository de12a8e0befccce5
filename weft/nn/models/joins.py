"""Layers that join branches or rearrange a tensor, for networks that are written as a list."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ...core.shape import as_int
from ...core.tensor import Tensor
from ..calls import F
from ..module import Module


class Join(Module):
    """Base of layers with two or more inputs of one shape."""

    join: Callable[[Tensor, Tensor], Tensor]

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the inputs joined; their shapes must agree."""
        name = type(self).__name__
        if len(inputs) < 2:
            raise ArgumentError(f"{name} joins two or more inputs. Received: {len(inputs)}")
        shapes = [tuple(x.shape) for x in inputs]
        if any(shape != shapes[0] for shape in shapes):
            shown = ", ".join(map(str, shapes))
            raise ShapeError(f"{name}: the inputs must have one shape. Received: {shown}")
        return reduce(self.join, inputs)


class Add(Join):
    """Add the inputs: the end of a residual block.

    >>> import weft as wf
    >>> Add()(wf.tensor([1.0]), wf.tensor([2.0]))
    tensor([3.])
    """

    join = staticmethod(operator.add)


class Subtract(Join):
    """Subtract the other inputs from the first."""

    join = staticmethod(operator.sub)


class Multiply(Join):
    """Multiply the inputs: a gate."""

    join = staticmethod(operator.mul)


class Concat(Module):
    """Put the inputs side by side along an axis, by default the channels.

    >>> import weft as wf
    >>> Concat()(wf.zeros(2, 3), wf.zeros(2, 5)).shape
    (2, 8)
    """

    _printed = ("axis",)

    def __init__(self, axis: int = 1) -> None:
        super().__init__()
        self.axis = as_int(axis, "Concat: axis")

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the inputs side by side."""
        return F.concat(inputs, self.axis)


class Reshape(Module):
    """Give each sample another shape; one size may be -1.

    >>> import weft as wf
    >>> Reshape([3, -1])(wf.zeros(5, 12)).shape
    (5, 3, 4)
    """

    def __init__(self, shape: list[int]) -> None:
        super().__init__()
        self.shape = _ints("Reshape: shape", shape)

    def forward(self, x: Tensor) -> Tensor:
        """Return x with the batch axis and the new shape."""
        return F.reshape(x, (x.shape[0], *self.shape))

    def extra_repr(self) -> str:
        """Return the shape."""
        return f"shape={list(self.shape)}"


class Permute(Module):
    """Reorder the axes; 0 is the batch."""

    def __init__(self, axes: list[int]) -> None:
        super().__init__()
        self.axes = _ints("Permute: axes", axes)

    def forward(self, x: Tensor) -> Tensor:
        """Return x with its axes reordered."""
        return F.permute_dims(x, self.axes)

    def extra_repr(self) -> str:
        """Return the axes."""
        return f"axes={list(self.axes)}"


class Select(Module):
    """Take one position along an axis, by default the last of axis 1: the end of a sequence."""

    _printed = ("index", "axis")

    def __init__(self, index: int = -1, axis: int = 1) -> None:
        super().__init__()
        self.index = as_int(index, "Select: index")
        self.axis = as_int(axis, "Select: axis")

    def forward(self, x: Tensor) -> Tensor:
        """Return x without the axis."""
        axis = self.axis + x.ndim if self.axis < 0 else self.axis
        if not 0 <= axis < x.ndim:
            raise ShapeError(f"Select: there is no axis {self.axis}. Received: shape {x.shape}")
        return x[(*[slice(None)] * axis, self.index)]


def _ints(what: str, values: Any) -> tuple[int, ...]:
    if not isinstance(values, (list, tuple)):
        raise ArgumentTypeError(f"{what} must be a list of integers. Received: {values!r}")
    return tuple(as_int(value, f"each of {what}") for value in values)
