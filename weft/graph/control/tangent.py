"""Forward mode through control flow: the same node, with tangents carried along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..graph import Graph
from ..inline import function_graph, inline
from ..node import Node, Value
from ..paths import outputs_reached, reach
from ..special import PLACEHOLDER
from ..symbol import make_symbol
from ..tracer import Tracer
from .body import function_of, labels_of, symbol_or_zeros, symbols_for
from .shapes import LoopView, loop_of, moved_inputs

PushForward = Callable[..., dict[Value, Any]]


def push_forward_cond(
    tracer: Tracer, node: Node, tangents: Sequence[Any], push_forward: PushForward
) -> list[Any]:
    """Return the tangents of a cond's results: another cond, of the branches' derivatives."""
    from .ops import COND  # noqa: PLC0415  (the operator names its own rule)

    yes, no = node.attrs[:2]
    moved = [i for i, t in enumerate(tangents[1:]) if t is not None]
    wanted = sorted(outputs_reached(node, {i + 1 for i in moved}))
    if not wanted:
        return [None] * len(node.outputs)
    branches = [_derivative(tracer, graph, moved, wanted, push_forward) for graph in (yes, no)]
    beside = tracer.root.accompanied
    kept = 0 if beside is None else len(node.outputs)
    for branch in branches:
        branch.outputs = branch.outputs[len(node.outputs) - kept :]
    values = [tracer.value_of(t) for t in tangents[1:] if t is not None]
    types = [value.type for value in (*node.outputs[:kept], *(node.outputs[i] for i in wanted))]
    made = tracer.add(COND, [*node.inputs, *values], (*branches, ()), types)
    if beside is not None:
        beside.update(zip(node.outputs, made.outputs, strict=False))
    return _spread(tracer, made.outputs[kept:], wanted, len(node.outputs))


def push_forward_loop(
    tracer: Tracer, node: Node, tangents: Sequence[Any], push_forward: PushForward
) -> list[Any]:
    """Return the tangents of a loop's results: a loop that carries values and tangents."""
    return _LoopTangent(tracer, loop_of(node), tangents, push_forward).tangents()


