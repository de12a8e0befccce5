"""Where the values of loops come from: what a recording has once, however often it is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from ...core.dim import is_known
from ...graph.graph import Graph
from ...graph.node import Node, Value
from ...graph.special import CONSTANT, SOURCES, Literal
from ...ops.elementwise.filling import fill_like
from ...ops.elementwise.gradient import stop_gradient
from ...ops.movement.broadcast import broadcast_to
from ..cse import exactly
from ..rewrite import Rebuild
from ..scan_edit import is_pure

FILLS = (broadcast_to, fill_like)


def sources_of(graph: Graph) -> set[Node]:
    """Return nodes that compute nothing: they are no part of a trip, but may stand in the first.

    Tracing reads a state once, makes a literal once, and detaches a state once; a state that is
    detached for one use is what the first trip takes where the others take a result.
    """
    uses = Counter(x for node in graph.nodes for x in node.inputs)
    found: set[Node] = set()
    for node in graph.nodes:
        (first, *_) = node.inputs or (None,)
        detached = node.op is stop_gradient and first is not None and first.node in found
        shared = detached and uses[node.outputs[0]] > 1
        if node.op in SOURCES or shared or (node.op in FILLS and is_fixed(node.outputs[0])):
            found.add(node)
    return found


def is_fixed(value: Value) -> bool:
    """Tell whether a value is a constant, or filled with one."""
    node = value.node
    if node.op is CONSTANT:
        return True
    return node.op in FILLS and node.inputs[0] is not None and is_fixed(node.inputs[0])


def with_plain_fills(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph with each filling of a known shape made once, and of no value.

    The state that a recurrent cell starts from has the shape of something that the first trip
    computes, and would keep that trip from being a trip like the others.
    """
    fills = {
        node for node in graph.nodes if node.op is fill_like and is_known(node.outputs[0].shape)
    }
    if not fills:
        return graph
    rebuild = Rebuild(graph, outputs)
    unused = _used_for_shape(graph, fills, rebuild.outputs)
    made: dict[Hashable, Value] = {}
    for node in graph.nodes:
        if node in fills:
            key = exactly(node.attrs), node.outputs[0].type, node.device
            if key not in made:
                made[key] = _filled(rebuild, node)
            rebuild.replace(node, [made[key]])
        elif node not in unused:
            rebuild.place(node, rebuild.current(node))
    return rebuild.finish()


def _used_for_shape(graph: Graph, fills: set[Node], outputs: Sequence[Value]) -> set[Node]:
    """Return the nodes that were made for the shapes of fillings, and for nothing else."""
    uses = Counter(x for node in graph.nodes for x in node.inputs)
    uses.update(outputs)
    unused: set[Node] = set()
    pending = list(fills)
    while pending:
        for x in pending.pop().inputs:
            uses[x] -= 1
            if x is not None and not any(uses[y] for y in x.node.outputs) and is_pure(x.node):
                unused.add(x.node)
                pending.append(x.node)
    return unused


def _filled(rebuild: Rebuild, node: Node) -> Value:
    (kind,) = (value.type for value in node.outputs)
    zero = rebuild.make(node, CONSTANT, attrs=(Literal(np.zeros((), kind.dtype)),))
    like = rebuild.make(node, broadcast_to, zero, attrs=(kind.shape,)) if kind.shape else zero
    return rebuild.make(node, fill_like, like, attrs=node.attrs)
