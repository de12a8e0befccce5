"""Sequential: links and functions, one after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .link import ChainList, Link


class Sequential(ChainList):
    """Callables that each take the result of the one before; links among them are trained."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        self._layers: list[Any] = []
        for layer in layers:
            self.append(layer)

    def append(self, layer: Any) -> None:
        """Add a callable at the end."""
        if not callable(layer):
            raise TypeError(
                f"all elements of a Sequential must be callable. Received: {layer!r:.60}"
            )
        self._layers.append(layer)
        self._renumber()

    add = append

    def extend(self, sequential: Sequential) -> None:
        """Add the layers of another Sequential."""
        for layer in sequential:
            self.append(layer)

    def insert(self, i: int, layer: Any) -> None:
        """Put a callable before another."""
        self._layers.insert(i, layer)
        self._renumber()

    def pop(self, i: int = -1) -> Any:
        """Take a layer out and return it."""
        layer = self._layers.pop(i)
        self._renumber()
        return layer

    def remove(self, layer: Any) -> None:
        """Take a layer out."""
        self._layers.remove(layer)
        self._renumber()

    def _renumber(self) -> None:
        self._links = [layer for layer in self._layers if isinstance(layer, Link)]
        for position, layer in enumerate(self._layers):
            if isinstance(layer, Link):
                layer.name = str(position)

    def _named_children(self) -> Iterator[tuple[str, Link]]:
        return ((str(i), layer) for i, layer in enumerate(self._layers) if isinstance(layer, Link))

    def __len__(self) -> int:
        return len(self._layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._layers)

    def __getitem__(self, index: Any) -> Any:
        found = self._layers[index]
        return Sequential(*found) if isinstance(index, slice) else found

    def __setitem__(self, index: Any, layer: Any) -> None:
        self._layers[index] = layer
        self._renumber()

    def __delitem__(self, index: Any) -> None:
        del self._layers[index]
        self._renumber()

    def forward(self, *x: Any) -> Any:
        """Return what the last layer makes of all before it."""
        result: Any = x
        for layer in self._layers:
            result = layer(*result) if isinstance(result, tuple) else layer(result)
        return result

    def flatten(self) -> Sequential:
        """Return a Sequential with the layers of inner ones in their places."""
        layers: list[Any] = []
        for layer in self._layers:
            layers.extend(layer.flatten() if isinstance(layer, Sequential) else [layer])
        return Sequential(*layers)

    def copy(self, mode: str = "share") -> Sequential:
        """Return a copy, with copies of the links."""
        return Sequential(*(x.copy(mode) if isinstance(x, Link) else x for x in self._layers))

    def repeat(self, n_repeat: int, mode: str = "init") -> Sequential:
        """Return the layers n times over, each time as a copy."""
        return Sequential(*(layer for _ in range(n_repeat) for layer in self.copy(mode)))
