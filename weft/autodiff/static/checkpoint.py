"""Checkpoints in a graph: the gradient computes its own copy of the nodes.

The function is traced like any other code. One more node passes its results on; to differentiation
it is the whole function: its gradient copies the nodes behind barriers, which keep the copies apart
from the originals, and differentiates the copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.op import F
from ...core.tree import flatten
from ...graph.custom import CustomGradient
from ...graph.frontend import open_tracer
from ...graph.graph import Graph
from ...graph.inline import copy_nodes
from ...graph.node import Node, Value
from ...graph.special import CONSTANT, SOURCES
from ...graph.symbol import Symbol, make_symbol
from ...graph.tracer import Tracer

PullBack = Callable[..., dict[Value, Any]]


def checkpoint_in_graph(
    fn: Callable[..., Any], saves: Callable[..., bool], args: Any, kwargs: Any
) -> Any:
    """Trace a function, and let its gradient compute it again."""
    tracer = open_tracer("checkpoint")
    before = set(tracer.graph.nodes)
    leaves, structure = flatten(fn(*args, **kwargs))
    own = [i for i, y in enumerate(leaves) if _made_since(y, tracer.graph, before)]
    if not own:
        return structure.unflatten(leaves)
    op = GraphCheckpoint(tracer.graph, before, [leaves[i].value for i in own], saves)
    operands = [*op.arguments, *op.results, *op.kept]
    attrs = ("checkpoint", len(op.arguments), len(op.results))
    node = tracer.add(op, operands, attrs, [value.type for value in op.results])
    for i, value in zip(own, node.outputs, strict=True):
        leaves[i] = make_symbol(tracer.graph, value)
    return structure.unflatten(leaves)


def _made_since(y: Any, graph: Graph, before: set[Node]) -> bool:
    return (
        isinstance(y, Symbol)
        and y.graph is graph
        and y.value.node not in before
        and y.value.node.op not in SOURCES
    )


class GraphCheckpoint(CustomGradient):
    """Passes the results of a function on; knows the nodes that made them.

    nodes       those to copy, in order
    arguments   the values they take from outside
    kept        the values that the policy saves
    """

    def __init__(
        self, graph: Graph, before: set[Node], results: list[Value], saves: Callable[..., bool]
    ) -> None:
        super().__init__()
        self.results = results
        made = {node for node in graph.nodes if node not in before and node.op not in SOURCES}
        self.nodes = [node for node in graph.ancestors(results) if node in made]
        inside = {value for node in self.nodes for value in node.outputs}
        used = [x for node in self.nodes for x in node.inputs if x is not None and x not in inside]
        self.arguments = list(dict.fromkeys(used))
        self.kept = [y for node in self.nodes if _is_saved(node, saves) for y in node.outputs]

    def pull_back_node(
        self,
        tracer: Tracer,
        node: Node,
        gs: Sequence[Any],
        needs: Sequence[bool],
        pull_back: PullBack,
    ) -> list[Any]:
        """Return the gradients of what the function takes from outside."""
        copies = _Copies(self, tracer, node)
        roots = [copies.values[y] for y in self.results]
        pairs = [(y, g) for y, g in zip(roots, gs, strict=True) if g is not None]
        found = copies.pull([y for y, _ in pairs], [g for _, g in pairs], pull_back)
        grads = [
            found.get(copies.values[x]) if need else None
            for x, need in zip(self.arguments, needs, strict=False)
        ]
        return [*grads, *[None] * (len(node.inputs) - len(grads))]

    def push_forward_node(
        self, tracer: Tracer, node: Node, tangents: Sequence[Any], _: Any
    ) -> list[Any]:
        """Return the tangents of the results, which forward mode knows already."""
        _, arguments, results = node.attrs
        return list(tangents[arguments : arguments + results])


class _Copies:
    """The nodes of a checkpoint, copied into the graph that a gradient is built in.

    values    what stands for each value in the copies
    copied    the copies of values that were kept: derivatives pass there, and nothing reads them
    """

    def __init__(self, op: GraphCheckpoint, tracer: Tracer, node: Node) -> None:
        self.op, self.tracer = op, tracer
        count = len(op.arguments)
        mark = tracer.root.graph.unique_name("checkpoint")
        given = [x for x in node.inputs[:count] if x is not None]
        kept = [x for x in node.inputs[count + len(op.results) :] if x is not None]
        self.values = {
            x: self._behind_barrier(y, mark) for x, y in zip(op.arguments, given, strict=True)
        }
        held = {x: self._behind_barrier(y, mark) for x, y in zip(op.kept, kept, strict=True)}
        self.copied: dict[Value, Value] = {}
        for inner in op.nodes:
            copy_nodes(tracer.graph, [inner], self.values)
            for value in inner.outputs:
                if value in held:
                    self.copied[value] = self.values[value]
                    self.values[value] = held[value]

    def _behind_barrier(self, x: Value, mark: str) -> Value:
        if x.node.op is CONSTANT:
            return x  # which passes may know, and which costs nothing
        symbol: Symbol = F.checkpoint_name(make_symbol(self.tracer.graph, x), mark)
        return symbol.value

    def pull(self, roots: list[Value], seeds: list[Any], pull_back: PullBack) -> dict[Value, Any]:
        """Return gradients; those of kept values pass on to their copies."""
        ends = [self.values[x] for x in self.op.arguments]
        same = {self.values[x]: copy for x, copy in self.copied.items()}
        return pull_back(self.tracer, roots, seeds, ends, same)


def _is_saved(node: Node, saves: Callable[..., bool]) -> bool:
    types = [None if x is None else x.type for x in node.inputs]
    return bool(saves(node.op, *types, **dict(zip(node.op.attrs, node.attrs, strict=True))))
