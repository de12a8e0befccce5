"""The rules of one operation, applied to its operands: what forward and reverse mode share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.dispatch import group


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
        if hasattr(self.op, "pull_back"):  # a Function of the user's
            pulled: Sequence[Any] = self.op.pull_back(self.inputs, self.attrs[0], self.out, g)
            return pulled
        call = _Call(tuple(t if t is None else True for t in wanted), self.attrs, self._shapes())
        self.op.specialized  # noqa: B018  (generates the rules' function on first use)
        result: Sequence[Any] = self.op.linked(call, tuple(map(self.lookup, self.op.saves)), g)
        return result

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


def parameters(rule: Callable[..., Any]) -> tuple[str, ...]:
    """Return the parameter names of a rule."""
    code = rule.__code__
    return code.co_varnames[: code.co_argcount]


class _Call(NamedTuple):
    """What generated backward functions read of a node."""

    parents: tuple[Any, ...]
    attrs: tuple[Any, ...]
    shapes: Any
