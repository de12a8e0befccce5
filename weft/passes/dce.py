"""Dead-code elimination: keep what the outputs need."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.draws import Draws, alive_nodes
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import PLACEHOLDER
from .rewrite import Rebuild, with_bodies

__all__ = ["alive_nodes", "remove_dead"]


def remove_dead(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph without nodes that no output needs; placeholders all stay.

    As in a run, a generator moves on behind the draws that are made, and behind no others; and of a
    loop and the same loop extended for its gradient, the extended one serves both.
    """
    rebuild = Rebuild(graph, outputs)
    draws = Draws(graph)
    alive = alive_nodes(graph, rebuild.outputs, draws)
    merged = {old: new for old, new in graph.extended.items() if old in alive and new in alive}
    placed = set(merged.values())
    for node in graph.nodes:
        if node in merged:
            _place(rebuild, merged[node])
            rebuild.replace(node, rebuild.values_of(merged[node])[: len(node.outputs)])
        elif (node in alive and node not in placed) or node.op is PLACEHOLDER:
            _place(rebuild, node)
        for value in node.outputs:
            if value in draws.alias:
                rebuild.redirect(value, rebuild.value(draws.alias[value]))
    return rebuild.finish()


def _place(rebuild: Rebuild, node: Node) -> None:
    rebuild.place(node, with_bodies(rebuild.current(node), remove_dead))
