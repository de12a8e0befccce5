"""A scan that can be taken apart: what moves out of its body runs once, before or after the loop.

Values of the body keep their identity while it is edited; `now` says which of them come from
outside. `build` makes the new node, without whatever nobody needs any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core.op import Op, find_op, random
from ..core.shape import TensorType
from ..graph.control.shapes import ScanLoop
from ..graph.graph import Graph
from ..graph.node import Node, Value, subgraphs
from ..graph.special import CONSTANT, PLACEHOLDER
from .rewrite import Rebuild


@dataclass
class Carry:
    """A carry: as it enters a step, where it starts, as it leaves, and the loop's result."""

    entering: Value
    start: Value
    leaving: Value
    result: Value


class ScanEdit:
    """A scan node under change.

    captured, xs   values of the body, and what they are outside of it
    rows           values of the body that are stacked, and the results of the loop they make
    now            values of the body that new inputs of it stand for
    """

    def __init__(self, rebuild: Rebuild, old: Node, node: Node) -> None:
        self.rebuild = rebuild
        self.node = node
        self.loop = loop = ScanLoop(node)
        self.steps: int = loop.length
        n, m = loop.carries, loop.carries + loop.xs
        outside: list[Any] = list(node.inputs)
        inside, results = loop.body.inputs, loop.results
        parts = zip(inside[:n], outside[:n], results[:n], old.outputs[:n], strict=True)
        self.carries = [Carry(*part) for part in parts]
        self.xs: dict[Value, Value] = dict(zip(inside[n:m], outside[n:m], strict=True))
        self.captured: dict[Value, Value] = dict(zip(inside[m:], outside[m:], strict=True))
        self.rows = list(zip(results[n:], old.outputs[n:], strict=True))
        self.nodes = [x for x in loop.body.nodes if x.op is not PLACEHOLDER]
        self.now: dict[Value, Value] = {}
        self.invariant = self._invariant_values()
        self.finals: list[tuple[Value, Any]] = []  # results, and what computes them afterwards
        self.stacks: dict[Value, Value] = {}

    # -- what is what ----------------------------------------------------------------------------

    def _invariant_values(self) -> set[Value]:
        """Return the values that are the same in every step."""
        found = set(self.captured)
        for node in self.nodes:
            if node.op is CONSTANT or (
                is_pure(node) and all(x is None or x in found for x in node.inputs)
            ):
                found.update(node.outputs)
        return found

    def users(self, value: Value) -> int:
        """Return how often the body uses a value, counting results."""
        uses = sum(x is value for node in self.nodes for x in node.inputs)
        return uses + sum(leaves is value for leaves in self.results())

    def results(self) -> list[Value]:
        """Return what a step gives."""
        return [*(c.leaving for c in self.carries), *(value for value, _ in self.rows)]

    # -- outside ---------------------------------------------------------------------------------

    def outside(self, value: Value | None) -> Any:
        """Return an invariant value in the graph around the loop, computing it there once."""
        if value is None or value in self.captured:
            return self.captured.get(value) if value is not None else None
        inputs = [self.outside(x) for x in value.node.inputs]
        made = self.place(value.node.rebuilt(inputs))
        self.captured.update(zip(value.node.outputs, made.outputs, strict=True))
        return self.captured[value]

    def place(self, node: Node) -> Node:
        """Add a node to the graph around the loop."""
        name = self.rebuild.graph.unique_name(node.name)
        return self.rebuild.graph.append(node.rebuilt(node.inputs, name=name))

    def make(self, name: str, *inputs: Any, attrs: tuple[Any, ...] = ()) -> Value:
        """Return the result of a new node outside; its attributes must be in canonical form."""
        return self.rebuild.make(self.node, find_op(name), *inputs, attrs=attrs)

    # -- changes ---------------------------------------------------------------------------------

    def capture(self, value: Value) -> None:
        """Compute an invariant value before the loop."""
        outside = self.outside(value)
        entering = self._entering(value.type, value)
        self.captured[entering] = outside

    def take_row(self, value: Value, stacked: Value) -> None:
        """Let a step take a value from a stack that is made before the loop."""
        self.xs[self._entering(value.type, value)] = stacked
        self.xs[value] = stacked

    def _entering(self, kind: TensorType, value: Value) -> Value:
        name = f"{value.name.replace(':', '_')}_outside"
        node = Node(PLACEHOLDER, (), (kind,), (kind,), name=name)
        self.now[value] = node.outputs[0]
        return node.outputs[0]

    def stack_of(self, value: Value) -> Any:
        """Return what gives a value of all steps, once the loop is built; stack it if need be."""
        if value not in self.xs and all(found is not value for found, _ in self.rows):
            self.rows.append((value, value))  # no result of the old loop
        return lambda: self.xs.get(value) or self.stacks[value]

    # -- the new loop ----------------------------------------------------------------------------

    def build(self) -> None:
        """Place the new loop, and what is computed after it."""
        body, xs, captured = self._body()
        inputs = [c.start for c in self.carries] + [*xs, *captured]
        types = [c.start.type for c in self.carries]
        types += [TensorType((self.steps, *v.shape), v.dtype) for v, _ in self.rows]
        _, _, _, length, reverse, until, _ = self.node.attrs
        attrs = (body, len(self.carries), len(xs), length, reverse, until, self._threads())
        made = self.place(self.node.rebuilt(inputs, attrs=attrs, types=types))
        n = len(self.carries)
        for carry, result in zip(self.carries, made.outputs[:n], strict=True):
            self.rebuild.redirect(carry.result, result)
        for (value, old), result in zip(self.rows, made.outputs[n:], strict=True):
            self.stacks.setdefault(value, result)
            self.rebuild.redirect(old, result)
        for old, compute in self.finals:
            self.rebuild.redirect(old, compute())

    def _threads(self) -> Any:
        """Return by which carries states pass through, counted anew."""
        places = {c.entering: i for i, c in enumerate(self.carries)}
        inside = self.loop.body.inputs
        return tuple((places[inside[i]],) * 2 for i, _ in self.node.attrs[-1])

    def _body(self) -> tuple[Graph, list[Value], list[Value]]:
        """Return the new body, and what its xs and what it captures are outside."""
        alive = self._alive()
        xs = [x for x in self.xs if x in alive and x.node.op is PLACEHOLDER]
        captured = [x for x in self.captured if x in alive and x.node.op is PLACEHOLDER]
        graph = Graph(self.loop.body.name)
        mapping: dict[Value, Value] = {}
        for value in (*(c.entering for c in self.carries), *xs, *captured):
            graph.append(value.node)
        for node in self.nodes:
            if any(y in alive for y in node.outputs):
                inputs = [self._resolved(x, mapping) for x in node.inputs]
                same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
                copy = graph.append(node if same else node.rebuilt(inputs))
                mapping.update(zip(node.outputs, copy.outputs, strict=True))
        graph.outputs = [self._resolved(y, mapping) for y in self.results()]  # type: ignore[misc]  # a result is never left out
        return graph, [self.xs[x] for x in xs], [self.captured[x] for x in captured]

    def _resolved(self, value: Value | None, mapping: dict[Value, Value]) -> Value | None:
        if value is None:
            return None
        return self.now.get(value) or mapping.get(value, value)

    def _alive(self) -> set[Value]:
        """Return the values that the new body computes or takes."""
        alive: set[Value] = set()
        pending = self.results()
        while pending:
            value = pending.pop()
            value = self.now.get(value, value)
            if value not in alive:
                alive.add(value)
                pending += [x for x in value.node.inputs if x is not None]
        return alive


def is_pure(node: Node) -> bool:
    """Tell whether a node gives the same whenever and wherever it runs."""
    return isinstance(node.op, Op) and node.op.kind != random and not subgraphs(node)


def reshaped(edit: ScanEdit, value: Value, shape: Sequence[int]) -> Value:
    """Return a value outside in another shape."""
    same = value.shape == tuple(shape)
    return value if same else edit.make("reshape", value, attrs=(tuple(shape),))
