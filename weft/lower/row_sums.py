"""Combine the rows of a product where it is computed.

The gradient of a bias is the sum of a product's rows, as its epilogue leaves them. A kernel that
does nothing but combine rows, of what a product has stored and of other operands of that shape,
becomes part of the product: rows are combined in blocks while they are in the cache, and a column
kernel combines the blocks. These follow from the sizes alone, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ..core.dim import size_min
from ..core.scalar.builder import Expr, ScalarBuilder, postorder, substituted
from ..core.shape import Size, size_of
from .epilogues import AT_ONE_PLACE, MOST_STREAMS
from .kernels import (
    ColumnKernel,
    GemmKernel,
    Kernel,
    Operand,
    Output,
    RowKernel,
    buffers_of,
    may_fail,
    written_buffers,
)
from .lifetimes import uses_of
from .storage import Buffer, View, contiguous

# Products of a row, or of fewer columns, may be better computed transposed, and are small anyway.
LEAST_ROWS = 2
LEAST_COLUMNS = 64
BLOCK = 96  # rows that are combined: a multiple of most heights of tiles


def fuse_row_sums(
    kernels: Sequence[Kernel], kept: Collection[Buffer], *, updates: Collection[Buffer]
) -> list[Kernel]:
    """Return the kernels with those that combine the rows of products joined to these.

    `kept` are buffers that are wanted after the last kernel, and of them `updates` those that may
    be written to states: in place, if that is done when nothing can fail any more.
    """
    return _Joining(kernels, updates).kernels()


@dataclass(frozen=True)
class _RowSums:
    """Where a product puts its combined rows, one for each block.

    finish   the kernel that combines the blocks and its place in the program, if there is one
    """

    rows: View
    finish: tuple[int, ColumnKernel] | None = None


class _Joining:
    """A program in which kernels are joined to others before them."""

    def __init__(self, kernels: Sequence[Kernel], updates: Collection[Buffer]) -> None:
        self.given = kernels
        self.made: list[list[Kernel]] = [[kernel] for kernel in kernels]  # at each place
        self.users = uses_of(kernels)
        self.updates = updates
        self.checked = max((i for i, k in enumerate(kernels) if may_fail(k)), default=-1)

    def kernels(self) -> list[Kernel]:
        """Return the program after all that can be joined was."""
        for j, kernel in enumerate(self.given):
            if isinstance(kernel, RowKernel) and all(o.way is not None for o in kernel.outputs):
                self._join(j, kernel)
        return [kernel for kernels in self.made for kernel in kernels]

    def _join(self, j: int, loops: RowKernel) -> None:
        """Join a kernel to the last product that makes what it reads, if that can be."""
        i = self._maker(j, loops)
        if i is None or not self._can_run_at(i, j, loops):
            return
        (kernel,) = self.made[i]
        assert isinstance(kernel, GemmKernel)
        product = _without_batch(kernel)
        if product is None:
            return
        sums = [self._sums(j, loops, output) for output in loops.outputs]
        updates = any(t.finish is None and t.rows.buffer in self.updates for t in sums)
        fused = _Fusion(product, loops, [total.rows for total in sums]).kernel()
        if fused is None or (updates and i < self.checked):  # an update waits for all checks
            return
        self.made[i] = [fused]
        finishes = [total.finish for total in sums if total.finish is not None]
        for place in (j, *(place for place, _ in finishes)):
            self.made[place] = [kernel for number, kernel in finishes if number == place]

    def _maker(self, j: int, loops: RowKernel) -> int | None:
        """Return the place of the last kernel that makes what another reads, if it is a product."""
        read = {o.view.buffer for o in loops.operands} - written_buffers(loops)
        makers = (
            i
            for buffer in read
            for i in self.users[buffer]
            if i < j and buffer in written_buffers(self.given[i])
        )
        last = max(makers, default=None)
        return last if last is not None and isinstance(self.given[last], GemmKernel) else None

    def _can_run_at(self, i: int, j: int, loops: RowKernel) -> bool:
        """Tell whether no kernel from one place to another must come before or after a third."""
        written = written_buffers(loops)
        for buffer in buffers_of(loops):
            for kernel in (self.given[k] for k in self.users[buffer] if i < k < j):
                if buffer in written or buffer in written_buffers(kernel):
                    return False
        return True

    def _sums(self, j: int, loops: RowKernel, output: Output) -> _RowSums:
        """Return where the product puts combined rows: it has other blocks than the loops had."""
        place, columns = loops.operands[output.operand].view, loops.columns
        blocks = -(-loops.rows // _rows_of_a_block(loops.rows))
        if blocks == loops.units == 1:
            return _RowSums(View(place.buffer, (1, columns), (columns, 1), place.offset))
        buffer = Buffer("arena", (blocks, columns), place.dtype, place.buffer.name)
        made = contiguous(buffer, buffer.shape)
        if loops.units == 1:
            return _RowSums(made, (j, _combination(loops, output, made)))
        (number,) = (k for k in self.users[place.buffer] if k != j)
        finish = self.given[number]
        assert isinstance(finish, ColumnKernel)
        operands = (Operand(made, made.strides), *finish.operands[1:])
        return _RowSums(made, (number, replace(finish, loops=made.shape, operands=operands)))


def _combination(loops: RowKernel, output: Output, made: View) -> ColumnKernel:
    """Return the kernel that combines the blocks of what was one block before."""
    assert output.way is not None
    place = loops.operands[output.operand].view
    total = View(place.buffer, made.shape, (0, 1), place.offset)
    return ColumnKernel(
        f"{loops.name} (blocks)",
        made.shape,
        (True, False),
        tuple(Operand(view, view.strides) for view in (made, total)),
        Output(1, ScalarBuilder().load(0, made.dtype)),
        output.way,
        loops.origins,
    )


class _Fusion:
    """A product and a kernel that combines its rows, as one kernel, if that can be."""

    def __init__(self, product: GemmKernel, loops: RowKernel, sums: Sequence[View]) -> None:
        self.product = product
        self.loops = loops
        self.sums = sums
        self.builder = ScalarBuilder()
        self.outputs = [
            replace(o, value=substituted(self.builder, o.value, {})) for o in product.outputs
        ]
        self.stored = {o.operand: o.value for o in self.outputs if o.way is None}
        self.views = [product.out, *product.extras]

    def kernel(self) -> GemmKernel | None:
        """Return the fused kernel, or None."""
        product, loops = self.product, self.loops
        order = postorder([output.value for output in loops.outputs])
        if not self._has_the_rows() or any(expr.kind not in AT_ONE_PLACE for expr in order):
            return None
        known: dict[Expr, Expr] = {}
        for expr in order:
            if expr.kind == "load":
                value = self._element(expr)
                if value is None:
                    return None
                known[expr] = value
        if sum(any(view.strides) for view in self.views[1:]) > MOST_STREAMS:
            return None
        for output, rows in zip(loops.outputs, self.sums, strict=True):
            value = substituted(self.builder, output.value, known)
            self.outputs.append(Output(len(self.views), value, output.way))
            self.views.append(rows)
        return replace(
            product,
            origins=(*product.origins, *loops.origins),
            extras=tuple(self.views[1:]),
            outputs=tuple(self.outputs),
            block=_rows_of_a_block(product.m),
        )

    def _has_the_rows(self) -> bool:
        m, n = self.product.m, self.product.n
        same = (self.loops.rows, self.loops.columns) == (m, n)
        return same and m >= LEAST_ROWS and n >= LEAST_COLUMNS and self.product.out.contiguous

    def _element(self, load: Expr) -> Expr | None:
        """Return what the epilogue has for a load: a value that it stores, or one that it reads."""
        view = self.loops.operands[load.data].view.reshaped(self.product.out.shape)
        if view is None:
            return None
        if view not in self.views:
            if view.buffer in written_buffers(self.product):
                return None
            self.views.append(view)
        number = self.views.index(view)
        return self.stored.get(number) or self.builder.load(number, load.dtype)


def _rows_of_a_block(rows: Size) -> Size:
    return size_min(rows, BLOCK)


def _without_batch(product: GemmKernel) -> GemmKernel | None:
    """Return a product with the axes of its batch taken as rows; None where they cannot be."""
    if not product.batch:
        return product
    y, m = product.y, size_of((*product.batch, product.m))
    lying = [product.x.reshaped((m, product.k))]
    lying += [view.reshaped((m, product.n)) for view in (product.out, *product.extras)]
    views = [view for view in lying if view is not None]
    if any(y.strides[:-2]) or len(views) < len(lying):
        return None
    x, out, *extras = views
    y = View(y.buffer, y.shape[-2:], y.strides[-2:], y.offset)
    return replace(product, batch=(), m=m, x=x, y=y, out=out, extras=tuple(extras))
