"""Loops whose length depends on values: `while err > tol:` becomes a `while_loop`.

Where Python asks for a truth in a state that it was in before, but for what values are
(python_state.py), it has come round a loop. What it computed in between is the body, and the truth
is the condition: however often it holds, Python does the same again, and what follows when it does
not is what followed in the recording. So one program is right for every number of trips, also for
none: the first state is that of a trip like all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..core.op import find_op
from ..graph.control.ops import WHILE
from ..graph.graph import Graph
from ..graph.inline import copy_nodes
from ..graph.node import Node, Value
from ..graph.special import CONSTANT, SOURCES
from ..ops.elementwise.gradient import stop_gradient
from ..passes.rewrite import Rebuild, add_like
from .deferred import GRADIENT
from .looks import ValueRead
from .python_state import PythonState


class ValueLoop(NamedTuple):
    """The looks of a loop: each but the last let it go on."""

    looks: Sequence[ValueRead]

    @property
    def region(self) -> range:
        """Return which nodes its trips are."""
        return range(self.looks[0].nodes, self.looks[-1].nodes)

    def leaves(self, trip: int) -> list[Value]:
        """Return the values that Python held when a trip began."""
        state = self.looks[trip].state
        assert state is not None
        return state.leaves


class NotALoopError(Exception):
    """Something uses what only one trip has computed."""


def with_while_loops(
    graph: Graph, looks: Sequence[ValueRead], outputs: Sequence[Value]
) -> tuple[Graph, list[ValueRead]]:
    """Return a recorded graph with loops as such, and the looks that are no part of one.

    outputs   what is asked of the graph besides looks
    """
    loops = list(find_loops(looks))
    while loops:
        inside = {id(look) for loop in loops for look in loop.looks}
        rest = [look for look in looks if id(look) not in inside]
        try:
            return _looped(graph, loops, [*outputs, *(look.holds for look in rest)]), rest
        except NotALoopError:
            loops.pop()  # those before it may be loops all the same
    return graph, list(looks)


def find_loops(looks: Sequence[ValueRead]) -> Iterator[ValueLoop]:
    """Yield runs of looks in states of one shape, of which the last alone was another truth."""
    first = 0
    while first < len(looks):
        last = first
        while last + 1 < len(looks) and _goes_on(looks[first], looks[last], looks[last + 1]):
            last += 1
        if last > first and looks[last].seen != looks[first].seen:
            yield ValueLoop(looks[first : last + 1])
            first = last
        first += 1


def _goes_on(first: ValueRead, last: ValueRead, following: ValueRead) -> bool:
    if last.seen != first.seen or not following.truth:
        return False
    return last.state is not None and _shape(last.state) == _shape(following.state)


def _shape(state: PythonState | None) -> tuple[object, ...] | None:
    return None if state is None else state.shape


def _looped(graph: Graph, loops: Sequence[ValueLoop], outputs: Sequence[Value]) -> Graph:
    """Return the graph with loops in place of their trips."""
    rebuild = Rebuild(graph, outputs)
    for node in graph.nodes:
        if node.op in SOURCES:
            rebuild.place(node, node)
    starts = {loop.region.start: loop for loop in loops}
    skipped = {i for loop in loops for i in loop.region}
    for i, node in enumerate(graph.nodes):
        if i in starts:
            _Loop(rebuild, graph, starts[i]).place()
        if i not in skipped and node.op not in SOURCES:
            _place(rebuild, node)
    for value in outputs:
        _find(rebuild, value)
    return rebuild.finish()


def _place(rebuild: Rebuild, node: Node) -> None:
    for x in node.inputs:
        if x is not None:
            _find(rebuild, x)
    rebuild.place(node, rebuild.current(node))


def _find(rebuild: Rebuild, value: Value) -> Value:
    """Return a value in the new graph.

    A state that a loop reads without gradients is detached once, by its first trip.
    """
    now = rebuild.value(value)
    if now not in rebuild.graph:
        if value.node.op is not stop_gradient:
            raise NotALoopError
        _place(rebuild, value.node)
        now = rebuild.value(value)
    return now


def _is_source(value: Value) -> bool:
    """Tell whether a value is there from the start: a state, say, also one without gradients."""
    while value.node.op is stop_gradient:
        (first,) = value.node.inputs
        assert first is not None
        value = first
    return value.node.op in SOURCES


class _Loop:
    """One loop, from the nodes of its first trip."""

    def __init__(self, rebuild: Rebuild, graph: Graph, loop: ValueLoop) -> None:
        self.rebuild, self.loop = rebuild, loop
        first, second, last = (loop.leaves(trip) for trip in (0, 1, -1))
        moving = [i for i, (x, y) in enumerate(zip(first, second, strict=True)) if x is not y]
        carried = {first[i]: i for i in reversed(moving)}  # values that Python holds twice are one
        self.places = [-1, *carried.values()]
        self.starts = [loop.looks[0].holds, *carried]
        self.nexts = [loop.looks[1].holds, *(second[i] for i in carried.values())]
        self.ends = [last[i] for i in carried.values()]
        if any(_is_source(value) for value in carried):
            raise NotALoopError  # Python may have meant the source itself
        self.nodes = self._needed(graph)
        self.captured = self._taken(set(first))

    def _needed(self, graph: Graph) -> list[Node]:
        """Return the nodes of the first trip that the next one needs."""
        trip = graph.nodes[self.loop.looks[0].nodes : self.loop.looks[1].nodes]
        needed: set[Value] = set(self.nexts)
        found = []
        for node in reversed(trip):
            if node.op not in SOURCES and not needed.isdisjoint(node.outputs):
                found.append(node)
                needed.update(x for x in node.inputs if x is not None)
        if any(node.op is GRADIENT for node in found):
            raise NotALoopError
        return found[::-1]

    def _taken(self, known: set[Value]) -> list[Value]:
        """Return what a trip takes that is the same for all: what Python held, and sources."""
        own = {value for node in self.nodes for value in node.outputs} | set(self.starts)
        taken = [x for node in self.nodes for x in node.inputs] + self.nexts
        outer = dict.fromkeys(x for x in taken if x is not None and x not in own)
        if not all(x in known or _is_source(x) for x in outer):
            raise NotALoopError
        return [x for x in outer if x.node.op is not CONSTANT]

    def place(self) -> None:
        """Append the loop, and let what it leaves stand for what Python held at its end."""
        like, rebuild = self.loop.looks[0].holds.node, self.rebuild
        carries = [_find(rebuild, value) for value in self.starts]
        captured = [_find(rebuild, value) for value in self.captured]
        attrs = (self._test(), self._body(), len(carries), self._threads())
        types = [value.type for value in carries]
        place = {"scope": like.scope, "site": like.site, "device": like.device}
        node = rebuild.graph.add(WHILE, [*carries, *captured], attrs, types, **place)  # type: ignore[arg-type]  # of Any
        for before, after in zip(self.ends, node.outputs[1:], strict=True):
            rebuild.redirect(before, after)

    def _threads(self) -> tuple[tuple[int, int], ...]:
        """Return by which carries the states of random generators pass."""
        state = self.loop.looks[0].state
        generators = () if state is None else state.generators
        return tuple((i, i) for i, place in enumerate(self.places) if place in generators)

    def _function(self, name: str) -> tuple[Graph, dict[Value, Value]]:
        """Return a graph of the carries and what is captured, and what these are in it."""
        graph = Graph(name)
        graph.is_function = True
        given = [*self.starts, *self.captured]
        return graph, {x: graph.tracer.parameter(x.type, "arg") for x in given}

    def _test(self) -> Graph:
        graph, inside = self._function("cond_fn")
        holds = inside[self.starts[0]]
        if not self.loop.looks[0].seen:
            like = self.loop.looks[0].holds.node
            holds = add_like(graph, like, find_op("logical_not"), [holds], ())
        graph.outputs = [holds]
        return graph

    def _body(self) -> Graph:
        graph, inside = self._function("body_fn")
        taken = {x for node in self.nodes for x in node.inputs} | set(self.nexts)
        constants = {x.node: None for x in taken if x is not None and x.node.op is CONSTANT}
        copy_nodes(graph, list(constants), inside)
        copy_nodes(graph, self.nodes, inside)
        graph.outputs = [inside[value] for value in self.nexts]
        return graph
