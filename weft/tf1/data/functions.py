"""Functions of elements: written down once in a graph of their own, and run for each element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph import Graph, get_default_graph
from ..recording import convert_to_tensor, is_tensor, placeholder
from ..session import Session
from .nests import Component, flat, is_nest, mapped


class ElementFunction:
    """A function of the components of an element.

    result   what it returned: a nest of tensors, or what `keep` takes as it is
    """

    def __init__(
        self,
        function: Callable[..., Any],
        structure: Any,
        what: str,
        keep: Callable[[Any], bool] | None = None,
    ) -> None:
        if not callable(function):
            raise TypeError(f"Dataset.{what}: takes a function. Received: {function!r:.60}")
        outer = get_default_graph()
        self.graph = Graph()
        self.graph.seed = outer.seed
        with self.graph.as_default():
            given = mapped(lambda c: placeholder(c.dtype, c.shape, name="arg"), structure)
            self._fed = flat(given)
            made = self._called(function, given, what)
            if keep is not None and keep(made):
                self.result = made
                self._fetched = list(made.inputs)
            else:
                self.result = _tensors(made)
                self._fetched = flat(self.result)
        self._session = Session(graph=self.graph)

    def _called(self, function: Callable[..., Any], given: Any, what: str) -> Any:
        spread = isinstance(given, tuple) and not hasattr(given, "_fields")
        made = function(*given) if spread else function(given)
        if made is None:
            raise TypeError(f"Dataset.{what}: the function returned None")
        return made

    @property
    def structure(self) -> Any:
        """Return what is known of the result."""
        return mapped(lambda tensor: Component(tensor.dtype, tensor.shape), self.result)

    @property
    def fetched(self) -> Sequence[Any]:
        """Return the tensors whose values a call gives."""
        return self._fetched

    def __call__(self, element: Sequence[Any]) -> tuple[Any, ...]:
        """Return the values for the components of an element."""
        if not self._fetched:
            return ()
        feeds = dict(zip(self._fed, element, strict=True))
        return tuple(self._session.run(self._fetched, feeds))


def _tensors(made: Any) -> Any:
    """Return what a function returned as a nest of tensors."""
    if is_tensor(made) or not is_nest(made):
        if hasattr(made, "_fetched_parts"):  # a sparse tensor: three in one
            return tuple(_tensors(part) for part in made._fetched_parts()[0])
        return convert_to_tensor(made)
    return mapped(_tensors, made)
