"""What a picture of a graph shows: boxes for nodes, groups for scopes, edges between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...graph.node import Node, Value, attr_items, is_graph, subgraphs
from ...graph.special import STATE
from .labels import (
    TITLE_LIMIT,
    detail_lines,
    is_inline,
    kind_of,
    operands_text,
    title_of,
    tooltip,
    type_lines,
)
from .style import shortened

Scope = tuple[str, ...]


@dataclass(eq=False)
class Box:
    """A rectangle with text: a node, or a scope that is not opened."""

    kind: str
    title: str
    details: tuple[str, ...]
    tooltip: str
    group: PictureGroup
    nodes: int = 1


@dataclass(eq=False)
class PictureGroup:
    """A frame around boxes and groups: a scope, a control-flow node or one of its subgraphs."""

    kind: str
    title: str
    tooltip: str
    group: PictureGroup | None
    children: list[Box | PictureGroup] = field(default_factory=list)


Item = Box | PictureGroup


@dataclass(eq=False)
class Picture:
    """The outermost group, and pairs of items: who makes a value, and who takes it."""

    root: PictureGroup
    edges: list[tuple[Item, Item]]


def make_picture(
    graph: Any, nodes: Sequence[Node] | None = None, depth: int | None = None
) -> Picture:
    """Return the picture of a graph, or of some of its nodes.

    depth   how many groups inside one another are opened; None opens all
    """
    root = PictureGroup("scope", graph.name, "", None)
    picture = Picture(root, [])
    _Painter(graph, picture, root, 0, depth).paint(graph.nodes if nodes is None else nodes)
    return picture


class _Painter:
    """Puts the nodes of one graph into a group of a picture.

    level   how many groups are open around
    base    the scope around the whole graph, if it is a subgraph
    """

    def __init__(
        self,
        graph: Any,
        picture: Picture,
        group: PictureGroup,
        level: int,
        depth: int | None,
        base: Scope = (),
    ) -> None:
        self.graph = graph
        self.picture = picture
        self.level = level
        self.depth = depth
        self.base = base
        self.scopes: dict[Scope, Item] = {(): group}
        self.items: dict[Node, Item] = {}
        self.leaving: dict[Box, dict[Value, None]] = {}

    def paint(self, nodes: Sequence[Node]) -> None:
        """Show some nodes, which must be in order."""
        used = {value for node in nodes for value in node.inputs}
        results = set(self.graph.outputs)
        homes = self._homes(nodes)
        for node in nodes:
            hidden = is_inline(node) and node.outputs[0] in used and not results & {*node.outputs}
            if not hidden:
                self._show(node, homes[node])
        seen: set[tuple[Item, Item]] = set()
        for node in nodes:
            self._join(node, seen)
        self._show_outputs()
        for box, values in self.leaving.items():
            box.details += type_lines(tuple(values))

    def _homes(self, nodes: Sequence[Node]) -> dict[Node, Scope]:
        """Return the scope in which to show each node.

        A state belongs to no scope of the program: it is shown in the one it is named after, or
        else where it is first used.
        """
        homes = {node: self._inner_scope(node) for node in nodes}
        for node in nodes:
            for value in node.inputs:
                if value is not None and value.node.op is STATE and not homes.get(value.node, True):
                    homes[value.node] = homes[node]
        return homes

    def _inner_scope(self, node: Node) -> Scope:
        scope = tuple(node.name.split("/")[:-1]) if node.op is STATE else node.scope
        return scope[len(common_scope([scope, self.base])) :]

    # -- boxes and groups --------------------------------------------------------------------------

    def _show(self, node: Node, scope: Scope) -> None:
        container = self._container(scope)
        if isinstance(container, Box):
            container.nodes += 1
            many = "s" if container.nodes > 1 else ""
            container.details = (f"{container.nodes} node{many}",)
            self.items[node] = container
        elif subgraphs(node) and self._opens(len(scope)):
            self.items[node] = self._control(node, container, len(scope))
        else:
            title = title_of(node, self.graph.given_names)
            lines = detail_lines(node, title)
            self.items[node] = _boxed(container, kind_of(node), title, lines, tooltip(node))

    def _container(self, scope: Scope) -> Item:
        """Return the group of a scope, or the box of the outermost scope that is not opened."""
        known = self.scopes.get(scope)
        if known is None:
            parent = self._container(scope[:-1])
            known = parent if isinstance(parent, Box) else self._scope(scope, parent)
            self.scopes[scope] = known
        return known

    def _scope(self, scope: Scope, parent: PictureGroup) -> Item:
        title, path = shortened(scope[-1], TITLE_LIMIT), "/".join(scope)
        if self._opens(len(scope) - 1):
            return _grouped(parent, "scope", title, path)
        box = _boxed(parent, "scope", title, (), path)
        box.nodes = 0
        return box

    def _opens(self, level: int) -> bool:
        return self.depth is None or self.level + level < self.depth

    def _control(self, node: Node, container: PictureGroup, level: int) -> PictureGroup:
        """Return a group for a control-flow node, with its subgraphs inside."""
        title = title_of(node, self.graph.given_names)
        types = ", ".join(type_lines(node.outputs))
        heading = f"{title} {operands_text(node)} → {types}".replace("  ", " ")
        group = _grouped(container, "control", heading, tooltip(node))
        level += self.level + 1
        for name, inner in zip(subgraph_names(node), subgraphs(node), strict=True):
            nested = _grouped(group, "subgraph", name, f"{node.name}: {name}")
            scope = self.base + self._inner_scope(node)
            _Painter(inner, self.picture, nested, level, self.depth, scope).paint(inner.nodes)
        return group

    def _show_outputs(self) -> None:
        """Mark the results of a graph that is a function."""
        for i, value in enumerate(self.graph.outputs):
            source = self.items.get(value.node)
            if source is not None:
                kind = type_lines((value,))
                box = _boxed(self._container(()), "output", f"output {i}", kind, value.name)  # type: ignore[arg-type]  # the outermost is a group
                self.picture.edges.append((source, box))

    # -- edges -------------------------------------------------------------------------------------

    def _join(self, node: Node, seen: set[tuple[Item, Item]]) -> None:
        target = self.items.get(node)
        for value in node.inputs:
            source = None if value is None else self.items.get(value.node)
            if source is None or target is None or source is target:
                continue
            if isinstance(source, Box) and source.kind == "scope":
                self.leaving.setdefault(source, {})[value] = None  # type: ignore[index]  # not None
            if (source, target) not in seen:
                seen.add((source, target))
                self.picture.edges.append((source, target))


def _boxed(
    group: PictureGroup, kind: str, title: str, details: tuple[str, ...], tooltip: str
) -> Box:
    box = Box(kind, title, details, tooltip, group)
    group.children.append(box)
    return box


def _grouped(parent: PictureGroup, kind: str, title: str, tooltip: str) -> PictureGroup:
    group = PictureGroup(kind, title, tooltip, parent)
    parent.children.append(group)
    return group


def common_scope(scopes: Iterable[Scope]) -> Scope:
    """Return the scope that some scopes have in common.

    >>> common_scope([("net", "conv"), ("net", "head", "fc")])
    ('net',)
    """
    first, *others = scopes
    for other in others:
        length = 0
        while length < min(len(first), len(other)) and first[length] == other[length]:
            length += 1
        first = first[:length]
    return first


def subgraph_names(node: Node) -> list[str]:
    """Return what to call the subgraphs of a node: the names of the attributes they are."""
    names: list[str] = []
    for name, attr in zip(node.op.attrs, node.attrs, strict=True):
        inner = subgraphs_of(attr)
        short = name.removesuffix("_graph")
        names += [short] if len(inner) == 1 else [f"{short} {i}" for i in range(len(inner))]
    return names


def subgraphs_of(attr: Any) -> list[Any]:
    """Return the graphs in one attribute."""
    return [item for item in attr_items(attr) if is_graph(item)]
