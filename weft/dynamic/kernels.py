"""How the members of a batch run as one, on tensors with a batch axis in front."""

from __future__ import annotations

from typing import Any

from ..autodiff.batching.fallback import one_by_one
from ..core.batching import BatchedCall, rule_of
from ..core.dispatch import ERRORS, explain, group, run
from ..core.op import F, random
from ..core.shape import TensorType, type_of
from ..ops.movement.join import stack
from .signatures import BatchSignature, ValueDependentError


class OpWork:
    """An operator with its attributes, as what a batch runs."""

    __slots__ = ("attrs", "kind", "many", "name", "op")

    def __init__(self, op: Any, attrs: tuple[Any, ...]) -> None:
        self.op = op
        self.attrs = attrs
        self.many = op.outputs != 1
        self.name: str = op.name
        self.kind: str = op.kind

    def types(self, types: list[TensorType | None], inputs: Any) -> list[TensorType]:
        """Return the types of the results; raise at the user's line if operands do not fit."""
        try:
            found = self.op.type_rule(group(self.op, types), self.attrs)
        except ERRORS as error:
            raise explain(self.op, error, inputs, self.attrs) from None
        found = [found] if isinstance(found, TensorType) else list(found)
        if any(not isinstance(size, int) for kind in found for size in kind.shape):
            raise ValueDependentError
        return found

    def is_open(self, inputs: tuple[Any, ...]) -> bool:
        """Tell whether the shapes of results follow from values of operands."""
        try:
            self.types([None if x is None else type_of(x) for x in inputs], inputs)
        except ValueDependentError:
            return True
        return False

    @property
    def stacks(self) -> int | None:
        """The axis along which operands are stacked, if that is what it does."""
        return self.attrs[0] if self.op is stack else None

    def behind_stack(self, stacked: Any, size: Any) -> Any:
        """Return operands that are stacked already: nothing is left to do."""
        return stacked

    def alone(self, operands: tuple[Any, ...]) -> Any:
        """Run the operation once."""
        return run(self.op, operands, self.attrs)

    def together(self, operands: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        """Run the operation for all members, by the operator's batching rule."""
        call = BatchedCall(self.op, operands, flags, self.attrs, size)
        rule = None if self.op.kind == random else rule_of(self.op)
        return one_by_one(call, quiet=True) if rule is None else call.apply(rule)


def run_batch(signature: BatchSignature, operands: tuple[Any, ...], size: Any) -> tuple[Any, ...]:
    """Return the results of all members; operands with a type in the signature are batches."""
    flags = tuple([spec.__class__ is int for spec in signature.specs])
    found = signature.work.together(operands, flags, size)
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


def joined(parts: list[Any]) -> Any:
    """Return blocks of rows as one."""
    return parts[0] if len(parts) == 1 else F.concat(parts, 0)
