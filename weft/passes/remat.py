"""Rematerialisation: train in less memory by computing values of the forward part twice.

The backward part needs values of the forward part, which otherwise wait for it in memory. Here some
are dropped after the forward part and computed again just before they are needed. Operators are
pure functions (a draw takes the generator's state as an operand) and states keep their value during
a run, so the results are the same bits.
"""

from __future__ import annotations

from ..core.op import find_op
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import CONSTANT
from .recompute import Chain, Trial
from .rewrite import Rebuild

_BARRIER = find_op("checkpoint_name")


def recomputed(graph: Graph, chain: Chain, trial: Trial) -> Graph:
    """Return the graph with what a trial says running again; let it be the last pass.

    Its outputs are those of the graph.
    """
    return _Builder(graph, chain, trial).built()


class _Builder:
    """Copies a graph, adding nodes that run again before those that need them."""

    def __init__(self, graph: Graph, chain: Chain, trial: Trial) -> None:
        nodes = chain.nodes
        self.rebuild = Rebuild(graph, graph.outputs)
        self.before = {nodes[i]: [nodes[j] for j in again] for i, again in trial.clones.items()}
        self.backward = set(nodes[chain.turn + 1 :])
        self.again: dict[Value, Value] = {}  # values of the forward part, computed anew
        self.kept: dict[Value, Value] = {}  # values they are computed from, behind a barrier

    def built(self) -> Graph:
        """Return the new graph."""
        for node in self.rebuild.old.nodes:
            for other in self.before.get(node, ()):
                self._run_again(other)
            self.rebuild.place(node, self._copy(node))
        return self.rebuild.finish()

    def _run_again(self, node: Node) -> None:
        graph = self.rebuild.graph
        inputs = [None if x is None else self._apart(x) for x in node.inputs]
        clone = graph.append(node.rebuilt(inputs, name=graph.unique_name(node.name)))
        self.again.update(zip(node.outputs, clone.outputs, strict=True))

    def _apart(self, x: Value) -> Value:
        """Return an operand of what runs again: computed anew, or under a name of its own.

        Else later passes would see that a node and its copy compute the same, and share them.
        """
        known = self.again.get(x) or self.kept.get(x)
        if known is None:
            value = self.rebuild.value(x)
            if value.node.op is CONSTANT:
                return value
            node = self.rebuild.graph.add(_BARRIER, (value,), ("recomputed",), (value.type,))
            known = self.kept[x] = node.outputs[0]
        return known

    def _copy(self, node: Node) -> Node:
        if node not in self.backward:
            return self.rebuild.current(node)
        inputs = self._now(node)
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        return node if same else node.rebuilt(inputs)

    def _now(self, node: Node) -> list[Value | None]:
        """Return the operands of a node as the backward part finds them."""
        return [
            None if x is None else self.again.get(x, self.rebuild.value(x)) for x in node.inputs
        ]
