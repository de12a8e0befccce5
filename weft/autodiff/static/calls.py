"""Functions with a derivative of the user's own, in a graph.

Forward is traced like any other code. One more node passes its results on; to differentiation it is
the whole call: its gradient is what the user's backward makes of the gradients of the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.dtype import is_float
from ...core.op import F
from ...core.tensor import Tensor
from ...graph.custom import CustomGradient
from ...graph.node import Node, Value
from ...graph.symbol import Symbol, make_symbol
from ...graph.tracer import Tracer
from ..calls import FunctionCall
from .reverse import symbol_gradients


def trace_call(tracer: Tracer, call: FunctionCall, inputs: tuple[Tensor, ...]) -> list[Symbol]:
    """Trace a call of a Function and return its results."""
    symbols = [tracer.symbol_of(x) for x in inputs]
    found = call.trace(symbols)
    raw = [tracer.symbol_of(y) for y in found]
    op = TracedFunction(call, [x.value for x in symbols], [y.value for y in raw])
    operands = [*(x.value for x in (*symbols, *raw)), *op.saved]
    attrs = (call.cls.__name__, len(symbols), len(raw))
    node = tracer.add(op, operands, attrs, [y.value.type for y in raw])
    results = [make_symbol(tracer.graph, value) for value in node.outputs]
    constant = [id(y) in call.ctx._unmarked for y in found]
    return [F.stop_gradient(y) if fixed else y for y, fixed in zip(results, constant, strict=True)]


class TracedFunction(CustomGradient):
    """Passes the results of a call on; knows the call, and so its derivative.

    The tensors saved for backward are operands of the node: a copy of the node in another graph
    (the adjoint of a loop) has copies of them there.
    """

    def __init__(self, call: FunctionCall, arguments: list[Value], raw: list[Value]) -> None:
        super().__init__()
        self.call = call
        self.saved: list[Value] = []
        self.places = [self._place(t, arguments, raw) for t in call.ctx._pending]

    def _place(self, tensor: Any, arguments: list[Value], raw: list[Value]) -> Any:
        """Return how to find a saved tensor again: an operand, an output, or itself."""
        if not isinstance(tensor, Symbol):
            return "itself", tensor
        if tensor.value in arguments:
            return "operand", arguments.index(tensor.value)
        if tensor.value in raw:
            return "output", raw.index(tensor.value)
        self.saved.append(tensor.value)
        return "operand", len(arguments) + len(raw) + len(self.saved) - 1

    def _link(self, tracer: Tracer, node: Node) -> None:
        """Let saved tensors be those of the graph that a node stands in."""
        values = {"operand": node.inputs, "output": node.outputs}

        def found(kind: str, place: Any) -> Any:
            return place if kind == "itself" else make_symbol(tracer.graph, values[kind][place])

        self.call.ctx._pending = tuple(found(*place) for place in self.places)

    def pull_back_node(
        self, tracer: Tracer, node: Node, gs: Sequence[Any], needs: Sequence[bool], _: Any
    ) -> list[Any]:
        """Return what the user's backward makes of the gradients."""
        count: int = node.attrs[1]
        inputs = [make_symbol(tracer.graph, x) for x in node.inputs[:count] if x is not None]
        found = self._gradients(tracer, node, inputs, gs)
        grads = [g if need else None for g, need in zip(found, needs, strict=False)]
        return [*grads, *[None] * (len(node.inputs) - count)]

    def _gradients(
        self, tracer: Tracer, node: Node, inputs: Sequence[Symbol], gs: Sequence[Any]
    ) -> list[Any]:
        self._link(tracer, node)
        outputs = [make_symbol(tracer.graph, y) for y in node.outputs]
        complete = [F.zeros_like(y) if g is None else g for g, y in zip(gs, outputs, strict=True)]
        found = self.call.gradients(inputs, outputs.__getitem__, complete)
        types = [(x.shape, x.dtype) for x in inputs]
        floats = [g if is_float(x.dtype) else None for g, x in zip(found, inputs, strict=True)]
        return self.call.cls._op.all_fitting(self.call, types, floats)  # type: ignore[no-any-return]  # a class of the user's

    def push_forward_node(
        self, tracer: Tracer, node: Node, tangents: Sequence[Any], _: Any
    ) -> list[Any]:
        """Return the tangents of the results: the transpose of the user's backward."""
        count: int = node.attrs[1]
        inputs = [make_symbol(tracer.graph, x) for x in node.inputs[:count] if x is not None]
        outputs = [make_symbol(tracer.graph, y) for y in node.outputs]
        if hasattr(self.call.cls, "jvp"):
            self._link(tracer, node)
            return self.call.tangents(inputs, outputs.__getitem__, tangents[:count])
        seeds = [F.zeros_like(y) for y in outputs]
        pulled = self._gradients(tracer, node, inputs, seeds)
        pairs = [
            (g, t)
            for g, t in zip(pulled, tangents[:count], strict=True)
            if g is not None and t is not None
        ]
        return list(symbol_gradients([g for g, _ in pairs], seeds, [t for _, t in pairs]))