class _LoopTangent:
    """Builds the loop that computes the tangents of one loop."""

    def __init__(
        self, tracer: Tracer, loop: LoopView, tangents: Sequence[Any], push_forward: PushForward
    ) -> None:
        self.tracer = tracer
        self.loop = loop
        self.given = tangents
        self.push_forward = push_forward
        self.moved = sorted(
            moved_inputs(loop, (i for i, t in enumerate(tangents) if t is not None))
        )
        n, m = loop.carries, loop.carries + loop.xs
        self.carries = [i for i in self.moved if i < n]
        self.xs = [i for i in self.moved if n <= i < m]
        self.captured = [i for i in self.moved if i >= m]
        reached = reach(loop.body.nodes, [loop.body.inputs[i] for i in self.moved])
        self.rows = [i for i in range(n, len(loop.results)) if loop.results[i] in reached]

    def tangents(self) -> list[Any]:
        """Return the tangents of all results, None where there is none."""
        loop, node, tracer = self.loop, self.loop.node, self.tracer
        n = loop.carries
        given = {i: tracer.value_of(self._tangent(i)) for i in self.moved}
        inputs = self._ordered(node.inputs, given)
        carried = [x.type for x in inputs[: n + len(self.carries)] if x is not None]
        rows = [*self._rows_beside(), *(node.outputs[i] for i in self.rows)]
        made = tracer.add(node.op, inputs, self._attrs(), [*carried, *(y.type for y in rows)])
        ends = n + len(self.carries)
        beside, behind = self._rows_beside(), ends + len(self._rows_beside())
        if tracer.root.accompanied is not None:
            same = zip(
                (*node.outputs[:n], *beside),
                (*made.outputs[:n], *made.outputs[ends:behind]),
                strict=True,
            )
            tracer.root.accompanied.update(same)
        found = [*made.outputs[n:ends], *made.outputs[behind:]]
        return _spread(tracer, found, [*self.carries, *self.rows], len(node.outputs))

    def _rows_beside(self) -> Sequence[Value]:
        """Return the stacked results that the loop gives besides tangents."""
        wanted = self.tracer.root.accompanied is not None
        return self.loop.node.outputs[self.loop.carries :] if wanted else ()

    def _tangent(self, i: int) -> Any:
        return symbol_or_zeros(self.tracer, self.given[i], self.loop.node.inputs[i])

    def _attrs(self) -> tuple[Any, ...]:
        """Return the attributes of the loop over values and tangents."""
        loop = self.loop
        wanted = [*self.carries, *self.rows]
        results = [loop.flags + i for i in wanted]
        step = _derivative(self.tracer, loop.body, self.moved, results, self.push_forward)
        test = None if loop.test is None else self._test(loop.test)
        return loop.with_body(self._body(step), test, carries=len(self.carries), xs=len(self.xs))

    def _ordered(self, inputs: Sequence[Any], tangents: dict[int, Value]) -> list[Any]:
        """Return inputs and their tangents in the order of the new node's operands."""
        n, m = self.loop.carries, self.loop.carries + self.loop.xs
        return [
            *inputs[:n],
            *(tangents[i] for i in self.carries),
            *inputs[n:m],
            *(tangents[i] for i in self.xs),
            *inputs[m:],
            *(tangents[i] for i in self.captured),
        ]

    def _body(self, step: Graph) -> Graph:
        """Return the derivative of a step, its parts in the order of the new node's."""
        loop, count = self.loop, len(self.loop.body.inputs)
        tangents = dict(zip(self.moved, step.inputs[count:], strict=True))
        step.inputs = self._ordered(step.inputs[:count], tangents)
        first = loop.flags + loop.carries
        values, tangents_out = step.outputs[:first], step.outputs[len(loop.body.outputs) :]
        beside = step.outputs[first : first + len(self._rows_beside())]
        carried = len(self.carries)
        step.outputs = [*values, *tangents_out[:carried], *beside, *tangents_out[carried:]]
        return step

    def _test(self, test: Graph) -> Graph:
        """Return the condition as a function of tangents too, which it does not look at."""
        extra = {}
        nodes = list(test.nodes)
        for i in (*self.carries, *self.captured):
            kind = self.loop.body.inputs[i].type
            node = Node(PLACEHOLDER, (), (kind,), (kind,), name=f"tangent_{i}")
            nodes.append(node)
            extra[i] = node.outputs[0]
        return function_graph(test.name, nodes, self._ordered(test.inputs, extra), test.outputs)


def _derivative(
    tracer: Tracer,
    graph: Graph,
    moved: Sequence[int],
    wanted: Sequence[int],
    push_forward: PushForward,
) -> Graph:
    """Return a function graph with tangents: of moved inputs, and of wanted outputs, at the end."""
    types = [x.type for x in (*graph.inputs, *(graph.inputs[i] for i in moved))]
    count = len(graph.inputs)

    def both(inner: Tracer, symbols: list[Any]) -> list[Any]:
        inputs = [x.value for x in symbols[:count]]
        values = inline(inner.graph, graph, inputs)
        primal = [values[y] for y in graph.outputs]
        directions = dict(zip((inputs[i] for i in moved), symbols[count:], strict=True))
        ends = [primal[i] for i in wanted]
        found = push_forward(inner, ends, directions)
        tangents = [symbol_or_zeros(inner, found.get(y), y) for y in ends]
        return [*symbols_for(inner, primal), *tangents]

    labels = [*labels_of(graph.inputs), *labels_of([graph.inputs[i] for i in moved], "d_")]
    return function_of(tracer, f"{graph.name}_tangent", types, both, labels=labels)


def _spread(
    tracer: Tracer, values: Sequence[Value], positions: Sequence[int], count: int
) -> list[Any]:
    found = {i: make_symbol(tracer.graph, v) for i, v in zip(positions, values, strict=True)}
    return [found.get(i) for i in range(count)]
