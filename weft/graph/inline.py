"""Copy the nodes of one graph into another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .graph import Graph
from .node import Node, Value
from .rebuild import Rebuild, with_bodies
from .special import PLACEHOLDER


def inline(target: Graph, source: Graph, inputs: Sequence[Value]) -> dict[Value, Value]:
    """Append a function's nodes to a graph, on given inputs; return what its values became.

    It is for derivatives, which show nothing: effects are left out. Hooks on gradients are kept.
    """
    mapping = dict(zip(source.inputs, inputs, strict=True))
    if _may_show(source):
        plain, now = _without_effects(source)
        copy_nodes(target, plain.nodes, mapping)
        mapping = {x: mapping[now.value(x)] for x in source.values()}
    else:
        copy_nodes(target, source.nodes, mapping)
    hooks = source.tracer.watches
    target.tracer.watches.update((mapping[x], hooks[x]) for x in hooks if x in mapping)
    return mapping


def _may_show(graph: Graph) -> bool:
    return any(node.op.effect or node.op.kind == "control" for node in graph.nodes)


def _without_effects(graph: Graph) -> tuple[Graph, Rebuild]:
    """Return a function that computes the same and shows nothing, and what became of values."""
    rebuild = Rebuild(graph, graph.outputs)
    for old in graph.nodes:
        node = with_bodies(rebuild.current(old), _shows_nothing)
        if node.op.effect:
            rebuild.replace(old, node.inputs[:1])  # type: ignore[arg-type]  # a link is never left out
        else:
            rebuild.place(old, node)
    return rebuild.finish(), rebuild


def _shows_nothing(body: Graph) -> Graph:
    if not _may_show(body):
        return body
    made, now = _without_effects(body)
    hooks = body.tracer.watches
    made.tracer.watches.update((now.value(x), hooks[x]) for x in hooks)
    return made


def copy_nodes(
    target: Graph, nodes: Iterable[Node], mapping: dict[Value, Value]
) -> dict[Value, Value]:
    """Append copies of nodes whose inputs are in the mapping, which is extended and returned."""
    for node in nodes:
        if node.op is PLACEHOLDER:
            continue
        inputs = [None if x is None else mapping[x] for x in node.inputs]
        name = target.unique_name(node.name)
        copy = target.append(node.rebuilt(inputs, name=name))
        mapping.update(zip(node.outputs, copy.outputs, strict=True))
    return mapping


def function_graph(
    name: str, nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]
) -> Graph:
    """Return a graph made of nodes that exist: a function from inputs to outputs."""
    graph = Graph(name)
    for node in nodes:
        graph.append(node)
    graph.inputs = list(inputs)
    graph.outputs = list(outputs)
    return graph
