"""Choose devices for nodes: where a program takes least time, copies counted in.

The graph is in canonical form by then, with constants folded, and operations that one kernel will
compute are placed together. Each such group, in order, goes where its operands can be had and its
work be done soonest; a few rounds more let groups follow those that need them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ..core.device import AUTO, CPU
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.placement import placed_nodes
from ..graph.special import CONSTANT, PLACEHOLDER, STATE
from ..passes.cost import CALL, is_cheap, node_cost
from ..plan.device import Device

ROUNDS = 3


def choose_devices(
    graph: Graph, devices: Mapping[str, Device], *, everything: bool = False
) -> dict[Node, str]:
    """Return where each node of a graph, whose sizes are known, runs.

    devices      those that may be chosen, by name; the first one where nothing else decides
    everything   whether nodes that were placed nowhere are placed too
    """
    free = {n for n in graph.nodes if _is_free(n, everything)}
    fixed = placed_nodes([n for n in graph.nodes if n not in free])
    groups = _groups(graph, free)
    named = {n: where for n, where in fixed.items() if n.inputs or n.device != CPU}
    choice = _Choice(graph, devices, named)
    for turn in range(ROUNDS):
        before = dict(choice.placed)
        for group in groups:
            choice.place(group, look_ahead=turn > 0)
        if choice.placed == before:
            break
    return choice.complete()


def _is_free(node: Node, everything: bool) -> bool:
    if node.op in (PLACEHOLDER, CONSTANT) or (node.op is STATE and node.device in (CPU, AUTO)):
        return False
    return node.device == AUTO or (everything and node.device == CPU and not node.pinned)


def _groups(graph: Graph, free: set[Node]) -> list[list[Node]]:
    """Return the free nodes in groups: what only passes over elements goes with its operand."""
    group_of: dict[Node, list[Node]] = {}
    groups: list[list[Node]] = []
    for node in graph.nodes:
        if node not in free:
            continue
        makers = [x.node for x in node.inputs if x is not None and x.node in group_of]
        if makers and is_cheap(node):
            group = group_of[max(makers, key=lambda n: _bytes(n.outputs))]
        else:
            group = []
            groups.append(group)
        group.append(node)
        group_of[node] = group
    return groups


class _Choice:
    """Where nodes are so far, and what it would take to have a group elsewhere."""

    def __init__(
        self, graph: Graph, devices: Mapping[str, Device], placed: dict[Node, str]
    ) -> None:
        self.graph, self.devices, self.placed = graph, devices, placed
        self.users: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            for x in node.inputs:
                if x is not None:
                    self.users.setdefault(x.node, []).append(node)

    def place(self, group: Sequence[Node], *, look_ahead: bool) -> None:
        """Put a group where it takes least."""
        best = min(self.devices, key=lambda name: self._time(group, name, look_ahead=look_ahead))
        self.placed.update(dict.fromkeys(group, best))

    def _time(self, group: Sequence[Node], name: str, *, look_ahead: bool) -> float:
        """Return the nanoseconds of a group on a device, with the copies that it causes."""
        device, members = self.devices[name], set(group)
        work = sum(node_cost(node, _shape) - CALL for node in group) / device.speed
        given = {x for n in group for x in n.inputs if x is not None and x.node not in members}
        copied = sum(self._copy(x, self._home(x.node), name) for x in given)
        if look_ahead:
            copied += sum(self._onward(node, name, members) for node in group)
        return device.launch + work + copied

    def _home(self, node: Node) -> str | None:
        """Return where a value is; None for one that is made, or fed, wherever it is needed."""
        if node.op is CONSTANT:
            return None
        if node.op is STATE or node.op is PLACEHOLDER:
            return node.device if node.device != AUTO else CPU
        return self.placed.get(node)

    def _copy(self, value: Value, source: str | None, target: str) -> float:
        if source is None or source == target:
            return 0.0
        others = [name for name in (source, target) if name in self.devices and name != CPU]
        return CALL + sum(_bytes([value]) / self.devices[name].copy_rate for name in others)

    def _onward(self, node: Node, name: str, members: set[Node]) -> float:
        """Return what it takes to copy the results of a node to those who need them."""
        targets = {
            self.placed.get(user) for user in self.users.get(node, ()) if user not in members
        }
        return sum(self._copy(y, name, t) for y in node.outputs for t in targets if t is not None)

    def complete(self) -> dict[Node, str]:
        """Return where all nodes are, sources with those who need them."""
        for node in reversed(self.graph.nodes):
            if node not in self.placed:
                wanted = {self.placed[user] for user in self.users.get(node, ())}
                self.placed[node] = wanted.pop() if len(wanted) == 1 else next(iter(self.devices))
        return self.placed


def _shape(value: Value) -> tuple[int, ...]:
    return value.shape


def _bytes(values: Sequence[Value]) -> int:
    return sum(prod(v.shape) * int(v.dtype.itemsize) for v in values)
