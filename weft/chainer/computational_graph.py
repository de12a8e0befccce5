"""Pictures of what was computed, as text for Graphviz."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tape import Leaf, TapeNode
from .variable import Variable


class ComputationalGraph:
    """The operations behind some variables."""

    def __init__(
        self, nodes: list[Any], edges: list[tuple[Any, Any]], names: dict[int, str]
    ) -> None:
        self.nodes, self.edges, self._names = nodes, edges, names

    def dump(self, format: str = "dot") -> str:
        """Return the text of a picture: "dot"."""
        if format != "dot":
            raise NotImplementedError("Currently, only dot format is supported.")
        lines = ["digraph graphname{rankdir=TB;"]
        for node in self.nodes:
            shape = "box" if isinstance(node, TapeNode) else "oval"
            lines.append(f'{self._key(node)} [shape="{shape}",label="{self._label(node)}"];')
        lines += [f"{self._key(a)} -> {self._key(b)};" for a, b in self.edges]
        return "\n".join([*lines, "}"])

    def _key(self, node: Any) -> str:
        return f"n{id(node)}"

    def _label(self, node: Any) -> str:
        if isinstance(node, TapeNode):
            return str(node.op.name)
        return self._names.get(id(node), "variable")


def build_computational_graph(
    outputs: Sequence[Variable], *_: Any, **__: Any
) -> ComputationalGraph:
    """Return the graph of the operations that led to some variables."""
    seen: dict[int, Any] = {}
    edges: list[tuple[Any, Any]] = []
    waiting: list[Any] = [v.node for v in outputs if v.node is not None]
    names = {id(v.node): v.label for v in outputs if isinstance(v.node, Leaf)}
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        if isinstance(node, TapeNode):
            for parent in node.parents:
                if parent is not None:
                    edges.append((parent, node))
                    waiting.append(parent)
    return ComputationalGraph(list(seen.values()), edges, names)
