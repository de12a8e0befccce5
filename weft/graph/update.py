"""Updates: what a training step fetches for its effect on states."""

from __future__ import annotations

from collections.abc import Sequence

from .draws import is_threaded
from .graph import Graph
from .node import Node, Value
from .special import CONSTANT, PLACEHOLDER, STATE
from .state import State
from .symbol import Symbol


class Update:
    """A group of assignments that are fetched together; the value of the fetch is None."""

    __slots__ = ("name", "symbols")

    def __init__(self, symbols: Sequence[Symbol], name: str = "update") -> None:
        self.symbols = tuple(symbols)
        self.name = name

    def __repr__(self) -> str:
        return f"<update {self.name}: {len(self.symbols)} assignments>"


def caused_updates(
    graph: Graph, value: Value, assigned: Sequence[Symbol]
) -> list[tuple[State, Value]]:
    """Return what the program wrote to tensors from outside on the way to a value.

    These are the running statistics of the layers that the value went through: what is computed
    from nodes it needs, or in the name scope of one, and what no other placeholder must be fed for.
    What is assigned later, a weight that was clipped before its step, is not among them.
    In a function there is nothing to choose: every run commits all of it.
    """
    if graph.tracer.sequential:
        return []
    run = set(graph.ancestors([value]))
    scopes = {node.scope for node in run}
    related, foreign = _related(graph, run)
    found: dict[tuple[int, str], tuple[State, Value]] = {}
    later = {symbol.value.node.attrs[0].key for symbol in assigned}
    for state, new in graph.tracer.history:
        belongs = new.node in related or new.node.scope in scopes
        own = state.key in later or is_threaded(state)
        if belongs and new.node not in foreign and not own:
            found[state.key] = state, new
    return list(found.values())


def _related(graph: Graph, run: set[Node]) -> tuple[set[Node], set[Node]]:
    """Return the nodes that use what a run computes, and those that need other placeholders."""
    related: set[Node] = set()
    foreign: set[Node] = set()
    for node in graph.nodes:
        before = [x.node for x in node.inputs if x is not None]
        if node in run:
            if node.op not in (CONSTANT, STATE):
                related.add(node)
        elif not related.isdisjoint(before):
            related.add(node)
        if node not in run and (node.op is PLACEHOLDER or not foreign.isdisjoint(before)):
            foreign.add(node)
    return related, foreign
