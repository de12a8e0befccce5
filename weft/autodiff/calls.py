"""What a call of a user-defined Function leaves on the tape.

The node keeps what `save_for_backward` was given as arrays with their places (which input, which
output), never as tensors: no cycle keeps a dead output alive, and the links for higher derivatives
are made again when backward reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..core.dtype import is_float
from ..core.errors import ArgumentTypeError, GradientError
from ..core.modes import is_grad_enabled, no_grad
from ..core.tensor import Tensor, marked, wrap, wrap_with_node

Link = tuple[str, int]  # ("input", 0), ("output", 1) or ("value", 0): where a saved tensor stood


class Context:
    """What forward leaves for backward: saved tensors, and any attribute the user sets."""

    _saved: tuple[tuple[Any, Link], ...] = ()
    _marks: tuple[Any, ...] = ()  # where the saved tensors are, if their values do not tell
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
        found = [self._places.link(value, link) for value, link in self._saved]
        return tuple(map(marked, found, self._marks))

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
        self._marks = tuple(getattr(t, "_mark", None) for t in self._pending)
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


class FunctionCall:
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
        output: Callable[[int], Any] | None,
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


def _array_of(tensor: Tensor) -> Any:
    return tensor._value
