"""What a call of a user-defined Function leaves on the tape.

The node keeps what `save_for_backward` was given as arrays with their places (which input, which
output), never as tensors: no cycle keeps a dead output alive, and the links for higher derivatives
are made again when backward reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

from ..core.dispatch import run
from ..core.dtype import is_float
from ..core.errors import ArgumentTypeError, GradientError, user_site
from ..core.late import late_function
from ..core.modes import current_interpreter, is_grad_enabled, no_grad
from ..core.op import F
from ..core.tape import FanNode, Node, next_order, output_node
from ..core.tensor import Tensor, wrap, wrap_with_node

Link = tuple[str, int]  # ("input", 0), ("output", 1) or ("value", 0): where a saved tensor stood


class Context:
    """What forward leaves for backward: saved tensors, and any attribute the user sets."""

    _saved: tuple[tuple[Any, Link], ...] = ()
    _pending: tuple[Tensor | None, ...] = ()
    _unmarked: tuple[int, ...] = ()
    _places: _Places | None = None
    _stale = False  # True if forward ran on a batch and left nothing here
    needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs, outputs or other tensors for backward, where `saved_tensors` gives them."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise ArgumentTypeError(
                    "save_for_backward takes tensors (or None); set other values as attributes: "
                    f"ctx.name = value. Received: {type(tensor).__name__}"
                )
        self._pending = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Return the saved tensors, linked to the graph so that they can be differentiated."""
        if self._places is None or self._pending:  # in a graph, symbols are kept as they are
            return self._pending
        return tuple(self._places.link(value, link) for value, link in self._saved)

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Declare outputs that carry no gradient although they are floating-point."""
        self._unmarked = (*self._unmarked, *map(id, outputs))

    def _seal(
        self, inputs: Sequence[Any], outputs: Sequence[Any], keep: Callable[[Any], Any]
    ) -> None:
        """Turn what is to be saved into values, arrays on the tape, and places."""
        places = {id(x): ("input", i) for i, x in enumerate(inputs) if isinstance(x, Tensor)}
        places |= {id(y): ("output", i) for i, y in enumerate(outputs) if id(y) not in places}
        self._saved = tuple(
            (None if t is None else keep(t), places.get(id(t), ("value", i)))
            for i, t in enumerate(self._pending)
        )
        self._pending = ()


class _Places:
    """Finds the graph positions of saved values again, while backward runs."""

    def __init__(
        self,
        inputs: Sequence[Any],
        output: Callable[[int], Any],
        again: Callable[[], tuple[Any, ...]] | None,
    ) -> None:
        self.inputs = inputs
        self.output = output
        self.again = again
        self.repeated: tuple[Any, ...] | None = None

    def link(self, value: Any, link: Link) -> Tensor | None:
        """Return a saved value as a tensor at its place: a tensor, or a node of the tape."""
        if value is None:
            return None
        kind, position = link
        if kind == "value":
            return self._computed(value, position)
        place = self.inputs[position] if kind == "input" else self.output(position)
        return place if isinstance(place, Tensor) else wrap_with_node(value, place)

    def _computed(self, value: Any, position: int) -> Tensor:
        """Return what forward computed and saved; again, if its own derivative is wanted."""
        if self.again is None:
            return value if isinstance(value, Tensor) else wrap(value)
        if self.repeated is None:
            self.repeated = self.again()
        found: Tensor = self.repeated[position]
        return found


class Call:
    """One call of a Function: its arguments, its context, and the form of its result."""

    __slots__ = ("args", "cls", "ctx", "kept", "kwargs", "many", "outputs", "tensors")

    def __init__(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for name, value in kwargs.items():
            if isinstance(value, Tensor) and value.requires_grad:
                raise GradientError(
                    f"{cls.__name__}: the tensor {name!r} requires gradients and must be passed "
                    "by position; backward returns gradients of positional arguments only"
                )
        self.cls = cls
        self.kwargs = kwargs
        self.tensors = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        self.args = tuple(None if isinstance(x, Tensor) else x for x in args)
        self.ctx: Context = Context()
        self.outputs: list[Any] = []  # per output: None for a tensor, else the value itself
        self.many = False
        self.kept: list[Any] | None = None  # the inputs, where forward may have to run again

    def filled(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the positional arguments with these tensors in their places."""
        args = list(self.args)
        for i, tensor in zip(self.tensors, tensors, strict=True):
            args[i] = tensor
        return args

    def run(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run forward and return the output tensors, keeping the form of the result."""
        args = self.filled(tensors)
        self.ctx = ctx = Context()
        recording = is_grad_enabled()
        ctx.needs_input_grad = tuple(
            recording and isinstance(x, Tensor) and x.requires_grad for x in args
        )
        with no_grad():
            found = self._split(self.cls.forward(ctx, *args, **self.kwargs))
        ctx._seal(tensors, found, _array_of)
        self.kept = [x._value for x in tensors] if self.computed() else None
        return found

    def computed(self) -> bool:
        """Tell whether forward saved floats that are neither inputs nor outputs."""
        return any(
            link[0] == "value" and value is not None and is_float(value.dtype)
            for value, link in self.ctx._saved
        )

    def again(self, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        """Run forward once more, differentiably; return what it saves."""
        before = self.ctx
        try:
            self.trace(tensors)
            return self.ctx._pending
        finally:
            self.ctx = before

    def trace(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run forward on symbols and return its outputs; what it saves stays symbols."""
        args = self.filled(tensors)
        self.ctx = Context()
        self.ctx.needs_input_grad = tuple(isinstance(x, Tensor) for x in args)
        return self._split(self.cls.forward(self.ctx, *args, **self.kwargs))

    def _split(self, result: Any) -> list[Tensor]:
        """Return the tensors of a result; remember its form and its other values."""
        self.many = isinstance(result, (tuple, list))
        parts = list(result) if self.many else [result]
        self.outputs = [None if isinstance(y, Tensor) else (y,) for y in parts]
        found = [y for y in parts if isinstance(y, Tensor)]
        if not found:
            raise ArgumentTypeError(
                f"{self.cls.__name__}.forward must return a tensor or a tuple with tensors. "
                f"Received: {type(result).__name__}"
            )
        return found

    def arrange(self, tensors: Sequence[Any]) -> Any:
        """Return output tensors in the form in which forward returned them."""
        given = iter(tensors)
        parts = tuple(next(given) if kept is None else kept[0] for kept in self.outputs)
        return parts if self.many else parts[0]

    def gradients(
        self,
        inputs: Sequence[Any],
        output: Callable[[int], Any],
        gs: Sequence[Any],
        again: Callable[[], tuple[Any, ...]] | None = None,
    ) -> list[Any]:
        """Run backward and return the gradients of the input tensors.

        `inputs` and `output(i)` are the tensors, or their nodes, that saved values belong to.
        `again` gives what forward computed and saved in a form that can be differentiated.
        """
        given = iter(gs)
        grads = [next(given) if kept is None else None for kept in self.outputs]
        with self._linked(inputs, output, again):
            result = self.cls.backward(self.ctx, *grads)
        found = list(result) if isinstance(result, (tuple, list)) else [result]
        self._check_count(found)
        return [found[i] for i in self.tensors]

    def tangents(
        self,
        inputs: Sequence[Any],
        output: Callable[[int], Any],
        tangents: Sequence[Any],
        again: Callable[[], tuple[Any, ...]] | None = None,
    ) -> list[Any]:
        """Run jvp and return the tangents of the output tensors; None is zero."""
        with self._linked(inputs, output, again):
            result = self.cls.jvp(self.ctx, *self.filled(tangents))
        found = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(found) != len(self.outputs):
            raise GradientError(
                f"{self.cls.__name__}.jvp must return {len(self.outputs)} tangent(s), one per "
                f"output of forward. Received: {len(found)}"
            )
        return [t for t, kept in zip(found, self.outputs, strict=True) if kept is None]

    @contextmanager
    def _linked(self, inputs: Sequence[Any], output: Any, again: Any) -> Iterator[None]:
        """Let saved tensors stand at their places while a rule runs."""
        ctx = self.ctx
        ctx._places = _Places(inputs, output, again)
        try:
            yield
        finally:
            ctx._places = None

    def _check_count(self, found: list[Any]) -> None:
        expected, name = len(self.args), self.cls.__name__
        surplus = found[expected:]
        if len(found) < expected or any(g is not None for g in surplus):
            raise GradientError(
                f"{name}.backward must return {expected} gradient(s), one per argument of forward "
                f"(None where there is none). Received: {len(found)}"
            )
        for i, g in enumerate(found[:expected]):
            if g is not None and i not in self.tensors:
                raise GradientError(
                    f"{name}.backward returned a gradient for argument {i}, which is not a tensor; "
                    "return None there"
                )


class FunctionOp:
    """Stands for a Function class on the tape and before interpreters, in the place of an Op."""

    kind = "function"
    inputs = ("args",)
    variadic = True
    outputs = None
    linear = multilinear = ()
    optional: frozenset[str] = frozenset()
    partials: ClassVar[dict[str, Any]] = {}
    vjps: ClassVar[dict[str, Any]] = {"args": None}
    attrs: ClassVar[dict[str, Any]] = {"call": None}
    jvp_rule = None

    def __init__(self, cls: Any) -> None:
        self.cls = cls
        self.name = cls.__name__

    @property
    def specialized(self) -> FunctionOp:
        """Return the holder of `execute`, as an Op does."""
        return self

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
        results = late_function("autodiff", "trace_call")(tracer, call, inputs)
        return tuple(results) if call.many else results[0]

    def backward(self, node: Any, call: Call, g: Any) -> list[Any]:
        """Return the gradients of the inputs as arrays."""
        with no_grad():
            grads = self._checked(node, call, g)
        return [None if x is None else x._value for x in grads]

    def linked(self, node: Any, call: Call, g: Any) -> list[Any]:
        """Return the gradients of the inputs as tensors that can be differentiated again."""
        again = None
        if call.kept is not None:
            values = zip(call.kept, node.parents, strict=True)
            inputs = [wrap_with_node(value, parent) for value, parent in values]
            again = partial(call.again, inputs)
        return self._checked(node, call, g, again)

    def pull_back(self, inputs: Sequence[Any], call: Call, outputs: Any, g: Any) -> list[Any]:
        """Run backward for forward mode, which differentiates it with respect to g."""
        outs = outputs if call.many else (outputs,)
        again = self._renewed(call, inputs)
        call.ctx.needs_input_grad = tuple(i in call.tensors for i in range(len(call.args)))
        return call.gradients(inputs, outs.__getitem__, g if call.many else [g], again)

    def _renewed(self, call: Call, inputs: Sequence[Any]) -> Any:
        """Let a call know what forward leaves; return how to get what it computed again."""
        if call.ctx._stale:
            traced = call.trace(inputs)
            call.ctx._seal(inputs, traced, lambda tensor: tensor)
        around = current_interpreter() is not None or _on_tape(inputs)
        return partial(call.again, inputs) if around and call.computed() else None

    @property
    def has_jvp(self) -> bool:
        """Tell whether the class has a rule for forward mode."""
        return hasattr(self.cls, "jvp")

    def push_forward(
        self, inputs: Sequence[Any], call: Call, outputs: Any, tangents: Sequence[Any]
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
        if _differentiated_below(inputs):  # there too, backward stands for the derivative
            return self._record_rule(call, inputs)
        outputs = call.trace(inputs)
        call.ctx._seal(inputs, outputs, lambda tensor: tensor)
        results = [F.stop_gradient(y) if id(y) in call.ctx._unmarked else y for y in outputs]
        types = [(x.shape, x.dtype) for x in inputs]

        def pull_back(g: Any) -> list[Any]:
            found = call.gradients(inputs, outputs.__getitem__, g if call.many else [g])
            return self._all_fitting(call, types, found)

        return tuple(results) if call.many else results[0], pull_back

    def _record_rule(self, call: Call, inputs: tuple[Tensor, ...]) -> tuple[Any, Any]:
        """Run the call by the levels below, as a call; return results and how to pull back."""
        out = run(self, inputs, (call,))
        types = [(x.shape, x.dtype) for x in inputs]

        def pull_back(g: Any) -> list[Any]:
            return self._all_fitting(call, types, self.pull_back(inputs, call, out, g))

        return out, pull_back

    def _all_fitting(
        self, call: Call, types: Sequence[tuple[Any, Any]], found: Sequence[Any]
    ) -> list[Any]:
        places = zip(found, types, call.tensors, strict=True)
        return [None if x is None else self._fitting(x, *t, i) for x, t, i in places]

    def _checked(self, node: Any, call: Call, g: Any, again: Any = None) -> list[Any]:
        gs = [x if isinstance(x, Tensor) else wrap(x) for x in (g if call.many else [g])]
        grads = call.gradients(node.parents, _output_finder(node), gs, again)
        places = zip(grads, node.parents, node.attrs, call.tensors, strict=True)
        return [
            None if g is None or parent is None else self._fitting(g, shape, dtype, position)
            for g, parent, (shape, dtype), position in places
        ]

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


def _array_of(tensor: Tensor) -> Any:
    return tensor._value


def _differentiated_below(inputs: Sequence[Any]) -> bool:
    """Tell whether a level below may differentiate: anything but batches, or the tape."""
    interpreter: Any = current_interpreter()
    while interpreter is not None:
        if not hasattr(interpreter, "draws"):
            return True
        interpreter = interpreter.below
    return _on_tape(inputs)


def _on_tape(inputs: Sequence[Any]) -> bool:
    return is_grad_enabled() and any(x.requires_grad for x in inputs)


def _record(
    op: FunctionOp, call: Call, inputs: Sequence[Tensor], outputs: list[Tensor]
) -> list[Tensor]:
    """Return the outputs behind a new node of the tape."""
    types = [(x.shape, x.dtype) for x in inputs]
    node = FanNode() if call.many else Node()
    node.order = next_order()
    node.op, node.saved, node.watch = op, call, None
    node.parents = tuple(x._node for x in inputs)
    node.shapes = None
    node.attrs = tuple(types)
    node.code, node.offset = user_site() or (None, 0)
    if isinstance(node, FanNode):
        node.outputs = tuple((y.shape, y.dtype) for y in outputs)
    return [_output(node, i, y, id(y) in call.ctx._unmarked) for i, y in enumerate(outputs)]


def _output(node: Node, position: int, y: Tensor, constant: bool) -> Tensor:
    """Return one output of forward as a new tensor at its place on the tape."""
    if constant or not is_float(y.dtype):
        return wrap(y._value)
    place = output_node(node, position) if isinstance(node, FanNode) else node
    return wrap_with_node(y._value, place)


def _output_finder(node: Node) -> Callable[[int], Node]:
    if isinstance(node, FanNode):
        return partial(output_node, node)
    return lambda position: node
