"""vmap inside a graph: trace the function for one example, then run its nodes on batches.

The function sees symbols of one example, so that gradients, loops and everything else in it are
built as outside of vmap. Its nodes are then replayed into the open graph by the interpreter of
vmap; nodes that have subgraphs or a derivative of the user's own are rebuilt around theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.errors import ArgumentError
from ....core.modes import current_tracer
from ....core.op import find_op
from ....core.shape import TensorType
from ....graph.control.body import Body, symbols_for
from ....graph.control.ops import COND, SCAN, WHILE
from ....graph.custom import CustomGradient
from ....graph.graph import Graph
from ....graph.node import Node, Value
from ....graph.scope import outermost_scope
from ....graph.special import CONSTANT, PLACEHOLDER
from ....graph.tracer import Tracer
from ..batched import Batched, make_batched
from ..interpreter import BatchInterpreter
from ..vmap import VmapCall
from .control import draws_inside, replay_cond, replay_loop
from .functions import replay_custom

CONTROL = {COND: replay_cond, WHILE: replay_loop, SCAN: replay_loop}


def vmap_of_symbols(call: VmapCall) -> Any:
    """Run a call of vmap in the open graph."""
    tracer = current_tracer()
    batches = call.batches()
    moved = [i for i, axis in enumerate(call.axes) if axis is not None]
    types = [TensorType(batches[i].shape[1:], batches[i].dtype) for i in moved]

    def example(*symbols: Any) -> Any:
        leaves = list(batches)
        for i, symbol in zip(moved, symbols, strict=True):
            leaves[i] = symbol
        return call.call(leaves)

    body = Body(tracer, "vmap", example, types, what="the result")
    replay = BatchReplay(tracer, call.size, call.randomness)
    replay.add_inputs(body.parameters, [batches[i] for i in moved], [True] * len(moved))
    replay.add_inputs(body.tracer.captured.values(), symbols_for(tracer, body.captured), None)
    finals = [body.tracer.written[state.key][1] for state in body.states]
    replay.run(body.graph, [*body.outputs, *finals])
    for state, value in zip(body.states, finals, strict=True):
        tracer.write_state(state, tracer.value_of(replay.shared(value, state.name)))
    return call.results([replay.split(y) for y in body.outputs], body.result)


class BatchReplay:
    """Runs the nodes of one example's graph on all examples, as nodes of the open graph."""

    def __init__(self, tracer: Tracer, size: Any, randomness: str) -> None:
        self.tracer = tracer
        self.interpreter = BatchInterpreter(size, tracer, randomness)
        self.found: dict[Value, Any] = {}  # a value of one example -> a Batched, or a shared symbol

    @property
    def size(self) -> Any:
        """Return the number of examples."""
        return self.interpreter.level.size

    def here(self) -> BatchReplay:
        """Return a replay of the same batch into the body that is being traced."""
        return BatchReplay(current_tracer(), self.size, self.interpreter.randomness)

    # -- values ------------------------------------------------------------------------------------

    def add_inputs(self, values: Any, tensors: Sequence[Any], flags: Sequence[bool] | None) -> None:
        """Say what the inputs of a graph are; those for which a flag holds have a batch axis."""
        for i, (value, x) in enumerate(zip(values, tensors, strict=True)):
            batched = flags is not None and flags[i]
            self.found[value] = make_batched(x, self.interpreter.level) if batched else x

    def split(self, value: Value) -> tuple[Any, bool]:
        """Return what became of a value, and whether it has a batch axis in front."""
        x = self.found[value]
        return (x.value, True) if isinstance(x, Batched) else (x, False)

    def shared(self, value: Value, name: str) -> Any:
        """Return a value that must be the same for all examples."""
        x, flag = self.split(value)
        if flag:
            raise ArgumentError(
                f"vmap: {name} is shared by all examples and cannot take a value that differs "
                "between them; return the value from the function"
            )
        return x

    # -- nodes -------------------------------------------------------------------------------------

    def run(self, graph: Graph, roots: Sequence[Value]) -> None:
        """Run the nodes that lead to the roots."""
        needed = set(graph.ancestors(roots))
        for node in graph.nodes:
            if node in needed and node.op is not PLACEHOLDER:
                with self.tracer.at(node.site), outermost_scope(node.scope):
                    self._visit(node)
        self._keep_hooks(graph)

    def _keep_hooks(self, graph: Graph) -> None:
        """Let hooks on gradients of an example see those of the batch."""
        known, here = graph.tracer.watches, self.tracer.graph.tracer.watches
        for value, watch in known.items():
            if value in self.found:
                here[self.tracer.value_of(self.split(value)[0])] = watch

    def inlined(
        self, graph: Graph, inputs: Sequence[Any], flags: Sequence[bool]
    ) -> list[tuple[Any, bool]]:
        """Run a function of one example on batches; return what `split` says of its results."""
        self.add_inputs(graph.inputs, inputs, flags)
        self.run(graph, graph.outputs)
        return [self.split(y) for y in graph.outputs]

    def _visit(self, node: Node) -> None:
        inputs = tuple(None if x is None else self.found[x] for x in node.inputs)
        found = self._results(node, inputs)
        results = found if isinstance(found, (tuple, list)) else (found,)
        self.found.update(zip(node.outputs, results, strict=True))

    def _results(self, node: Node, inputs: tuple[Any, ...]) -> Any:
        if node.op is CONSTANT:
            return self.tracer.constant(node.attrs[0].array)
        if node.op in CONTROL and self._differs(node, inputs):
            return CONTROL[node.op](self, node, inputs)
        if isinstance(node.op, CustomGradient) and self._differs(node, inputs):
            return replay_custom(self, node, inputs)
        attrs = node.attrs
        if node.op.effect:  # which is shown the whole batch
            inside = tuple(x.value if isinstance(x, Batched) else x for x in inputs)
            return self._copied(node, inside, attrs)
        if node.op is find_op("advance_state"):  # a draw stands for one of each example
            attrs = (attrs[0] * self.interpreter.draws,)
        if not self._differs(node, inputs):
            return self._copied(node, inputs, attrs)
        return self.interpreter.apply(node.op, inputs, attrs)

    def _differs(self, node: Node, inputs: tuple[Any, ...]) -> bool:
        return any(isinstance(x, Batched) for x in inputs) or draws_inside(node)

    def _copied(self, node: Node, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> list[Any]:
        """Add a node as it is: all examples share it."""
        values = [None if x is None else self.tracer.value_of(x) for x in inputs]
        types = [y.type for y in node.outputs]
        return symbols_for(self.tracer, self.tracer.add(node.op, values, attrs, types).outputs)
