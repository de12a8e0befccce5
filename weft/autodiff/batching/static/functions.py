"""Nodes with a derivative of the user's own, rebuilt for a batch.

The node of the batch passes the results of all examples on. Its derivative traces that of the
example's node for one example, and runs it on the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.modes import current_tracer
from ....core.op import F
from ....core.shape import TensorType
from ....graph.control.body import Body
from ....graph.custom import CustomGradient
from ....graph.node import Node
from ....graph.symbol import make_symbol
from ....graph.tracer import Tracer
from ..batched import Batched


def replay_custom(replay: Any, node: Node, inputs: tuple[Any, ...]) -> list[Any]:
    """Return the results of a node for all examples."""
    pairs = [(x.value, True) if isinstance(x, Batched) else (x, False) for x in inputs]
    _, arguments, results = node.attrs
    raw = pairs[arguments : arguments + results]
    if not all(flag for _, flag in raw):  # so that gradients of all results have a batch axis
        pairs[arguments : arguments + results] = [
            (x if flag else F.broadcast_to(x, (replay.size, *x.shape)), True) for x, flag in raw
        ]
    op = BatchedGradient(node, [flag for _, flag in pairs], replay)
    values = [replay.tracer.value_of(x) for x, _ in pairs]
    types = [x.type for x in values[arguments : arguments + results]]
    made = replay.tracer.add(op, values, node.attrs, types)
    return list(
        replay.interpreter.wrapped(tuple(make_symbol(replay.tracer.graph, y) for y in made.outputs))
    )


class BatchedGradient(CustomGradient):
    """Passes the results of all examples on; its derivative is that of one example, on a batch."""

    def __init__(self, node: Node, flags: Sequence[bool], replay: Any) -> None:
        super().__init__()
        self.example = node
        self.flags = list(flags)
        self.size, self.randomness = replay.size, replay.interpreter.randomness

    def pull_back_node(
        self, tracer: Tracer, node: Node, gs: Sequence[Any], needs: Sequence[bool], rest: Any
    ) -> list[Any]:
        """Return the gradients of the operands; those that examples share are summed."""
        example = self.example

        def pull_back(inner: Tracer, copy: Node, given: list[Any]) -> Sequence[Any]:
            found: Sequence[Any] = example.op.pull_back_node(inner, copy, given, needs, rest)
            return found

        found = self._mapped(tracer, node, gs, [True] * len(gs), pull_back)
        return [self._gradient(*pair) for pair in zip(found, self.flags, strict=True)]

    def _gradient(self, pair: Any, flag: bool) -> Any:
        if pair is None:
            return None
        g, batched = pair
        if flag:
            return g if batched else F.broadcast_to(g, (self.size, *g.shape))
        return F.sum(g, 0) if batched else g * self.size

    def push_forward_node(
        self, tracer: Tracer, node: Node, tangents: Sequence[Any], rest: Any
    ) -> list[Any]:
        """Return the tangents of the results."""
        example = self.example

        def push_forward(inner: Tracer, copy: Node, given: list[Any]) -> Sequence[Any]:
            found: Sequence[Any] = example.op.push_forward_node(inner, copy, given, rest)
            return found

        found = self._mapped(tracer, node, tangents, self.flags, push_forward)
        return [None if pair is None else self._gradient(pair, True) for pair in found]

    def _mapped(
        self,
        tracer: Tracer,
        node: Node,
        given: Sequence[Any],
        given_flags: Sequence[bool],
        derivative: Callable[[Tracer, Node, list[Any]], Sequence[Any]],
    ) -> list[Any]:
        """Trace a derivative of the example's node, and run it on the batch."""
        from .vmap import BatchReplay  # noqa: PLC0415  (which knows these rules)

        present = [i for i, x in enumerate(given) if x is not None]
        operands = [make_symbol(tracer.graph, x) for x in node.inputs if x is not None]
        inputs = [*operands, *(given[i] for i in present)]
        flags = [*self.flags, *(given_flags[i] for i in present)]
        places: list[int] = []
        trace = _Trace(self.example, present, len(given), derivative, places)
        types = [_example_type(x, flag) for x, flag in zip(inputs, flags, strict=True)]
        body = Body(tracer, self.name, trace.run, types)
        replay = BatchReplay(tracer, self.size, self.randomness)
        replay.add_inputs(body.parameters, inputs, flags)
        captured = [make_symbol(tracer.graph, value) for value in body.captured]
        replay.add_inputs(body.tracer.captured.values(), captured, None)
        replay.run(body.graph, body.outputs)
        found = dict(zip(places, map(replay.split, body.outputs), strict=True))
        return [found.get(i) for i in range(trace.count)]


class _Trace:
    """Applies a derivative to a copy of an example's node."""

    def __init__(
        self,
        example: Node,
        present: Sequence[int],
        given: int,
        derivative: Callable[[Tracer, Node, list[Any]], Sequence[Any]],
        places: list[int],
    ) -> None:
        self.example, self.present, self.given = example, present, given
        self.derivative, self.places = derivative, places
        self.count = 0

    def run(self, *symbols: Any) -> list[Any]:
        """Return the derivatives that there are; remember their places."""
        inner = current_tracer()
        example, count = self.example, len(self.example.inputs)
        types = [y.type for y in example.outputs]
        copy = inner.add(example.op, [x.value for x in symbols[:count]], example.attrs, types)
        given: list[Any] = [None] * self.given
        for i, x in zip(self.present, symbols[count:], strict=True):
            given[i] = x
        found = self.derivative(inner, copy, given)
        self.count = len(found)
        self.places.extend(i for i, x in enumerate(found) if x is not None)
        return [x for x in found if x is not None]


def _example_type(x: Any, flag: bool) -> TensorType:
    return TensorType(x.shape[1:] if flag else x.shape, x.dtype)
