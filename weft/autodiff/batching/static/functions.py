"""Nodes with a derivative of the user's own, rebuilt for a batch.

The node of the batch passes the results of all examples on. Its derivative traces that of the
example's node for one example, and runs it on the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.modes import current_tracer
from ....core.op import F
from ....graph.custom import CustomGradient
from ....graph.node import Node
from ....graph.symbol import make_symbol
from ....graph.tracer import Tracer
from ..batched import Batched
from ..vmap import vmap


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

        def pull_back(inner: Tracer, copy: Node, given: list[Any]) -> Sequence[Any]:
            found: Sequence[Any] = copy.op.pull_back_node(inner, copy, given, needs, rest)
            return found

        found = self._mapped(tracer, node, gs, [True] * len(gs), pull_back)
        pairs = zip(found, self.flags, strict=True)
        return [g if g is None or flag else F.sum(g, 0) for g, flag in pairs]

    def push_forward_node(
        self, tracer: Tracer, node: Node, tangents: Sequence[Any], rest: Any
    ) -> list[Any]:
        """Return the tangents of the results."""

        def push_forward(inner: Tracer, copy: Node, given: list[Any]) -> Sequence[Any]:
            found: Sequence[Any] = copy.op.push_forward_node(inner, copy, given, rest)
            return found

        return self._mapped(tracer, node, tangents, self.flags, push_forward)

    def _mapped(
        self,
        tracer: Tracer,
        node: Node,
        given: Sequence[Any],
        given_flags: Sequence[bool],
        derivative: Callable[[Tracer, Node, list[Any]], Sequence[Any]],
    ) -> list[Any]:
        """Return the derivatives of the example's node, for all examples."""
        example, count = self.example, len(node.inputs)
        present = [i for i, x in enumerate(given) if x is not None]
        operands = [make_symbol(tracer.graph, x) for x in node.inputs if x is not None]
        flags = [*self.flags, *(given_flags[i] for i in present)]
        missing: list[bool] = []

        def derived(*symbols: Any) -> list[Any]:
            inner = current_tracer()
            values = [inner.value_of(x) for x in symbols[:count]]
            types = [y.type for y in example.outputs]
            copy = inner.add(example.op, values, example.attrs, types)
            known = dict(zip(present, symbols[count:], strict=True))
            found = derivative(inner, copy, [known.get(i) for i in range(len(given))])
            missing[:] = [x is None for x in found]
            return [x for x in found if x is not None]

        axes = tuple(0 if flag else None for flag in flags)
        batch = vmap(derived, axes, axis_size=self.size, randomness=self.randomness)
        made = iter(batch(*operands, *(given[i] for i in present)))
        return [None if gone else next(made) for gone in missing]
