"""The results of operations, and how values become such."""

from __future__ import annotations

from typing import Any

from .dtypes import DType
from .graph import Graph, Operation, chosen_session
from .operands import Operators
from .shapes import TensorShape

__all__ = ["Tensor"]


class Tensor(Operators):
    """A result of an operation; it has a value when a session runs it.

    shadow   what is known of it before: a symbol of the environment that finds shapes, an array if
             its value is known, or None if not even its rank is
    """

    __array_priority__ = 100  # NumPy's operators leave themselves to ours

    def __init__(self, op: Operation, value_index: int, dtype: DType) -> None:
        self.op = op
        self.value_index = value_index
        self.dtype = dtype
        self.shadow: Any = None
        self._shape = TensorShape(None)
        self.differentiated = False  # whether gradients with respect to it are asked for

    @property
    def graph(self) -> Graph:
        """Return the graph that it belongs to."""
        return self.op.graph

    @property
    def name(self) -> str:
        """Return the name by which it is fetched and fed: `"x:0"`."""
        return f"{self.op.name}:{self.value_index}"

    @property
    def device(self) -> str:
        """Return the device that it was made for."""
        return self.op.device

    @property
    def shape(self) -> TensorShape:
        """Return the static shape."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Return the static shape."""
        return self._shape

    def set_shape(self, shape: Any) -> None:
        """Say more about the static shape."""
        merged = self._shape.merge_with(shape)
        if merged != self._shape:
            self._shape = merged
            self.graph.inference.restate(self)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Return its value in a session."""
        return chosen_session(session, self.graph, "evaluate tensor").run(self, feed_dict)

    def consumers(self) -> list[Operation]:
        """Return the operations that take it."""
        return [op for op in self.graph.operations if self in op.inputs]

    def __iter__(self) -> Any:
        sizes = self._shape.sizes
        if sizes is None or not sizes or sizes[0] is None:
            raise TypeError(
                "Tensor objects are only iterable when their first size is known. To iterate over "
                "this tensor use tf.map_fn."
            )
        return (self[i] for i in range(sizes[0]))

    def __len__(self) -> int:
        raise TypeError(
            f"len is not well defined for symbolic Tensors. ({self.name}) Please call `x.shape` "
            "rather than `len(x)` for shape information."
        )

    def __bool__(self) -> bool:
        raise TypeError(
            "Using a `tf.Tensor` as a Python `bool` is not allowed. Use `if t is not None:` "
            "instead "
            "of `if t:` to test if a tensor is defined, and use TensorFlow ops such as tf.cond to "
            "execute subgraphs conditioned on the value of a tensor."
        )

    __nonzero__ = __bool__

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"Cannot convert a symbolic Tensor ({self.name}) to a numpy array: run it in a session."
        )

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<tf.Tensor {self.name!r} shape={self._shape} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        shown = "" if self._shape.sizes is None else f", shape={self._shape}"
        return f'Tensor("{self.name}"{shown}, dtype={self.dtype.name})'
