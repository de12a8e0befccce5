"""Symbolic tensors: what `Input` returns, and layers return when they are called on them.

A call of a layer on them computes nothing. It is noted, and tells the shapes of its outputs, which
come from a graph that the layer builds once with sizes that are unknown where the input's are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.tensor import Tensor
from ..graph import Graph, placeholder

if TYPE_CHECKING:
    from .layers.base import Layer

Shape = tuple[int | None, ...]


class Call:
    """One call of a layer on symbolic tensors."""

    def __init__(
        self, layer: Layer, inputs: Sequence[KerasTensor], options: Mapping[str, Any]
    ) -> None:
        self.layer, self.inputs, self.options = layer, tuple(inputs), dict(options)
        self.outputs: tuple[KerasTensor, ...] = ()


class KerasTensor:
    """A tensor without a value: a shape (None: any size), a dtype, and the call that makes it."""

    def __init__(self, shape: Shape, dtype: Any, call: Call, index: int = 0) -> None:
        self.shape, self.dtype = tuple(shape), dt.as_dtype(dtype)
        self.call, self.index = call, index

    @property
    def name(self) -> str:
        """Return the name of the layer that makes it."""
        return self.call.layer.name

    @property
    def ndim(self) -> int:
        """Return the number of dimensions, the batch included."""
        return len(self.shape)

    def __neg__(self) -> Any:
        return _operator("mul")(self, -1.0)

    def __getitem__(self, key: Any) -> Any:
        raise ArgumentTypeError(
            f"{self!r} cannot be indexed by itself: use layers.Lambda(lambda x: x[...])"
        )

    def __repr__(self) -> str:
        return f"<KerasTensor shape={self.shape}, dtype={self.dtype}, name={self.name}>"

    def __bool__(self) -> bool:
        raise ArgumentTypeError(
            f"{self!r} has no value: conditions on it belong into the call() of a layer"
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise ArgumentTypeError(
            f"{self!r} has no value; functions of symbolic tensors stand in a layer, e.g. "
            "layers.Lambda(lambda x: ...)"
        )

    def __iter__(self) -> Any:
        raise ArgumentTypeError(f"{self!r} cannot be iterated: it has no value")


def record_call(layer: Layer, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Note a call on symbolic tensors; return what it makes: one tensor, or a list."""
    for x in inputs:
        if not isinstance(x, KerasTensor):
            raise ArgumentTypeError(
                f"{layer.name}: symbolic tensors and values do not go together in one call. "
                f"Received: {type(x).__name__}; use layers.Lambda for constants"
            )
    made, is_one = _outputs(layer, inputs, options)
    call = Call(layer, inputs, options)
    call.outputs = tuple(KerasTensor(s, d, call, i) for i, (s, d) in enumerate(made))
    layer.calls.append(call)
    return call.outputs[0] if is_one else list(call.outputs)


def _outputs(
    layer: Layer, inputs: Sequence[KerasTensor], options: Mapping[str, Any]
) -> tuple[list[tuple[Shape, Any]], bool]:
    """Return shape and dtype of each output, and whether there is one alone."""
    with Graph():
        fed = _placeholders(inputs)
        made = layer(*fed, **options)
    parts = [made] if isinstance(made, Tensor) else made
    if not isinstance(parts, list | tuple) or not all(isinstance(p, Tensor) for p in parts):
        raise ArgumentTypeError(
            f"{layer.name} must return a tensor or a list of them. Received: {type(made).__name__}"
        )
    return [(known_sizes(p.shape), p.dtype) for p in parts], isinstance(made, Tensor)


def _placeholders(inputs: Sequence[KerasTensor]) -> list[Any]:
    """Return symbols of the graph's for symbolic tensors; they share the size of the batch."""
    return [
        placeholder(("batch", *x.shape[1:]) if x.shape[0] is None else x.shape, x.dtype)
        for x in inputs
    ]


def known_sizes(shape: Sequence[Any]) -> Shape:
    """Return a shape with None for sizes that are not known before a run."""
    return tuple(size if isinstance(size, int) else None for size in shape)


def checked_shape(what: str, shape: Any) -> Shape:
    """Return a shape of None and numbers."""
    given = (shape,) if isinstance(shape, int) else shape
    if not isinstance(given, tuple | list):
        raise ArgumentTypeError(f"{what}: a shape is a tuple, e.g. (784,). Received: {shape!r}")
    for size in given:
        is_size = isinstance(size, int) and not isinstance(size, bool) and size > 0
        if size is not None and not is_size:
            raise ArgumentError(f"{what}: sizes are None or positive numbers. Received: {shape!r}")
    return tuple(given)


def _operator(operation: str, reverse: bool = False) -> Any:
    def noted(self: KerasTensor, other: Any) -> Any:
        from .layers.merging import Arithmetic  # noqa: PLC0415  (layers stand on this module)

        if isinstance(other, KerasTensor):
            return Arithmetic(operation)([self, other])
        if isinstance(other, bool) or not isinstance(other, int | float):
            return NotImplemented
        return Arithmetic(operation, float(other), reverse)(self)

    return noted


for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(KerasTensor, f"__{_name}__", _operator(_name))
    setattr(KerasTensor, f"__r{_name}__", _operator(_name, reverse=True))
