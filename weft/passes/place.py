"""Placement: decide on which device every node runs, and move values between devices.

Today only the CPU runs anything: a graph with nodes placed elsewhere can be built, looked at and
checked, and a run that reaches a transfer to another device is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.device import KNOWN, is_device
from ..core.errors import ArgumentError, GraphError
from ..core.shape import TensorType
from ..graph.graph import Graph
from ..graph.node import Node, Value, subgraphs
from ..graph.special import ASSIGN, SOURCES, NodeOp
from .liveness import wanted_values
from .rewrite import Rebuild, with_bodies

HOST = "cpu"  # where feeds come from, states live and fetches go
RUNNABLE = (HOST,)
Rule = Callable[[Node], str | None]


class Transfer(NodeOp):
    """Copies a value from one device to another; it has no derivative: graphs are placed last."""

    def __init__(self) -> None:
        super().__init__("transfer", ("x",), ("source", "target"))

    def type_rule(self, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> TensorType:
        """Return the type of the value: moving changes nothing."""
        moved: TensorType = types[0]
        return moved

    def kernel(self, x: Any, source: str, target: str) -> Any:
        """Return the value; refuse devices that Weft does not run on."""
        for device in (source, target):
            if device not in RUNNABLE:
                raise ArgumentError(
                    f"the device {device!r} is not supported, only {', '.join(RUNNABLE)}; run the "
                    "graph as it was before it was placed"
                )
        return x


TRANSFER = Transfer()


def place(graph: Graph, rule: Rule | str | None = None, outputs: Any = None) -> Graph:
    """Return the graph with every node on a device, and transfers where values change devices.

    A node runs where the device scope says that it was built in, if that is not the CPU; else where
    the rule puts it; else where its operands are computed, if all on one device; else on the CPU.
    Feeds, states, constants, assignments and outputs stay on the CPU. The bodies of control flow
    run where their node does.

    rule   a function from a node to a device or None, or one device for all nodes
    """
    wanted = wanted_values(graph, outputs, "place")
    decide = _as_rule(rule)
    placed = _Placing(graph, wanted, decide).placed()
    check_placement(placed)
    return placed


def check_placement(graph: Graph) -> None:
    """Raise GraphError unless every operand is on the device of the node that takes it."""
    for node in graph.nodes:
        if node.op is TRANSFER:
            continue
        for value in node.inputs:
            if value is not None and device_of(value) != node.device:
                raise GraphError(
                    f"{node.name} runs on {node.device} and takes {value.name}, which is on "
                    f"{device_of(value)}; place(graph) inserts the transfer"
                )
        for body in subgraphs(node):
            _check_body(body, node)


def device_of(value: Value) -> str:
    """Return the device that holds a value."""
    node = value.node
    target: str = node.attrs[1] if node.op is TRANSFER else node.device
    return target


def _check_body(body: Graph, owner: Node) -> None:
    for node in body.nodes:
        if node.device != owner.device:
            raise GraphError(
                f"{owner.name} runs on {owner.device} and {node.name} in its body on {node.device}"
            )
    check_placement(body)


class _Placing:
    """Rebuilds a graph with devices."""

    def __init__(self, graph: Graph, wanted: Sequence[Value], decide: Rule) -> None:
        self.rebuild = Rebuild(graph, wanted)
        self.decide = decide
        self.moved: dict[tuple[Value, str], Value] = {}

    def placed(self) -> Graph:
        """Return the new graph."""
        for old in self.rebuild.old.nodes:
            node = self.rebuild.current(old)
            if node.op is TRANSFER:  # of an earlier placement: it may not be needed any more
                self.rebuild.replace(old, [x for x in node.inputs if x is not None])
                continue
            self.rebuild.place(old, self._on(node, self._device(node)))
        new = self.rebuild.finish()
        new.outputs = [self._at(value, HOST) for value in new.outputs]
        return new

    def _device(self, node: Node) -> str:
        if node.op in SOURCES or node.op is ASSIGN:
            return HOST
        if node.device != HOST:
            return node.device
        ruled = self.decide(node)
        return _inherited(node) if ruled is None else _known_device(ruled, node)

    def _on(self, node: Node, device: str) -> Node:
        inputs = [None if x is None else self._at(x, device) for x in node.inputs]
        node = with_bodies(node, lambda body: _all_on(body, device))
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        return node if same and node.device == device else node.rebuilt(inputs, device=device)

    def _at(self, value: Value, device: str) -> Value:
        """Return a value on a device, moved there if it is not."""
        source = device_of(value)
        if source == device:
            return value
        if (value, device) not in self.moved:
            self.moved[value, device] = self._transfer(value, source, device)
        return self.moved[value, device]

    def _transfer(self, value: Value, source: str, device: str) -> Value:
        graph, by = self.rebuild.graph, value.node
        node = graph.add(
            TRANSFER,
            (value,),
            (source, device),
            (value.type,),
            name="transfer",
            scope=by.scope,
            site=by.site,
            device=device,
        )
        return node.outputs[0]


def _inherited(node: Node) -> str:
    """Return the device on which the operands are computed, the CPU if there are several."""
    computed = [x for x in node.inputs if x is not None and x.node.op not in SOURCES]
    devices = {device_of(x) for x in computed}
    return devices.pop() if len(devices) == 1 else HOST


def _all_on(body: Graph, device: str) -> Graph:
    """Return a body with all its nodes, and those of bodies in it, on one device."""
    rebuild = Rebuild(body, body.outputs)
    for old in body.nodes:
        node = with_bodies(rebuild.current(old), lambda inner: _all_on(inner, device))
        on = node if node.device == device else node.rebuilt(node.inputs, device=device)
        rebuild.place(old, on)
    return rebuild.finish()


def _as_rule(rule: Any) -> Rule:
    if rule is None:
        return lambda node: None
    if callable(rule):
        return rule  # type: ignore[no-any-return]  # what it returns is checked for each node
    device = _known_device(rule, None)
    return lambda node: device


def _known_device(device: Any, node: Node | None) -> str:
    if not is_device(device):
        where = f" for {node.name}" if node is not None else ""
        raise ArgumentError(
            f"place: a device is one of {', '.join(KNOWN)}, with a number behind a colon if there "
            f"are several, such as 'cuda:0'. Received{where}: {device!r:.60}"
        )
    name: str = device
    return name
