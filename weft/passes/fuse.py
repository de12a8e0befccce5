"""Operator folding: connected elementwise nodes become one node without temporaries."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.dtype import is_float
from ..core.op import Op, elementwise
from ..graph.graph import Graph
from ..graph.inline import inline
from ..graph.node import Node, Value
from ..graph.special import PLACEHOLDER
from .fused import FUSED
from .rewrite import Rebuild, with_bodies

LARGEST = 128  # nodes of a group


class Group:
    """Nodes that run together; the first that was added is the last to run and gives the result."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.nodes = [root]


def fuse(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph with groups of elementwise nodes of one shape fused.

    A node joins the group of its users if all of them are in one group and nothing else needs its
    result, so that nothing is computed twice and a group has one result.
    """
    groups = _groups(graph, outputs)

    rebuild = Rebuild(graph, outputs)
    for node in graph.nodes:
        group = groups.get(node)
        if group is None or len(group.nodes) == 1:
            rebuild.place(node, with_bodies(rebuild.current(node), fuse))
        elif node is group.root:
            rebuild.place(node, _fused_node(rebuild, group))
    return rebuild.finish()


def unfuse(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph with fused nodes taken apart again."""
    rebuild = Rebuild(graph, outputs)
    for node in graph.nodes:
        current = rebuild.current(node)
        if node.op is not FUSED:
            rebuild.place(node, with_bodies(current, unfuse))
            continue
        (body,) = node.attrs
        values = inline(rebuild.graph, body, [x for x in current.inputs if x is not None])
        rebuild.replace(node, [values[v] for v in body.outputs])
    return rebuild.finish()


def _groups(graph: Graph, outputs: Sequence[Value] | None) -> dict[Node, Group]:
    """Return the group of each node that can be fused, from the last node to the first."""
    needed = set(graph.results() if outputs is None else outputs)
    users = graph.users()
    found: dict[Node, Group] = {}
    for node in reversed(graph.nodes):
        if not _is_fusable(node):
            continue
        (made,) = node.outputs
        group = None if made in needed else _only_group(node, users[made], found)
        if group is None:
            found[node] = Group(node)
        else:
            found[node] = group
            group.nodes.append(node)
    return found


def _only_group(node: Node, users: list[Node], found: dict[Node, Group]) -> Group | None:
    """Return the group that all users are in, if the node can join it."""
    group = found.get(users[0]) if users else None
    if group is None or len(group.nodes) >= LARGEST or group.root.device != node.device:
        return None
    if any(found.get(user) is not group for user in users):
        return None
    return group if group.root.outputs[0].shape == node.outputs[0].shape else None


def _is_fusable(node: Node) -> bool:
    op = node.op
    if not isinstance(op, Op) or op.kind != elementwise or op.kernel is None:
        return False
    if op.variadic or op.outputs != 1 or not node.inputs or None in node.inputs:
        return False
    # Integer powers may be refused by their values, of which a block shows only some.
    return op.name != "pow" or is_float(node.outputs[0].dtype)


def _fused_node(rebuild: Rebuild, group: Group) -> Node:
    """Return one node for a group, in the place of its root."""
    nodes, root = group.nodes[::-1], group.root
    inside = {node.outputs[0] for node in nodes}
    outer = list(dict.fromkeys(x for n in nodes for x in n.inputs if x not in inside))
    operands = [rebuild.value(x) for x in outer if x is not None]
    return Node(
        FUSED,
        operands,
        (_body(nodes, outer, root),),
        [root.outputs[0].type],
        name=root.name,
        scope=root.scope,
        site=root.site,
        device=root.device,
    )


def _body(nodes: list[Node], outer: Sequence[Value | None], root: Node) -> Graph:
    """Return the nodes of a group as a function of what enters it."""
    body = Graph("fused")
    now: dict[Value | None, Value] = {}
    for i, value in enumerate(outer):
        assert value is not None  # operators with operands left out are not fused
        kind = value.type
        parameter = body.add(PLACEHOLDER, (), (kind,), (kind,), name=f"x{i}", site=root.site)
        now[value] = parameter.outputs[0]
    for node in nodes:
        made = node.rebuilt([now[x] for x in node.inputs], name=body.unique_name(node.name))
        now[node.outputs[0]] = body.append(made).outputs[0]
    body.outputs = [now[root.outputs[0]]]
    return body
