"""Batches on arrays, by operators one after another: a tape of its own for each batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..autodiff.engine import ReverseWalk
from ..core.config import config
from ..core.dtype import Array, is_float, is_half
from ..core.modes import GradMode
from ..core.op import F
from ..core.row_sparse import dense
from ..core.tape import Leaf
from ..core.tensor import Tensor, wrap, wrap_with_node
from .kernels import run_batch
from .signatures import MANY, BatchSignature


class TapeKernel:
    """Runs batches of a signature, and pulls their gradients back.

    takes_stack   whether it is given all operands as one, stacked behind the batch axis, and gives
                  their gradients so
    """

    takes_stack = False

    def __init__(self, signature: BatchSignature) -> None:
        self.signature = signature

    def width(self, size: int) -> int:
        """Return how many rows it is to be given for so many members."""
        return size

    def run(
        self, operands: Sequence[Array | None], size: int, wanted: Sequence[bool]
    ) -> tuple[list[Array], Any]:
        """Return the results, and what `pull` needs to find the gradients of what is wanted."""
        leaves = [Leaf() if flag else None for flag in wanted]
        tensors = tuple(
            [
                None if x is None else wrap_with_node(x, leaf)
                for x, leaf in zip(operands, leaves, strict=True)
            ]
        )
        with GradMode(any(wanted)):
            outs = self._compute(tensors, size)
        arrays = [y._value for y in outs]
        roots = [y._node for y in outs if is_float(y.dtype)]
        return arrays, (roots, leaves) if any(node is not None for node in roots) else None

    def _compute(self, operands: tuple[Any, ...], size: int) -> tuple[Any, ...]:
        return run_batch(self.signature, operands, size)

    def pull(self, saved: Any, seeds: Sequence[Array], retain: bool) -> list[Any]:
        """Return the gradients of the operands, None of those that have none."""
        roots, leaves = saved
        given = [wrap(seed) for seed in seeds]
        with np.errstate(all="ignore"):
            found = ReverseWalk(raw=True, retain=retain).run(roots, given)
        return [None if leaf is None else _array(found.get(leaf)) for leaf in leaves]

    def totals(self, saved: Sequence[Any]) -> list[tuple[int, Array]]:
        """Return gradients of shared operands that are added up over batches: none."""
        return []


class StackKernel(TapeKernel):
    """The same for what begins by stacking many operands: gathering them has stacked them.

    Losses of the words of a sentence are such, and there are as many signatures as lengths.
    """

    takes_stack = True

    def _compute(self, operands: tuple[Any, ...], size: int) -> tuple[Any, ...]:
        work, (x,) = self.signature.work, operands
        made = work.behind_stack(F.moveaxis(x, 1, work.stacks + 1) if work.stacks else x, size)
        return made if isinstance(made, tuple) else (made,)


class SegmentKernel(TapeKernel):
    """The same for sums and means of stacks: rows are added up where they lie."""

    def run(
        self, operands: Sequence[Array | None], size: int, wanted: Sequence[bool]
    ) -> tuple[list[Array], Any]:
        """Return the results, and what `pull` needs to find the gradients of what is wanted."""
        rows, splits = operands
        assert rows is not None, "they are always given"
        assert splits is not None, "so are these"
        if config.nan_trap or config.debug_interpret or is_half(rows.dtype) or not rows.size:
            return super().run(operands, size, wanted)
        lengths, inner = np.diff(splits), self._inner()
        found = np.add.reduceat(rows, splits[:-1])
        found = found.sum(inner) if inner else found
        counts = self._counts(rows, lengths)
        if counts is not None:
            found /= counts
        return [found], SavedSegments(lengths, rows.shape, counts) if wanted[0] else None

    def _inner(self) -> tuple[int, ...]:
        """Return which axes of rows are reduced as well."""
        return tuple([axis + 1 for axis in self.signature.work.inner])

    def _counts(self, rows: Array, lengths: Array) -> Array | None:
        """Return what sums are divided by, in the form of the results; None if they are not."""
        if not self.signature.work.is_mean:
            return None
        inner = self._inner()
        many = np.prod([rows.shape[axis] for axis in inner], dtype=np.int64)
        return (lengths * many).astype(rows.dtype).reshape(-1, *(1,) * (rows.ndim - 1 - len(inner)))

    def pull(self, saved: Any, seeds: Sequence[Array], retain: bool) -> list[Any]:
        """Return the gradients of the operands: those of rows."""
        if not isinstance(saved, SavedSegments):
            return super().pull(saved, seeds, retain)
        (g,) = seeds
        g = g if saved.counts is None else g / saved.counts
        g = np.expand_dims(g, self._inner())
        g = np.broadcast_to(g, (len(g), *saved.shape[1:]))
        return [np.repeat(g, saved.lengths, 0), None]


class SavedSegments(NamedTuple):
    """What a batch left for its gradient.

    lengths   how many rows each member has
    shape     that of the rows
    counts    what sums were divided by, if they were
    """

    lengths: Array
    shape: tuple[int, ...]
    counts: Array | None


def tape_kernel(signature: BatchSignature) -> TapeKernel:
    """Return what runs batches of a signature by operators."""
    if signature.ragged:
        return SegmentKernel(signature)
    gathered = signature.runs == (len(signature.specs),) and signature.arity >= MANY
    stacks = gathered and getattr(signature.work, "stacks", None) is not None
    return StackKernel(signature) if stacks else TapeKernel(signature)


def _array(g: Any) -> Array | None:
    if g is None:
        return None
    made = dense(g)
    return made._value if isinstance(made, Tensor) else made
