"""Build nodes once for many calls: a function is run for operands of a kind, then its nodes copied.

An optimizer's rule builds the same nodes for each of its parameters. Where two parameters, their
gradients and their slots have equal types, the nodes of the second follow from those of the first:
the same operators on the same attributes, with other operands. The function must depend on nothing
but the types of its operands, so it must be one of Weft's own. All that it can see besides, and all
that it can do besides adding nodes, is compared; where anything else happens it is always run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .node import Node, Value, attr_items, is_graph
from .special import CONSTANT, SOURCES
from .symbol import Symbol
from .tracer import Tracer

Symbols = Sequence[Any]
MOST_BEHIND = 64  # nodes that are looked at to find that a value is the same in all calls


class _Example(NamedTuple):
    """A call that was made: its operands, the nodes that it added, its results, what it said."""

    operands: list[Value]
    nodes: list[Node]
    results: list[Symbol]
    said: Any


class Repetition:
    """Calls a function of symbols, or adds the nodes that it would add.

    The function returns symbols, and anything to be said of them that follows from types.
    """

    def __init__(self, tracer: Tracer, function: Callable[[Symbols], tuple[Symbols, Any]]) -> None:
        self._tracer = tracer
        self._function = function
        self._examples: dict[Hashable, _Example | None] = {}

    def __call__(self, operands: Symbols) -> tuple[Symbols, Any]:
        """Return the results for symbols; anything else is handed to the function."""
        if not all(map(self._is_plain, operands)):
            return self._function(operands)
        key, values = self._key(operands), self._values(operands)
        if key not in self._examples:
            return self._first(key, values, operands)
        example = self._examples[key]
        return self._function(operands) if example is None else self._copied(example, values)

    def _is_plain(self, x: Any) -> bool:
        """Tell whether an operand is a value of the open graph with all sizes known."""
        known = isinstance(x, Symbol) and x.graph is self._tracer.graph
        return known and all(size.__class__ is int for size in x.value.shape)

    def _key(self, operands: Symbols) -> Hashable:
        """Return all that the function can see of operands: types, and which are the same."""
        tracer, values = self._tracer, [x.value for x in operands]
        return tuple(
            (type(x), v.type, values.index(v), v in tracer._frozen, v in tracer._detached)
            for x, v in zip(operands, values, strict=True)
        )

    def _values(self, operands: Symbols) -> list[Value]:
        """Return the values of operands, and those which stand for them under no_grad."""
        values = [x.value for x in operands]
        detached = self._tracer._detached
        return [*values, *(detached[v] for v in values if v in detached)]

    # -- the first call ----------------------------------------------------------------------------

    def _first(self, key: Hashable, values: list[Value], operands: Symbols) -> tuple[Symbols, Any]:
        nodes, before = self._tracer.graph.nodes, self._tracer.footprint()
        start = len(nodes)
        results, said = self._function(operands)
        added = nodes[start:]
        alone = self._tracer.footprint() == before and all(map(self._is_plain, results))
        repeatable = alone and all(map(_can_be_copied, added)) and not self._leaks(values, added)
        example = _Example(values, added, list(results), said)
        self._examples[key] = example if repeatable else None
        return results, said

    def _leaks(self, operands: Sequence[Value], nodes: Sequence[Node]) -> bool:
        """Tell whether nodes take what was computed of the operands before the call."""
        made = {*operands, *(value for node in nodes for value in node.outputs)}
        outside = {x for node in nodes for x in node.inputs if x is not None and x not in made}
        behind = _behind(outside)
        return behind is None or not behind.isdisjoint(operands)

    # -- others like it ----------------------------------------------------------------------------

    def _copied(self, example: _Example, values: Sequence[Value]) -> tuple[Symbols, Any]:
        tracer, now = self._tracer, dict(zip(example.operands, values, strict=True))
        for node in example.nodes:
            if self._is_shared(node, now):
                continue
            inputs = [None if x is None else now.get(x, x) for x in node.inputs]
            with tracer.at(node.site):
                types = [value.type for value in node.outputs]
                copy = tracer.add(node.op, inputs, node.attrs, types)
            now.update(zip(node.outputs, copy.outputs, strict=True))
        tracer.treat_alike(now)
        return [_like(x, now.get(x.value, x.value)) for x in example.results], example.said

    def _is_shared(self, node: Node, now: Mapping[Value, Value]) -> bool:
        """Tell whether a tracer would find a node again: constants, and what no_grad detaches."""
        if node.op is CONSTANT:
            return True
        first = node.inputs[0] if len(node.inputs) == 1 else None
        if first is None or first in now:
            return False
        return self._tracer._detached.get(first) is node.outputs[0]


def _can_be_copied(node: Node) -> bool:
    own = node.op in SOURCES and node.op is not CONSTANT
    return not own and not any(map(is_graph, attr_items(node.attrs)))


def _behind(values: set[Value]) -> set[Value] | None:
    """Return values and all that they are computed of; None if that is much."""
    found: set[Value] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            pending += _inputs(value.node)
        if len(found) > MOST_BEHIND:
            return None
    return found


def _inputs(node: Node) -> Iterator[Value]:
    return (x for x in node.inputs if x is not None)


def _like(symbol: Symbol, value: Value) -> Symbol:
    made: Symbol = object.__new__(type(symbol))
    made.graph, made.value = symbol.graph, value
    return made
