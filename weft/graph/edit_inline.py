"""Nodes of one graph in another: what merging graphs and calling one inside of another share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from .custom import CustomGradient
from .draws import Draws
from .edit_sizes import Fitting, KnownSizes, fed_sizes, node_with_sizes, renamed_sizes
from .edit_wiring import copied, rewired
from .graph import Graph
from .node import Node, Value
from .special import STATE
from .text.printer import sizes_in
from .tracer import Tracer
from .verify import verify

Now = dict[Value, Value]  # what values of a graph are in another


def copy_into(
    tracer: Tracer,
    source: Graph,
    now: Now,
    sizes: KnownSizes,
    scope: tuple[str, ...] = (),
    *,
    opened: bool = False,
) -> None:
    """Append the nodes of a graph to another; `now` has what stands for some, and gets the rest.

    States are read where the other graph stands, so that random numbers go on behind its own.

    opened   whether checkpoints become plain nodes: in copies their inside cannot be followed
    """
    for node in source.nodes:
        if all(value in now for value in node.outputs):
            continue
        if node.op is STATE:
            now[node.outputs[0]] = tracer.read_state(node.attrs[0])
            continue
        inputs = [None if x is None else now[x] for x in node.inputs]
        if isinstance(node.op, CustomGradient) and node.op.nodes and (opened or sizes):
            made: Sequence[Value] = node.op.passed_on(inputs, node.attrs)
        else:
            made = _append(tracer.graph, node_with_sizes(node, inputs, sizes), scope).outputs
        now.update(zip(node.outputs, made, strict=True))


def _append(graph: Graph, node: Node, scope: tuple[str, ...]) -> Node:
    name = graph.unique_name("/".join((*scope, node.name)))
    return graph.append(node.rebuilt(node.inputs, name=name, scope=(*scope, *node.scope)))


def with_own_sizes(source: Graph, *others: Graph) -> Graph:
    """Return a graph whose unknown sizes have other names than those of the graphs given."""
    known = {variable for graph in others for variable in sizes_in(graph)}
    names = renamed_sizes(set(sizes_in(source)), known, others[-1])
    return rewired(source, {}, names) if names else source


def go_on_drawing(tracer: Tracer, source: Graph, now: Now) -> None:
    """Let further draws start behind those that were copied."""
    for state, end in Draws(source).ends():
        tracer.write_state(state, now.get(end, end))


# -- merging ---------------------------------------------------------------------------------------


def merge(graphs: Sequence[Any], *, join: bool = False) -> Graph:
    """Return one graph of all nodes of several."""
    for graph in graphs:
        if not isinstance(graph, Graph):
            raise ArgumentTypeError(f"merge: expected graphs. Received: {type(graph).__name__}")
    if not graphs:
        raise ArgumentError("merge: expected at least one graph")
    if not isinstance(join, bool):
        raise ArgumentTypeError(f"merge: join must be True or False. Received: {join!r:.60}")
    made = copied(graphs[0])
    if not made.tracer.history:  # it was loaded: nothing but its nodes tells what it draws
        go_on_drawing(made.tracer, made, {})
    for other in graphs[1:]:
        made = _with(made, other, join=join)
    verify(made)
    return made


def _with(first: Graph, other: Graph, *, join: bool) -> Graph:
    """Return a graph with the nodes of another behind its own."""
    second = with_own_sizes(other, first)
    fitting = Fitting("merge", fed_sizes(first) | fed_sizes(second))
    pairs = _same_placeholders(first, second) if join else []
    for ours, theirs in pairs:
        fitting.fit(theirs, ours)
    made = rewired(first, {}, fitting.sizes)
    now: Now = {theirs: made.aliases.get(ours, ours) for ours, theirs in pairs}
    copy_into(made.tracer, second, now, fitting.sizes)
    _take_over(made, second, now)
    made.add_origin(other)
    made.add_origin(second)
    return made


def _same_placeholders(first: Graph, second: Graph) -> list[tuple[Value, Value]]:
    by_name = {value.name: value for value in first.inputs}
    return [(by_name[v.name], v) for v in second.inputs if v.name in by_name]


def _take_over(made: Graph, second: Graph, now: Now) -> None:
    """Let a graph know all that is known of another whose nodes were copied into it."""
    both = bool(made.outputs) and bool(second.outputs)
    made.outputs = [*made.outputs, *(now[v] for v in second.outputs)] if both else []
    made.is_function = made.is_function and second.is_function
    made.counts_every_draw = made.counts_every_draw or second.counts_every_draw
    for name, value in second.names.items():
        own = made.unique_name(name)
        made.names[own], made.given_names[now[value]] = now[value], own
    made.differentiated |= {now[value] for value in second.differentiated}
    for loop, longer in second.extended.items():
        made.extended[now[loop.outputs[0]].node] = now[longer.outputs[0]].node
    earlier = {old: now[value] for old, value in second.aliases.items() if value in now}
    made.aliases = {old: v for old, v in (earlier | now).items() if old not in made} | made.aliases
    made.tracer.go_on_from(second.tracer, now.get)
    if not second.tracer.history:
        go_on_drawing(made.tracer, second, now)
