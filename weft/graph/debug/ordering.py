"""Let effects wait for something: for what decides whether a run goes on at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.effects import CHAIN
from ...core.errors import GraphError
from ..draws import Draws
from ..graph import Graph
from ..node import Node, Value
from ..rebuild import Rebuild
from ..special import SOURCES, STATE
from ..state import LINK
from .effects import Array, EffectOp


class _After(EffectOp):
    """Passes a link on when other values are known, and shows nothing."""

    def __init__(self) -> None:
        super().__init__("after", (), lambda arrays, place: None, lambda operands: True)

    def kernel(self, link: Array, operands: Sequence[Array], *attrs: Any) -> Array:
        """Return the next link; nobody is shown anything."""
        after: Array = link + 1
        return after


AFTER = _After()


def effects_behind(graph: Graph, value: Value) -> Rebuild | None:
    """Return a graph rebuilt so that its effects happen when a value is known; None without any.

    What the value needs is computed first, and must not have effects itself.
    """
    links = Draws(graph).links
    if not links:
        return None
    needed = set(graph.ancestors([value]))
    if any(not links.isdisjoint(node.outputs) for node in needed):
        raise GraphError("what decides about the path is computed by a loop that shows values")
    rebuild = Rebuild(graph, graph.outputs)
    early = [node for node in graph.nodes if node in needed or node.op in SOURCES]
    for node in early:
        rebuild.place(node, rebuild.current(node))
    start = next(n for n in early if n.op is STATE and n.attrs[0].owner is CHAIN).outputs[0]
    name = rebuild.graph.unique_name(AFTER.name)
    waits = Node(AFTER, (start, rebuild.value(value)), (name, ""), [LINK], name=name)
    rebuild.redirect(start, rebuild.graph.append(waits).outputs[0])
    for node in graph.nodes:
        if node not in rebuild.graph:
            rebuild.place(node, rebuild.current(node))
    return rebuild
