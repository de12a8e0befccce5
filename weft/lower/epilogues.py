"""Compute elementwise results on the tiles of the product they follow from.

A kernel that goes through a product's elements, and through other operands of the same shape, needs
no loop of its own: the product computes its results while they are in the cache. Both then run as
early as that kernel's other operands allow: what the product takes need not be kept any longer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ..core.scalar.builder import Expr, ScalarBuilder, postorder
from ..core.scalar.functions import FUNCTIONS
from ..core.shape import size_of
from .kernels import (
    GemmKernel,
    Kernel,
    Output,
    RowKernel,
    buffers_of,
    may_fail,
    written_buffers,
)
from .lifetimes import uses_of
from .storage import Buffer, View

MOST_STREAMS = 4  # memory that is not in the cache is better read in long runs than tile by tile
AT_ONE_PLACE = FUNCTIONS.keys() | {"const", "load"}


def fuse_epilogues(kernels: Sequence[Kernel], kept: Collection[Buffer]) -> list[Kernel]:
    """Return the kernels with elementwise ones joined to the products they follow.

    `kept` are buffers that are wanted after the last kernel.
    """
    made: list[Kernel | None] = list(kernels)
    origins: dict[int, int] = {}  # where the product of a fused kernel was
    users = uses_of(kernels)
    for i, kernel in enumerate(kernels):
        if not isinstance(kernel, GemmKernel) or not _fills_its_buffer(kernel):
            continue
        product = made[i]
        later = [j for j in users[kernel.out.buffer] if made[j] is not None and j > i]
        following = made[min(later)] if later else None
        if not isinstance(following, RowKernel) or not isinstance(product, GemmKernel):
            continue
        wanted = len(later) > 1 or kernel.out.buffer in kept
        fused = _Fusion(product, following, wanted, kept).kernel()
        if fused is not None:
            made[i], made[min(later)] = None, fused
            origins[min(later)] = i
    return _moved_up(made, origins, kept)


def _moved_up(
    kernels: Sequence[Kernel | None], least: dict[int, int], kept: Collection[Buffer]
) -> list[Kernel]:
    """Return the kernels with some of them as early as others allow, but behind a place each."""
    touched = _Touched(kernels)
    checked = max((i for i, k in enumerate(kernels) if k is not None and may_fail(k)), default=-1)
    places = list(range(len(kernels)))  # behind which each runs
    for i in sorted(least):
        kernel = kernels[i]
        assert isinstance(kernel, GemmKernel)
        awaited = [-1, *(places[j] for j in touched.before(i) if least[i] < j)]
        if any(buffer in kept for buffer in written_buffers(kernel)):
            awaited.append(checked)  # what leaves the program waits for all checks
        places[i] = min(i, max(least[i], *awaited))
    order = sorted(range(len(kernels)), key=lambda i: (places[i], i in least, i))
    return [kernel for kernel in (kernels[i] for i in order) if kernel is not None]


class _Touched:
    """Which kernels touch a buffer, and which of them write to it."""

    def __init__(self, kernels: Sequence[Kernel | None]) -> None:
        self.kernels = kernels
        self.users = uses_of(kernels)
        self.written = [set() if k is None else written_buffers(k) for k in kernels]
        self.writers: dict[Buffer, list[int]] = {}
        for i, written in enumerate(self.written):
            for buffer in written:
                self.writers.setdefault(buffer, []).append(i)

    def before(self, i: int) -> Iterator[int]:
        """Yield the kernels before one that write what it touches, or touch what it writes."""
        kernel = self.kernels[i]
        assert kernel is not None
        for buffer in buffers_of(kernel):
            some = self.users[buffer] if buffer in self.written[i] else self.writers.get(buffer, ())
            yield from (j for j in some if j < i)


class _Fusion:
    """A product and the kernel that follows it, as one kernel, if that can be."""

    def __init__(
        self, product: GemmKernel, loops: RowKernel, wanted: bool, kept: Collection[Buffer]
    ) -> None:
        self.product = product
        self.loops = loops
        self.wanted = wanted  # the product itself, by others
        self.kept = kept

    def kernel(self) -> GemmKernel | None:
        """Return the fused kernel, or None."""
        views = [self._as_product_lies(operand.view) for operand in self.loops.operands]
        if not self._fits(views):
            return None
        at_hand = [v for v in views if v is not None]
        taken = self._output_to_fill(at_hand)
        out = self.product.out if taken is None else at_hand[taken]
        numbers: dict[int, int] = {}
        extras: list[View] = []
        for i, view in enumerate(at_hand):
            if i == taken or self._is_product(view):
                numbers[i] = 0
            else:
                extras.append(view)
                numbers[i] = len(extras)
        values = renumbered([o.value for o in self.loops.outputs], numbers)
        outputs = [
            Output(numbers[o.operand], value)
            for o, value in zip(self.loops.outputs, values, strict=True)
        ]
        return replace(
            self.product,
            name=self.loops.name,
            out=out,
            origins=(*self.product.origins, *self.loops.origins),
            extras=tuple(extras),
            outputs=tuple(outputs),
        )

    def _as_product_lies(self, view: View) -> View | None:
        out = self.product.out
        return view.reshaped(out.shape) if size_of(view.shape) == size_of(out.shape) else None

    def _fits(self, views: Sequence[View | None]) -> bool:
        out = self.product.out
        if self.product.outputs or any(o.way is not None for o in self.loops.outputs):
            return False
        if not all(expr.kind in AT_ONE_PLACE for expr in self._exprs()):
            return False
        if not all(v is not None and (v.buffer is not out.buffer or v == out) for v in views):
            return False
        return sum(any(v.strides) for v in views if v is not None) - 1 <= MOST_STREAMS

    def _exprs(self) -> list[Expr]:
        return postorder([output.value for output in self.loops.outputs])

    def _is_product(self, view: View) -> bool:
        return view.buffer is self.product.out.buffer

    def _output_to_fill(self, views: Sequence[View]) -> int | None:
        """Return the operand that can hold the product before it is written, if there is one.

        Not the new value of a state: that one may come to lie where the old one is read.
        """
        if self.wanted:
            return None
        out = self.product.out
        reads_state = any(view.buffer.kind == "state" for view in views)
        for output in self.loops.outputs:
            view = views[output.operand]
            updates = reads_state and view.buffer in self.kept
            if view.strides == out.strides and view.dtype == out.dtype and not updates:
                return output.operand
        return None


def _fills_its_buffer(kernel: GemmKernel) -> bool:
    out = kernel.out
    return out.buffer.kind == "arena" and out.contiguous and size_of(out.shape) == out.buffer.size


def renumbered(roots: Sequence[Expr], numbers: dict[int, int]) -> list[Expr]:
    """Return expressions whose loads refer to operands by other numbers."""
    builder = ScalarBuilder()
    known: dict[int, Expr] = {}
    for expr in postorder(list(roots)):
        data = numbers[expr.data] if expr.kind == "load" else expr.data
        args = tuple(known[id(a)] for a in expr.args)
        known[id(expr)] = builder.make(expr.kind, args, expr.dtype, data)
    return [known[id(root)] for root in roots]
