"""What is fetched: tensors and operations, by themselves or by name, in nests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .graph import Graph, Operation
from .tensor import Tensor


class Fetches:
    """The leaves of a nest, and the way back.

    tensors      those whose values are returned, in the order of the nest
    operations   those that only run
    """

    def __init__(self, graph: Graph, nest: Any) -> None:
        self.graph = graph
        self.tensors: list[Any] = []
        self.operations: list[Operation] = []
        self._fill = self._read(nest)

    def filled(self, values: Sequence[Any]) -> Any:
        """Return the values in the nest."""
        return self._fill(iter(values))

    def _read(self, nest: Any) -> Callable[[Iterator[Any]], Any]:
        if nest is None:
            raise TypeError(f"Fetch argument None has invalid type {type(None)}")
        if hasattr(nest, "_fetched_parts"):  # a value that is several tensors
            parts, built = nest._fetched_parts()
            inner = self._read(list(parts))
            return lambda values: built(inner(values))
        if isinstance(nest, Mapping):
            fills = {key: self._read(value) for key, value in nest.items()}
            return lambda values: type(nest)((k, fill(values)) for k, fill in fills.items())  # type: ignore[call-arg]
        if isinstance(nest, (list, tuple)):
            return self._read_sequence(nest)
        return self._read_leaf(nest)

    def _read_sequence(self, nest: Any) -> Callable[[Iterator[Any]], Any]:
        parts = [self._read(value) for value in nest]
        if hasattr(nest, "_fields"):
            return lambda values: type(nest)(*[fill(values) for fill in parts])
        kind = list if isinstance(nest, list) else tuple
        return lambda values: kind([fill(values) for fill in parts])

    def _read_leaf(self, leaf: Any) -> Callable[[Iterator[Any]], Any]:
        if leaf.__class__ is Tensor and leaf.op.graph is self.graph:  # as in almost every run
            self.tensors.append(leaf)
            return next
        try:
            found = self.graph.as_graph_element(leaf)
        except TypeError as error:
            raise TypeError(
                f"Fetch argument {leaf!r:.80} has invalid type {type(leaf)}, must be a string or "
                f"Tensor. ({error})"
            ) from None
        except (ValueError, KeyError) as error:
            text = error.args[0] if error.args else error
            raise ValueError(
                f"Fetch argument {leaf!r:.80} cannot be interpreted as a Tensor. ({text})"
            ) from None
        if isinstance(found, Operation):
            self.operations.append(found)
            return lambda values: None
        self.tensors.append(found)
        return next
