"""Walk over a graph: what every pass is made of.

A pass is a function `pass(graph, outputs=None) -> Graph`. It walks over the nodes once, in their
order, and appends to a new graph what becomes of each (graph/rebuild.py). Nodes that do not change
are shared between both graphs. The new graph has outputs (those given, or all results of the old
one), the inputs and names of the old one, and aliases by which values of the old graph are found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.rebuild import Rebuild, add_like, same_nodes, with_bodies
from ..graph.special import PLACEHOLDER

__all__ = ["Pass", "Rebuild", "add_like", "pass_over", "same_nodes", "with_bodies"]

Pass = Callable[[Graph, Sequence[Value] | None], Graph]


def pass_over(
    graph: Graph,
    outputs: Sequence[Value] | None,
    visit: Callable[[Rebuild, Node], Sequence[Value] | None],
    recurse: Pass,
) -> Graph:
    """Rebuild a graph: `visit` gets each node and returns values to take instead, or None.

    The nodes it gets stand on values of the new graph, and their subgraphs have been through
    `recurse`. What it returns must be in the new graph already.
    """
    rebuild = Rebuild(graph, outputs)
    for old in graph.nodes:
        node = with_bodies(rebuild.current(old), lambda body: recurse(body, None))
        instead = None if node.op is PLACEHOLDER else visit(rebuild, node)
        if instead is None:
            rebuild.place(old, node)
        else:
            rebuild.replace(old, instead)
    return rebuild.finish()
