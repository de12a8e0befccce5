"""Batching: what an operator does to a whole batch of operands at once.

Under `vmap` an operand may carry a batch axis that the program does not see; here it always stands
in front. An operator's batching rule, `op.batch(rule)`, computes the results of all examples, batch
axis in front as well. A rule asks by parameter name for what it needs:

    x          the input named x, with a batch axis (repeated if all examples share it)
    axis       the attribute named axis, in canonical form for one example
    examples   the number of examples
    batched    a tuple that says which inputs really have a batch axis; a rule that asks for it
               receives all inputs as they are

A rule that serves many operators takes one parameter, `call`: the operation as a `BatchedCall`.

Rules are written with `F`, like derivative rules. Below are the rules that many operators share.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from .dispatch import group, run
from .op import F, Op, elementwise, movement, reduction
from .shape import size_of

AXES = frozenset({"axis", "axis1", "axis2", "axes", "dim", "dimension"})


class BatchedCall:
    """One operation of a batch: its operands, and which of them have a batch axis in front."""

    __slots__ = ("attrs", "batched", "inputs", "op", "size")

    def __init__(
        self,
        op: Op,
        inputs: tuple[Any, ...],
        batched: tuple[bool, ...],
        attrs: tuple[Any, ...],
        size: Any,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.batched = batched
        self.attrs = attrs
        self.size = size

    def everywhere(self) -> tuple[Any, ...]:
        """Return the operands, each with a batch axis."""
        return tuple(
            x if flag or x is None else repeat(x, self.size)
            for x, flag in zip(self.inputs, self.batched, strict=True)
        )

    def ndim(self, position: int) -> int:
        """Return how many dimensions an operand has in one example."""
        count: int = self.inputs[position].ndim - self.batched[position]
        return count

    def named(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return what a rule asks for by parameter name."""
        inputs = self.inputs if "batched" in names else self.everywhere()
        known: dict[str, Any] = {"examples": self.size, "batched": self.batched}
        known.update(zip(self.op.inputs, group(self.op, inputs), strict=True))
        known.update(zip(self.op.attrs, self.attrs, strict=True))
        return {name: known[name] for name in names}

    def apply(self, rule: Callable[..., Any]) -> Any:
        """Return the results of a rule."""
        names = _names_of(rule)
        return rule(self) if names == ("call",) else rule(**self.named(names))


@cache
def _names_of(rule: Callable[..., Any]) -> tuple[str, ...]:
    code = rule.__code__
    return code.co_varnames[: code.co_argcount]


def repeat(x: Any, size: Any) -> Any:
    """Return an operand that all examples share with a batch axis in front."""
    return F.broadcast_to(x, (size, *x.shape))


def with_rank(x: Any, ndim: int) -> Any:
    """Return a batch whose examples have `ndim` dimensions: new ones lead, behind the batch axis.

    Leading dimensions of size 1 that are too many are dropped.
    """
    missing = ndim - (x.ndim - 1)
    if missing == 0:
        return x
    kept = x.shape[1:] if missing > 0 else x.shape[1 - missing :]
    return x.reshape((x.shape[0], *(1,) * missing, *kept))


def rule_of(op: Any) -> Callable[..., Any] | None:
    """Return the batching rule of an operator: its own, or what follows from its kind."""
    own: Callable[..., Any] | None = getattr(op, "batch_rule", None)
    if own is not None:
        return own
    if op.kind == elementwise:
        return aligned
    moves = op.kind == movement or (op.kind == reduction and "axis" in op.attrs)
    return shifted if moves else None


# -- rules that many operators share ---------------------------------------------------------------


def aligned(call: BatchedCall) -> Any:
    """Run an elementwise operation on operands whose batch axes broadcast against one another."""
    inputs, flags = call.inputs, call.batched
    if len(inputs) == 1:
        return run(call.op, inputs, call.attrs)
    ranks = [-1 if x is None else x.ndim - flag for x, flag in zip(inputs, flags, strict=True)]
    ndim = max(ranks)
    if min(ranks) < ndim:
        inputs = tuple(
            [
                with_rank(x, ndim) if flag and rank < ndim else x
                for x, flag, rank in zip(inputs, flags, ranks, strict=True)
            ]
        )
    return run(call.op, inputs, call.attrs)


def shifted(call: BatchedCall) -> Any:
    """Run an operation with its axes one place further back; a shape gains the batch's size.

    It also serves operators that work on the last axes and take any number of leading ones. Where
    an axis of None means all elements in one line, each example is made one.
    """
    if "axis" in call.op.attrs and call.attrs[list(call.op.attrs).index("axis")] is None:
        return _in_one_line(call)
    named = zip(call.op.attrs, call.attrs, strict=True)
    attrs = tuple(_moved(name, value, call.size) for name, value in named)
    return run(call.op, call.everywhere(), attrs)


def _in_one_line(call: BatchedCall) -> Any:
    named = dict(zip(call.op.attrs, call.attrs, strict=True))
    (x,) = call.inputs
    line = F.reshape(x, (call.size, size_of(x.shape[1:])))
    found = run(call.op, (line,), tuple({**named, "axis": 1}.values()))
    kept = (1,) * (x.ndim - 1) if named.get("keepdims") else found.shape[1:]
    return F.reshape(found, (call.size, *kept))


def _moved(name: str, value: Any, size: Any) -> Any:
    if name == "shape":
        return (size, *value)
    if name in AXES and value is not None:
        return tuple(map(behind, value)) if isinstance(value, tuple) else behind(value)
    return value


def behind(axis: int) -> int:
    """Return an axis of an example as an axis of the batch; from the end, it stays the same."""
    return axis + 1 if axis >= 0 else axis


def folded(call: BatchedCall) -> Any:
    """Run an operation whose first axis is a batch already with both axes made into one."""
    operands = tuple(None if x is None else fold(x) for x in call.everywhere())
    found = run(call.op, operands, call.attrs)
    if isinstance(found, tuple):
        return tuple(unfold(y, call.size) for y in found)
    return unfold(found, call.size)


def fold(x: Any) -> Any:
    """Return a batch with its batch axis and the first axis of its examples made into one."""
    return x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))


def unfold(x: Any, size: Any) -> Any:
    """Return a folded batch with its batch axis again."""
    rows = x.shape[0] // size if not isinstance(size, int) or size else 0
    return x.reshape((size, rows, *x.shape[1:]))
