"""Graphs as data: JSON for the nodes, arrays for constants and for the values of states.

What JSON has is written as it is, tuples as lists; what it lacks is an object whose key "$" says
what it is. A value is known by its position among all values of its graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ...core.dim import Atom, Dim, SizeCall, SizeVar
from ...core.dtype import Array
from ...core.effects import CHAIN
from ...core.errors import GraphError
from ...core.rng import Generator, default_generator
from ...core.shape import TensorType
from ..graph import Graph
from ..node import Node, Value, is_graph
from ..special import Literal
from ..state import State
from ..text.printer import state_names
from ..text.source_lines import SourceLines

TAG = "$"
MAX_TERMS = 256  # of the product of all sizes of a shape, so that rules can compute with it
MAX_ATOMS = 64  # unknown sizes and calls in one size

Data = dict[str, Any]


class Encoded(NamedTuple):
    """A graph as JSON data, and the arrays that it names."""

    data: Data
    arrays: dict[str, Array]


def encode_graph(graph: Graph) -> Encoded:
    """Return a graph as data, with its constants and the present values of its states."""
    encoder = _Encoder(graph)
    return Encoded(
        {"states": encoder.encoded_states(), "graph": encoder.graph(graph)}, encoder.arrays
    )


class _Encoder:
    """Writes one graph; collects its arrays."""

    def __init__(self, graph: Graph) -> None:
        names = state_names(graph)
        self.states = {state.key: (names[state.key], state) for state in graph.states()}
        self.positions = {key: i for i, key in enumerate(self.states)}
        self.arrays: dict[str, Array] = {}
        self._constants: dict[Literal, str] = {}
        self._places = SourceLines()

    def encoded_states(self) -> list[Data]:
        """Return the states, in the order in which nodes refer to them."""
        return [self._state(name, state) for name, state in self.states.values()]

    def _state(self, name: str, state: State) -> Data:
        key = f"state/{name}"
        self.arrays[key] = state.read()
        return {
            "name": name,
            "kind": _kind(state.owner),
            "requires_grad": not state.label and bool(getattr(state.owner, "requires_grad", False)),
            "value": key,
        }

    def graph(self, graph: Graph) -> Data:
        """Return a graph or a body."""
        numbers: dict[Value, int] = {}
        nodes = []
        for node in graph.nodes:
            nodes.append(self._node(node, numbers))
            for value in node.outputs:
                numbers[value] = len(numbers)
        return {
            "name": graph.name,
            "nodes": nodes,
            "inputs": [numbers[value] for value in graph.inputs],
            "outputs": [numbers[value] for value in graph.outputs],
            "names": {name: numbers[value] for name, value in graph.names.items()},
        }

    def _node(self, node: Node, numbers: dict[Value, int]) -> Data:
        data: Data = {
            "op": node.op.name,
            "name": node.name,
            "inputs": [None if x is None else numbers[x] for x in node.inputs],
            "attrs": [self._attr(attr) for attr in node.attrs],
            "types": [encode_type(value.type) for value in node.outputs],
        }
        if node.scope:
            data["scope"] = list(node.scope)
        place = self._places.of(node)
        if place is not None:
            data["site"] = place
        if node.device != "cpu" or node.pinned:
            data["device"] = node.device
        return data

    def _attr(self, item: Any) -> Any:
        if item.__class__ is tuple:
            return [self._attr(part) for part in item]
        if item is None or item.__class__ in (bool, int, str):
            return item
        if is_graph(item):
            return {TAG: "graph", **self.graph(item)}
        for kind, write in _WRITERS:
            if isinstance(item, kind):
                return write(self, item)
        raise GraphError(f"cannot save an attribute of type {type(item).__name__}: {item!r:.60}")

    def _constant(self, literal: Literal) -> Data:
        key = self._constants.get(literal)
        if key is None:
            key = self._constants[literal] = f"constant/{len(self._constants)}"
            self.arrays[key] = literal.array
        return {TAG: "constant", "key": key}

    def _reference(self, state: State) -> Data:
        return {TAG: "state", "index": self.positions[state.key]}


_WRITERS: tuple[tuple[Any, Callable[[_Encoder, Any], Any]], ...] = (
    (float, lambda _, item: item if math.isfinite(item) else {TAG: "float", "value": str(item)}),
    (np.generic, lambda self, item: self._attr(item.item())),
    (type(Ellipsis), lambda *_: {TAG: "ellipsis"}),
    (np.dtype, lambda _, item: {TAG: "dtype", "name": item.name}),
    (TensorType, lambda _, item: {TAG: "type", "type": encode_type(item)}),
    (Dim, lambda _, item: encode_size(item)),
    (Literal, _Encoder._constant),
    (State, _Encoder._reference),
)


def _kind(owner: Any) -> str:
    if isinstance(owner, Generator):
        return "default generator" if owner is default_generator else "generator"
    if owner is CHAIN:
        return "effects"
    return "tensor"


# -- types -----------------------------------------------------------------------------------------


def encode_type(type: TensorType) -> Data:
    """Return a type as data."""
    check_complexity(type.shape)
    return {"dtype": type.dtype.name, "shape": [encode_size(size) for size in type.shape]}


def encode_size(size: Any) -> Any:
    """Return a size as data: an integer, or the terms of its polynomial."""
    if not isinstance(size, Dim):
        return int(size)
    check_complexity((size,))
    terms = [[factor, *map(_encode_atom, monomial)] for monomial, factor in size.terms]
    return {TAG: "size", "terms": terms}


def _encode_atom(atom: Atom) -> Any:
    if isinstance(atom, SizeVar):
        return atom.name
    assert isinstance(atom, SizeCall)
    return [atom.fn, encode_size(atom.a), encode_size(atom.b)]


def check_complexity(shape: Iterable[Any]) -> None:
    """Raise if the sizes of a shape are expressions too long to compute with."""
    terms = 1
    for size in shape:
        if isinstance(size, Dim):
            terms *= len(size.terms)
            if terms > MAX_TERMS or _atoms(size) > MAX_ATOMS:
                raise GraphError(f"the sizes of a shape are too long expressions: {size!r:.80}")


def _atoms(size: Any) -> int:
    """Return how many unknown sizes and calls are in a size, counting up to the limit."""
    count, pending = 0, [size]
    while pending and count <= MAX_ATOMS:
        found = pending.pop()
        for monomial, _ in found.terms if isinstance(found, Dim) else ():
            count += len(monomial)
            pending += [
                x for atom in monomial if isinstance(atom, SizeCall) for x in (atom.a, atom.b)
            ]
    return count
