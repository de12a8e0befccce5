"""The rules of one operation, applied to its operands: what forward and reverse mode share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.dispatch import group

Pullback = Callable[[Any], Sequence[Any]]  # gradients of an operation's outputs -> of its inputs


class Operation:
    """One operation on tensors or symbols, with its results."""

    def __init__(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...], out: Any) -> None:
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.out = out
        self.outputs: tuple[Any, ...] = out if isinstance(out, tuple) else (out,)
        last = len(op.inputs) - 1
        self.names = [op.inputs[min(i, last)] for i in range(len(inputs))]

    def pull_back(self, g: Any, wanted: tuple[Any, ...]) -> Sequence[Any]:
        """Apply the operation's vjp rules to tensors, for the wanted inputs."""
        return self.pullback(wanted)(g)

    def pullback(self, wanted: tuple[Any, ...]) -> Pullback:
        """Return the vjp rules for the wanted inputs, with only what they need of the operation."""
        op = self.op
        if hasattr(op, "pull_back"):  # a Function of the user's
            inputs, attrs, out = self.inputs, self.attrs, self.out
            return lambda g: op.pull_back(inputs, attrs[0], out, g)
        call = _Call(tuple(t if t is None else True for t in wanted), self.attrs, self._shapes())
        op.specialized  # noqa: B018  (generates the rules' function on first use)
        saved = tuple(map(self.lookup, op.saves))
        return lambda g: op.linked(call, saved, g)

    def _shapes(self) -> Any:
        shapes = tuple(None if x is None else x.shape for x in self.inputs)
        return None if len(set(shapes)) == 1 else shapes

    def lookup(self, name: str) -> Any:
        """Return what a rule calls by a name: an operand, a result, an attribute, a shape."""
        op = self.op
        if name == "out":
            return self.out
        if name in op.inputs:
            return group(op, self.inputs)[op.inputs.index(name)]
        if name in op.attrs:
            return self.attrs[list(op.attrs).index(name)]
        base, _, meta = name.rpartition("_")
        x = self.lookup(base)
        if isinstance(x, list):
            return [getattr(item, meta) for item in x]
        return None if x is None else getattr(x, meta)


def has_rule(op: Any, position: int) -> bool:
    """Tell whether an operator has a derivative with respect to an input."""
    name = op.inputs[min(position, len(op.inputs) - 1)]
    return name in op.partials or name in op.vjps


def parameters(rule: Callable[..., Any]) -> tuple[str, ...]:
    """Return the parameter names of a rule."""
    code = rule.__code__
    return code.co_varnames[: code.co_argcount]


class _Call(NamedTuple):
    """What generated backward functions read of a node."""

    parents: tuple[Any, ...]
    attrs: tuple[Any, ...]
    shapes: Any
