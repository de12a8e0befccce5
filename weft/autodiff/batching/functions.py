"""Functions with a derivative of the user's own, inside vmap.

To the levels below, a call on a batch is again such a function: its forward and backward run the
user's on examples. If the user's class has a static method `vmap(info, in_dims, *args)`, as in
torch.func, that computes the batch instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

from ...core.errors import ArgumentTypeError
from ...core.modes import current_interpreter, interpret_with
from ...core.op import F
from ...core.tensor import Tensor
from ..calls import FunctionCall
from ..function import Function
from ..layered import Running
from .axes import to_front
from .batched import Batched, BatchLevel, make_batched, whole
from .interpreter import BatchInterpreter


class VmapInfo(NamedTuple):
    """What a user's `vmap` rule is told about the batch."""

    batch_size: Any
    randomness: str


def run_function(
    interpreter: BatchInterpreter,
    call: FunctionCall,
    inputs: tuple[Any, ...],
    flags: tuple[bool, ...],
) -> Any:
    """Run a call of a Function on all examples."""
    operands = [x.value if flag else x for x, flag in zip(inputs, flags, strict=True)]
    own = getattr(call.cls, "vmap", None)
    with interpret_with(interpreter.below):
        if own is not None:
            found = _by_user(interpreter, call, operands, flags)
        else:
            named = _batched_names(call, interpreter.level)
            batch = FunctionBatch(interpreter, call, flags, named)
            found = BatchedFunction.apply(batch, *operands, *_values(call, named))
    call.ctx._stale = True
    results = interpreter.wrapped(tuple(found))
    return results if call.many else results[0]


def _batched_names(call: FunctionCall, level: BatchLevel) -> list[str]:
    """Return the keyword arguments that are batches of a level."""
    return [n for n, x in call.kwargs.items() if isinstance(x, Batched) and x.level is level]


def _values(call: FunctionCall, names: Sequence[str]) -> list[Tensor]:
    return [call.kwargs[name].value for name in names]


def _by_user(
    interpreter: BatchInterpreter, call: FunctionCall, operands: list[Any], flags: tuple[bool, ...]
) -> list[Any]:
    """Let the user's rule compute the batch."""
    info = VmapInfo(interpreter.level.size, interpreter.randomness)
    dims = call.filled([0 if flag else None for flag in flags])
    in_dims = tuple(d if i in call.tensors else None for i, d in enumerate(dims))
    returned = call.cls.vmap(info, in_dims, *call.filled(operands), **call.kwargs)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise ArgumentTypeError(
            f"{call.cls.__name__}.vmap must return a pair (outputs, out_dims). "
            f"Received: {type(returned).__name__}"
        )
    outputs = call._split(returned[0])
    axes = returned[1] if isinstance(returned[1], (tuple, list)) else [returned[1]] * len(outputs)
    if len(axes) != len(outputs):
        raise ArgumentTypeError(
            f"{call.cls.__name__}.vmap must return one out_dim for each of {len(outputs)} "
            f"output(s). Received: {axes!r:.60}"
        )
    size = interpreter.level.size
    pairs = zip(outputs, axes, strict=True)
    return [
        F.broadcast_to(y, (size, *y.shape)) if axis is None else to_front(y, axis)
        for y, axis in pairs
    ]


class FunctionBatch:
    """One call of a Function on a batch: runs the user's forward and backward on examples."""

    def __init__(
        self,
        outer: BatchInterpreter,
        call: FunctionCall,
        flags: tuple[bool, ...],
        names: Sequence[str],
    ) -> None:
        self.call, self.flags, self.names = call, flags, names
        self.own = copy(call)  # with a context of its own
        # A level of its own: the values in it are those that this Function is applied to.
        self.interpreter = BatchInterpreter(outer.level.size, None, outer.randomness)
        self.saved_flags: list[bool] = []

    @property
    def level(self) -> BatchLevel:
        """Return the level of the examples."""
        return self.interpreter.level

    def _here(self) -> Any:
        """Return the context in which examples are computed by the interpreter that is current."""
        self.interpreter.below = self.level.below = current_interpreter()
        return Running(self.interpreter)

    def forward(self, operands: Sequence[Any]) -> list[Any]:
        """Run forward on examples; return the outputs of all of them."""
        own, count = self.own, len(self.flags)
        pairs = zip(self.names, operands[count:], strict=True)
        own.kwargs = {**own.kwargs, **{n: self._example(x, True) for n, x in pairs}}
        with self._here():
            outputs = own.trace(list(map(self._example, operands[:count], self.flags)))
            constant = [id(y) in own.ctx._unmarked for y in outputs]
            found = [whole(y, self.level) for y in outputs]
        self.call.outputs, self.call.many = own.outputs, own.many
        self.constants = [y for y, fixed in zip(found, constant, strict=True) if fixed]
        return found

    def _example(self, x: Any, flag: bool) -> Any:
        return make_batched(x, self.level) if flag and x is not None else x

    def saved(self) -> list[Any]:
        """Return what forward saved, as values of the level below."""
        pending = self.own.ctx._pending
        self.saved_flags = [isinstance(t, Batched) and t.level is self.level for t in pending]
        return [
            t.value if isinstance(t, Batched) and flag else t
            for t, flag in zip(pending, self.saved_flags, strict=True)
        ]

    def backward(self, saved: Sequence[Any], gs: Sequence[Any]) -> list[Any]:
        """Run backward on examples; return the gradients of the operands."""
        self.own.ctx._pending = tuple(map(self._example, saved, self.saved_flags))
        with self._here():
            found = self.own.gradients((), None, [self._example(g, True) for g in gs])
            pulled = [None if g is None else whole(g, self.level) for g in found]
        pairs = zip(pulled, self.flags, strict=True)
        return [g if g is None or flag else F.sum(g, 0) for g, flag in pairs]


class BatchedFunction(Function):
    """A user's Function on a whole batch."""

    @staticmethod
    def forward(ctx: Any, batch: FunctionBatch, *operands: Any) -> tuple[Any, ...]:
        """Run the user's forward on examples."""
        ctx.batch, ctx.count = batch, len(operands)
        outputs = batch.forward(operands)
        ctx.save_for_backward(*batch.saved())
        ctx.mark_non_differentiable(*batch.constants)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> tuple[Any, ...]:
        """Run the user's backward on examples."""
        grads = ctx.batch.backward(ctx.saved_tensors, gs)
        return (None, *grads, *[None] * (ctx.count - len(grads)))
