"""Layers that join several inputs, given as a list; sizes of 1 are repeated, as in Keras."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from ...core.errors import ArgumentError
from ...nn.calls import F
from .base import Layer


class _Merge(Layer):
    """Base of layers that join inputs two by two."""

    join: Callable[[Any, Any], Any]

    def call(self, inputs: Any) -> Any:
        """Return the inputs joined."""
        return reduce(self.join, _several(self, inputs))


class Add(_Merge):
    """Add the inputs."""

    join = staticmethod(operator.add)


class Subtract(_Merge):
    """Subtract the second input from the first."""

    join = staticmethod(operator.sub)

    def call(self, inputs: Any) -> Any:
        """Return the difference."""
        if len(_several(self, inputs)) != 2:
            raise ArgumentError(f"{self.name} takes two inputs. Received: {len(inputs)}")
        return super().call(inputs)


class Multiply(_Merge):
    """Multiply the inputs."""

    join = staticmethod(operator.mul)


class Maximum(_Merge):
    """Take the larger of the inputs' elements."""

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        """Return the larger of two."""
        return F.maximum(x, y)


class Minimum(_Merge):
    """Take the smaller of the inputs' elements."""

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        """Return the smaller of two."""
        return F.minimum(x, y)


class Average(Add):
    """Average the inputs."""

    def call(self, inputs: Any) -> Any:
        """Return the mean."""
        return super().call(inputs) / len(inputs)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "pow")
}


class Arithmetic(Layer):
    """What `x + y`, `2 * x` and the like of symbolic tensors are noted as.

    operation   "add", "sub", "mul", "truediv" or "pow"
    constant    the number beside a single input
    reverse     whether the number comes first
    """

    _options = ("operation", "constant", "reverse")

    def __init__(
        self,
        operation: str,
        constant: float | None = None,
        reverse: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if operation not in _OPERATORS:
            known = ", ".join(_OPERATORS)
            raise ArgumentError(f"Arithmetic: one of {known}. Received: {operation!r}")
        self.operation, self.constant, self.reverse = operation, constant, bool(reverse)

    def call(self, inputs: Any) -> Any:
        """Return the result."""
        compute = _OPERATORS[self.operation]
        if self.constant is None:
            return compute(*_several(self, inputs))
        return compute(self.constant, inputs) if self.reverse else compute(inputs, self.constant)


class Concatenate(Layer):
    """Put the inputs side by side along an axis, by default the last.

    >>> import weft as wf
    >>> Concatenate()([wf.zeros(2, 3), wf.zeros(2, 5)]).shape
    (2, 8)
    """

    _options = ("axis",)

    def __init__(self, axis: int = -1, **options: Any) -> None:
        super().__init__(**options)
        self.axis = axis

    def call(self, inputs: Any) -> Any:
        """Return the inputs side by side."""
        return F.concat(_several(self, inputs), self.axis)


class Dot(Layer):
    """Return sums of products of two inputs along an axis of each."""

    _options = ("axes", "normalize")

    def __init__(self, axes: Any, normalize: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.axes, self.normalize = axes, bool(normalize)

    def call(self, inputs: Any) -> Any:
        """Return the products, the axes of the first input before those of the second."""
        if len(_several(self, inputs)) != 2:
            raise ArgumentError(f"{self.name} takes two inputs. Received: {len(inputs)}")
        axes = (self.axes, self.axes) if isinstance(self.axes, int) else self.axes
        x, y = (_last(v, axis, self.normalize) for v, axis in zip(inputs, axes, strict=True))
        if x.ndim == y.ndim == 2:
            return F.sum(x * y, axis=-1, keepdims=True)
        made = F.matmul(_matrices(x), F.swapaxes(_matrices(y), -1, -2))
        return made.reshape(x.shape[0], *x.shape[1:-1], *y.shape[1:-1])


def _several(layer: Layer, inputs: Any) -> Any:
    if not isinstance(inputs, list | tuple) or len(inputs) < 2:
        raise ArgumentError(f"{layer.name} joins two or more inputs, given as a list")
    return inputs


def _last(x: Any, axis: int, normalize: bool) -> Any:
    moved = x.moveaxis(axis, -1)
    if not normalize:
        return moved
    squares = F.sum(moved * moved, axis=-1, keepdims=True)
    return moved / F.sqrt(F.maximum(squares, 1e-12))


def _matrices(x: Any) -> Any:
    return x.reshape(x.shape[0], -1, x.shape[-1])


def _function(kind: type[Layer]) -> Callable[..., Any]:
    def joined(inputs: Any, **options: Any) -> Any:
        return kind(**options)(inputs)

    joined.__name__ = joined.__qualname__ = kind.__name__.lower()
    joined.__doc__ = kind.__doc__
    return joined


add, subtract, multiply = _function(Add), _function(Subtract), _function(Multiply)
average, maximum, minimum = _function(Average), _function(Maximum), _function(Minimum)
concatenate, dot = _function(Concatenate), _function(Dot)
