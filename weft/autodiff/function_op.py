"""A Function class as an operator: what the tape and interpreters see of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from ..core.dispatch import run
from ..core.dtype import is_float
from ..core.errors import GradientError, user_site
from ..core.imports import deferred_imports
from ..core.modes import current_transform, is_grad_enabled, no_grad
from ..core.op import F
from ..core.tape import FanNode, TapeNode, make_node, output_node
from ..core.tensor import Tensor, wrap, wrap_with_node
from .calls import FunctionCall
from .layered import is_differentiated
from .rules import TapeOp


class FunctionOp(TapeOp):
    """Stands for a Function class on the tape and before interpreters, in the place of an Op."""

    kind = "function"
    attrs: ClassVar[dict[str, Any]] = {"call": None}

    def __init__(self, cls: Any) -> None:
        self.cls = cls
        self.name = cls.__name__

    def execute(self, inputs: tuple[Tensor, ...], attrs: tuple[Any, ...]) -> Any:
        """Run forward eagerly and record it."""
        (call,) = attrs
        outputs = call.run(inputs)
        if is_grad_enabled() and any(x.requires_grad for x in inputs):
            results = _record(self, call, inputs, outputs)
        else:
            results = [wrap(y._value) for y in outputs]
        return tuple(results) if call.many else results[0]

    def trace(self, tracer: Any, inputs: tuple[Tensor, ...], attrs: tuple[Any, ...]) -> Any:
        """Trace forward into a graph, and let backward stand for its derivative there."""
        (call,) = attrs
        with deferred_imports:
            from .static.calls import trace_call  # noqa: PLC0415  (for graphs only)
        results = trace_call(tracer, call, inputs)
        return tuple(results) if call.many else results[0]

    def backward(self, node: Any, call: FunctionCall, g: Any) -> list[Any]:
        """Return the gradients of the inputs as arrays."""
        with no_grad():
            grads = self._checked(node, call, g)
        return [None if x is None else x._value for x in grads]

    def linked(self, node: Any, call: FunctionCall, g: Any) -> list[Any]:
        """Return the gradients of the inputs as tensors that can be differentiated again."""
        again = None
        if call.kept is not None:
            values = zip(call.kept, node.parents, strict=True)
            inputs = [wrap_with_node(value, parent) for value, parent in values]
            again = partial(call.again, inputs)
        return self._checked(node, call, g, again)

    def pull_back(
        self, inputs: Sequence[Any], call: FunctionCall, outputs: Any, g: Any
    ) -> list[Any]:
        """Run backward for forward mode, which differentiates it with respect to g."""
        outs = outputs if call.many else (outputs,)
        again = self._renewed(call, inputs)
        call.ctx.needs_input_grad = tuple(i in call.tensors for i in range(len(call.args)))
        return call.gradients(inputs, outs.__getitem__, g if call.many else [g], again)

    def _renewed(self, call: FunctionCall, inputs: Sequence[Any]) -> Any:
        """Let a call know what forward leaves; return how to get what it computed again."""
        if call.ctx._stale:
            traced = call.trace(inputs)
            call.ctx._seal(inputs, traced, lambda tensor: tensor)
        around = current_transform() is not None or _on_tape(inputs)
        return partial(call.again, inputs) if around and call.computed() else None

    @property
    def has_jvp(self) -> bool:
        """Tell whether the class has a rule for forward mode."""
        return hasattr(self.cls, "jvp")

    def push_forward(
        self, inputs: Sequence[Any], call: FunctionCall, outputs: Any, tangents: Sequence[Any]
    ) -> list[Any]:
        """Run jvp on the tangents of the inputs."""
        outs = outputs if call.many else (outputs,)
        found = call.tangents(inputs, outs.__getitem__, tangents, self._renewed(call, inputs))
        return [
            None if t is None else self._fitting(t, y.shape, y.dtype, i, "jvp")
            for i, (t, y) in enumerate(zip(found, outs, strict=True))
        ]

    def record(self, inputs: tuple[Tensor, ...], attrs: tuple[Any, ...]) -> tuple[Any, Any]:
        """Run forward on the values of one level; return the results and how to pull them back."""
        (call,) = attrs
        types = [(x.shape, x.dtype) for x in inputs]
        if _differentiated_below(inputs):  # there too, backward stands for the derivative
            out = run(self, inputs, attrs)
            return out, lambda g: self.all_fitting(
                call, types, self.pull_back(inputs, call, out, g)
            )
        outputs = call.trace(inputs)
        call.ctx._seal(inputs, outputs, lambda tensor: tensor)
        results = [F.stop_gradient(y) if id(y) in call.ctx._unmarked else y for y in outputs]

        def pull_back(g: Any) -> list[Any]:
            found = call.gradients(inputs, outputs.__getitem__, g if call.many else [g])
            return self.all_fitting(call, types, found)

        return tuple(results) if call.many else results[0], pull_back

    def all_fitting(
        self, call: FunctionCall, types: Sequence[tuple[Any, Any]], found: Sequence[Any]
    ) -> list[Any]:
        """Return gradients of the types of the inputs; raise where a shape is another."""
        places = zip(found, types, call.tensors, strict=True)
        return [None if x is None else self._fitting(x, *t, i) for x, t, i in places]

    def _checked(self, node: Any, call: FunctionCall, g: Any, again: Any = None) -> list[Any]:
        gs = [x if isinstance(x, Tensor) else wrap(x) for x in (g if call.many else [g])]
        grads = call.gradients(node.parents, _output_finder(node), gs, again)
        pairs = zip(grads, node.parents, strict=True)
        wanted = [None if parent is None else g for g, parent in pairs]
        return self.all_fitting(call, node.attrs, wanted)

    def _fitting(
        self, g: Any, shape: Any, dtype: Any, position: int, method: str = "backward"
    ) -> Tensor:
        what = "gradient" if method == "backward" else "tangent"
        place = f"{'argument' if method == 'backward' else 'output'} {position}"
        if not isinstance(g, Tensor):
            raise GradientError(
                f"{self.name}.{method} must return tensors. "
                f"Received for {place}: {type(g).__name__}"
            )
        if g.shape != shape:
            raise GradientError(
                f"{self.name}.{method} must return a {what} of shape {shape} for {place}. "
                f"Received: {g.shape}"
            )
        fitting: Tensor = g.to(dtype)
        return fitting


def _differentiated_below(inputs: Sequence[Any]) -> bool:
    """Tell whether a level below may differentiate: anything but batches, or the tape."""
    return is_differentiated() or _on_tape(inputs)


def _on_tape(inputs: Sequence[Any]) -> bool:
    return is_grad_enabled() and any(x.requires_grad for x in inputs)


def _record(
    op: FunctionOp, call: FunctionCall, inputs: Sequence[Tensor], outputs: list[Tensor]
) -> list[Tensor]:
    """Return the outputs behind a new node of the tape."""
    types = tuple((x.shape, x.dtype) for x in inputs)
    parents = tuple(x._node for x in inputs)
    several = outputs if call.many else None
    node = make_node(op, parents, call, types, outputs=several, site=user_site())
    return [_output(node, i, y, id(y) in call.ctx._unmarked) for i, y in enumerate(outputs)]


def _output(node: TapeNode, position: int, y: Tensor, constant: bool) -> Tensor:
    """Return one output of forward as a new tensor at its place on the tape."""
    if constant or not is_float(y.dtype):
        return wrap(y._value)
    place = output_node(node, position) if isinstance(node, FanNode) else node
    return wrap_with_node(y._value, place)


def _output_finder(node: TapeNode) -> Callable[[int], TapeNode]:
    if isinstance(node, FanNode):
        return partial(output_node, node)
    return lambda position: node
