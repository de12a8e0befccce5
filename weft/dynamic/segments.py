"""Sums and means of many values: of any number of operands each, they run as one batch.

The losses of a sentence are stacked and their mean is taken, or they are added up one after
another, and there are as many signatures of that as lengths. But how many operands there are is of
no account: those of all members, one after another, are rows, and a reduction of segments makes one
row for each member of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..core.dtype import is_float
from ..core.op import F, reduction
from ..core.shape import TensorType
from ..ops.elementwise.arithmetic import add
from ..ops.reduce.sums import mean
from ..ops.reduce.sums import sum as total
from ..ops.segment.reductions import segment_mean, segment_sum

if TYPE_CHECKING:
    from .signatures import BatchSignature

REDUCTIONS = {total: segment_sum, mean: segment_mean}


@dataclass(frozen=True)
class SegmentWork:
    """A reduction of many operands, as what a batch runs: rows, and where they are split.

    operand   the number of the type of an operand
    op        which reduction it is
    inner     the axes of operands that are reduced as well
    """

    operand: int
    op: Any
    inner: tuple[int, ...]

    ragged: ClassVar = True
    many: ClassVar = False
    kind: ClassVar = reduction  # how pictures show it

    @property
    def name(self) -> str:
        """How pictures name it."""
        return f"{self.op.name} of many"

    @property
    def is_mean(self) -> bool:
        """Whether sums are divided by how many there are."""
        return self.op is mean

    def specs(self) -> tuple[Any, ...]:
        """Return the operands: rows, and where they are split between members."""
        return self.operand, None

    def together(self, operands: tuple[Any, ...], flags: tuple[bool, ...], size: Any) -> Any:
        """Run all members."""
        rows, splits = operands
        found = REDUCTIONS[self.op](rows, row_splits=splits)
        axes = tuple([axis + 1 for axis in self.inner])
        return getattr(F, self.op.name)(found, axes) if axes else found


def segments_of(
    stack: BatchSignature, reduces: BatchSignature, types: Sequence[TensorType]
) -> SegmentWork | None:
    """Return how a reduction of stacked operands runs with any number of them, if it can."""
    axis, op = stack.work.stacks, reduces.work.op
    kind = stack.specs[0] if len(set(stack.specs)) == 1 else None
    if axis is None or op not in REDUCTIONS or kind.__class__ is not int:
        return None
    axes, keepdims = reduces.work.attrs[:2]
    dtype = types[kind].dtype
    alike = types[reduces.outs[0]].dtype == dtype
    if keepdims or axis not in axes or not alike or not is_float(dtype):
        return None
    return SegmentWork(kind, op, tuple([a - (a > axis) for a in axes if a != axis]))


def adds_up(signature: BatchSignature, types: Sequence[TensorType]) -> bool:
    """Tell whether operations add two values of the type of their result, as sums of many do."""
    if getattr(signature.work, "op", None) is not add or len(set(signature.specs)) != 1:
        return False
    kind = signature.specs[0]
    return kind.__class__ is int and signature.outs == (kind,) and is_float(types[kind].dtype)


def sum_of(addition: BatchSignature) -> SegmentWork:
    """Return how a sum runs whose values are added one after another."""
    return SegmentWork(addition.specs[0], total, ())
