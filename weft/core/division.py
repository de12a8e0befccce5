"""Division: how processes share one operation, each with a part of its operands along an axis.

A rule, `op.division(rule)`, says which axes of operands and result run together, by labels, as an
einsum does; a label that the result lacks is summed over:

    matmul   (m, k) @ (k, n) -> (m, n), with "sum" for k

So a process with its part of the axes of one label computes its part of the result, or one that a
sum over processes makes whole. Axes with the label None cannot be divided. A rule receives what a
shape rule does, types and attributes in canonical form, and returns None if nothing can be divided.
Elementwise operators, reductions and operators that only reshape need no rule.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from .dispatch import group
from .op import F, elementwise, reduction
from .shape import Shape, TensorType, size_of

Label = Hashable
Labels = tuple[Label, ...]


class RankShare:
    """Which part of an operation a process computes.

    label   the axes that are divided
    rank    which of the parts
    ranks   how many there are
    shape   of its part of the result
    """

    __slots__ = ("label", "rank", "ranks", "shape")

    def __init__(self, label: Label, rank: int, ranks: int, shape: Shape) -> None:
        self.label, self.rank, self.ranks, self.shape = label, rank, ranks, shape

    def places(self, index: Any, size: int, elsewhere: int = 0) -> tuple[Any, Any]:
        """Return which of some indices, of an axis so long, lie in this part, and where in it.

        Those of other parts have the place `elsewhere`; what lies in none is out of range here too.
        """
        length = size // self.ranks
        first = self.rank * length
        here = F.logical_and(index >= first, index < first + length)
        nowhere = F.logical_or(index < 0, index >= size)
        return here, F.where(here, index - first, F.where(nowhere, length, elsewhere))


class Division:
    """Which axes of an operation can be divided.

    inputs   for each operand a label for each of its axes
    output   the same for the result
    sums     labels that the result lacks, with what makes it whole: a way of `exchange`, or a
             function of a part and of a function that exchanges it in such a way
    part     what a process computes, if that is not the operation itself: a function of its
             RankShare and of the parts of the operands
    """

    __slots__ = ("inputs", "output", "part", "sums")

    def __init__(
        self,
        inputs: Sequence[Labels | None],
        output: Labels,
        sums: Mapping[Label, str | Callable[..., Any]] | None = None,
        part: Callable[..., Any] | None = None,
    ) -> None:
        self.inputs, self.output, self.sums, self.part = inputs, output, sums or {}, part


def division_of(op: Any, types: Sequence[Any], attrs: Sequence[Any]) -> Any:
    """Return how an operation can be divided, by its rule or its kind; None if it cannot."""
    if op.division_rule is not None:
        return op.division_rule(*group(op, types), *attrs)
    if op.kind == elementwise:
        return _of_elements(op.type_rule(tuple(types), tuple(attrs)).shape, types)
    if op.kind == reduction and {"axis", "keepdims"} <= op.attrs.keys():
        named = dict(zip(op.attrs, attrs, strict=True))
        return reduced(types[0], named["axis"], named["keepdims"], op.combines)
    if op.reshapes:
        return reshaped(types[0].shape, op.type_rule(tuple(types), tuple(attrs)).shape)
    return None


def _of_elements(shape: Shape, types: Sequence[TensorType | None]) -> Division:
    inputs = [None if t is None else stretched(t.shape, shape) for t in types]
    return Division(inputs, tuple(range(len(shape))))


def stretched(shape: Shape, to: Shape) -> Labels:
    """Return labels of an operand that is broadcast to a result, whose labels are its axes."""
    lead = len(to) - len(shape)
    return tuple(i + lead if shape[i] == to[i + lead] else None for i in range(len(shape)))


def reduced(x: TensorType, axis: Any, keepdims: bool, combines: Any) -> Division:
    """Return how a reduction is divided; `combines` makes a whole of results of parts."""
    ndim = len(x.shape)
    gone = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    labels = tuple(i if combines is not None or i not in gone else None for i in range(ndim))
    kept = [None if i in gone else i for i in range(ndim) if keepdims or i not in gone]
    return Division([labels], tuple(kept), dict.fromkeys(gone, combines) if combines else {})


def reshaped(before: Shape, after: Shape) -> Division:
    """Return how a reshape is divided: at the outermost of axes that are joined or taken apart."""
    old: list[Label] = [None] * len(before)
    new: list[Label] = [None] * len(after)
    for i, axis in enumerate(before):
        j = _beginning_at(after, size_of(before[:i]))
        if axis > 1 and j is not None:
            old[i] = new[j] = i
    return Division([tuple(old)], tuple(new), part=lambda at, x: F.reshape(x, at.shape))


def _beginning_at(shape: Shape, lead: int) -> int | None:
    """Return the axis that so many rows lie before, if there is one that is longer than 1."""
    for j, axis in enumerate(shape):
        if axis > 1 and size_of(shape[:j]) == lead:
            return j
    return None
