"""Known values for the unknown sizes of a graph, as a plan of its memory needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.dim import SizeVar, evaluate, is_known, may_equal, variables
from ..core.errors import ArgumentError, ArgumentTypeError, UnknownSizeError
from ..graph.graph import Graph
from ..graph.node import Value, subgraphs, type_text
from ..graph.run import bind_sizes
from ..graph.symbol import Symbol

Known = dict[SizeVar, int]


def known_sizes(graph: Graph, sizes: Mapping[Any, Any] | None, what: str) -> Known:
    """Return the values of unknown sizes from {"batch": 32} or {placeholder: shape}."""
    if sizes is None:
        return {}
    if not isinstance(sizes, Mapping):
        raise ArgumentTypeError(
            f"{what}: sizes must be a dictionary such as {{'batch': 32}} or {{x: (32, 3)}}. "
            f"Received: {sizes!r:.60}"
        )
    known: Known = {}
    names = {v.name: v for shape in _shapes(graph) for d in shape for v in variables(d)}
    for key, given in sizes.items():
        if isinstance(key, str) and isinstance(given, int) and not isinstance(given, bool):
            known[_size_named(key, names, what)] = _not_negative(key, given, what)
        else:
            _bind_shape(graph, key, given, known, what)
    return known


def _shapes(graph: Graph) -> Iterator[tuple[Any, ...]]:
    """Yield the shapes of all values, those of subgraphs included."""
    for node in graph.nodes:
        for value in node.outputs:
            yield value.shape
        for body in subgraphs(node):
            yield from _shapes(body)


def _size_named(name: str, names: Mapping[str, SizeVar], what: str) -> SizeVar:
    if name not in names:
        shown = ", ".join(sorted(names)) or "none"
        raise ArgumentError(f"{what}: no unknown size is named {name!r}; there are: {shown}")
    return names[name]


def _not_negative(name: str, given: int, what: str) -> int:
    if given < 0:
        raise ArgumentError(f"{what}: the size {name} must not be negative. Received: {given}")
    return given


def _bind_shape(graph: Graph, key: Any, given: Any, known: Known, what: str) -> None:
    value = _value(graph, key, what)
    fits = (
        isinstance(given, (tuple, list))
        and len(given) == len(value.shape)
        and all(isinstance(size, int) and size >= 0 for size in given)
        and all(may_equal(d, n) for d, n in zip(value.shape, given, strict=True))
    )
    if not fits:
        raise ArgumentError(
            f"{what}: {value.name} is {type_text(value.type)} and needs a shape of that form. "
            f"Received: {given!r:.60}"
        )
    bind_sizes(value, tuple(given), known)


def _value(graph: Graph, key: Any, what: str) -> Value:
    if isinstance(key, str):
        return graph.find(key)
    if isinstance(key, Symbol):
        return graph.check_member(key.value, what)
    if isinstance(key, Value):
        return graph.check_member(key, what)
    raise ArgumentTypeError(
        f"{what}: sizes are given by a name or a placeholder. Received: {key!r:.60}"
    )


def known_shape(value: Value, known: Known) -> tuple[int, ...]:
    """Return the shape of a value with the sizes put in; raise if one is missing."""
    if is_known(value.shape):
        return value.shape
    try:
        return tuple(evaluate(size, known) for size in value.shape)
    except UnknownSizeError:
        raise UnknownSizeError(_missing(value, known)) from None


def _missing(value: Value, known: Known) -> str:
    names = {v.name for size in value.shape for v in variables(size) if v not in known}
    shown = ", ".join(sorted(names))
    return (
        f"{value.name} is {type_text(value.type)}, and the size {shown} is not known; give it as "
        f"sizes={{{min(names)!r}: ...}}"
    )
