"""Gradients of a recording that are put off until loops have been rolled.

`backward()` is one node then: of the results, what their gradients are, and the values that
gradients go to. A Python loop in the function shows its trips as equal nodes, and is rolled into a
scan (passes/roll.py) before the node becomes the adjoint of what is there by then.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..autodiff.static.reverse import pull_back_graph
from ..core.op import F
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.paths import lead, reach
from ..graph.scope import GRADIENTS, outermost_scope
from ..graph.special import NodeOp
from ..graph.symbol import Symbol, make_symbol
from ..graph.tracer import Tracer
from ..passes.rewrite import Rebuild
from ..passes.roll import roll

GRADIENT = NodeOp("gradient", ("values",), ("count",))  # values: ys, their gradients, xs


def deferred_gradients(
    tracer: Tracer, ys: Sequence[Value], gs: Sequence[Value | None], xs: Sequence[Value]
) -> dict[Value, Symbol]:
    """Return what stands for the gradients of those xs that ys depend on."""
    nodes = tracer.graph.nodes
    between = reach(nodes, xs) & lead(nodes, ys)
    reached = [x for x in dict.fromkeys(xs) if x in between]
    if not reached or not between.intersection(ys):
        return {}
    tracer.graph.differentiated.update(ys)
    with outermost_scope((GRADIENTS,)):
        seeds = [_ones(tracer, y) if g is None else g for y, g in zip(ys, gs, strict=True)]
        types = [x.type for x in reached]
        node = tracer.add(GRADIENT, [*ys, *seeds, *reached], (len(ys),), types)
    return {x: make_symbol(tracer.graph, g) for x, g in zip(reached, node.outputs, strict=True)}


def _ones(tracer: Tracer, y: Value) -> Value:
    return tracer.value_of(F.ones_like(make_symbol(tracer.graph, y)))


def expanded_gradients(tracer: Tracer, node: Node) -> list[Value]:
    """Return the gradients that a node stands for, as nodes added to the graph of a tracer."""
    (count,) = node.attrs
    values = [x for x in node.inputs if x is not None]
    ys, seeds, xs = values[:count], values[count : 2 * count], values[2 * count :]
    symbols = [make_symbol(tracer.graph, g) for g in seeds]
    with tracer.at(node.site):
        found = pull_back_graph(tracer, ys, symbols, xs)
        zeros = [F.zeros_like(make_symbol(tracer.graph, x)) for x in xs if x not in found]
    rest = iter(zeros)
    return [(found[x] if x in found else next(rest)).value for x in xs]


def with_gradients(graph: Graph, outputs: Sequence[Value]) -> Graph:
    """Return a recorded graph with its loops rolled, and then with all gradients in it."""
    deferred = [node for node in graph.nodes if node.op is GRADIENT]
    apart = {x for node in deferred for x in node.inputs[2 * node.attrs[0] :] if x is not None}
    rolled = roll(graph, outputs, apart=apart)
    kept = [rolled.check_member(value, "jit") for value in outputs]
    return _expanded(rolled, kept) if deferred else rolled


def _expanded(graph: Graph, outputs: Sequence[Value]) -> Graph:
    rebuild = Rebuild(graph, outputs)
    with rebuild.graph:
        for node in graph.nodes:
            now = rebuild.current(node)
            if node.op is GRADIENT:
                rebuild.replace(node, expanded_gradients(rebuild.graph.tracer, now))
            else:
                rebuild.place(node, now)
    return rebuild.finish()
