"""Sparse tensors, as examples of files give them: where values stand, the values, and the shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .dtypes import DType, int64
from .graph import Graph
from .host import host_operation
from .recording import convert_to_tensor
from .shapes import TensorShape

__all__ = ["SparseTensor", "SparseTensorValue", "sparse_tensor_to_dense"]


class SparseTensorValue(NamedTuple):
    """The value of a sparse tensor in a run."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor:
    """Three tensors: `indices` (N, rank), `values` (N,), and `dense_shape` (rank,)."""

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices = convert_to_tensor(indices, None if hasattr(indices, "op") else int64)
        self.values = convert_to_tensor(values)
        self.dense_shape = convert_to_tensor(
            dense_shape, None if hasattr(dense_shape, "op") else int64
        )

    @property
    def dtype(self) -> DType:
        """Return the type of the values."""
        found: DType = self.values.dtype
        return found

    @property
    def graph(self) -> Graph:
        """Return the graph that it belongs to."""
        found: Graph = self.values.graph
        return found

    @property
    def shape(self) -> TensorShape:
        """Return the static shape: its rank."""
        sizes = self.dense_shape.shape.as_list()
        return TensorShape(None if sizes[0] is None else [None] * sizes[0])

    def get_shape(self) -> TensorShape:
        """Return the static shape."""
        return self.shape

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """Return its value in a session."""
        parts = [
            part.eval(feed_dict, session) for part in (self.indices, self.values, self.dense_shape)
        ]
        return SparseTensorValue(*parts)

    def _fetched_parts(self) -> tuple[Sequence[Any], Callable[[Sequence[Any]], Any]]:
        parts = (self.indices, self.values, self.dense_shape)
        return parts, lambda found: SparseTensorValue(*found)


def sparse_tensor_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Any:
    """Return a sparse tensor as a dense one, a default where it has no values."""
    if not isinstance(sp_input, SparseTensor):
        raise TypeError(f"Input must be a SparseTensor. Received: {type(sp_input).__name__}")
    fill = default_value
    if fill is None:
        fill = b"" if sp_input.dtype.name == "string" else 0
    elif isinstance(fill, str):
        fill = fill.encode()

    def call(session: Any, indices: Any, values: Any, shape: Any) -> list[Any]:
        made = np.full(tuple(shape.tolist()), fill, values.dtype)
        made[tuple(indices.T)] = values
        return [made]

    return host_operation(
        "SparseToDense",
        call,
        [sp_input.indices, sp_input.values, sp_input.dense_shape],
        outputs=[(sp_input.dtype, sp_input.shape)],
        name=name or "SparseToDense",
    )
