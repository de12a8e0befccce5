"""Divide the inner dimension of products that are long and have few elements.

The elements of a result are shared out among threads; where there are too few of them, the sums are
cut into parts instead: one product for each part, as a batch, and a kernel that adds them up. The
parts follow from the sizes alone, so results do not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.scalar.builder import ScalarBuilder
from ..core.shape import size_of
from .kernels import ColumnKernel, GemmKernel, Kernel, Operand, Output
from .storage import Buffer, View, contiguous

PARTS = 8
LEAST_DEPTH = 512  # of a part
LEAST_WORK = 1 << 19  # of a part, in operations: less is not worth another thread
PIECE_ROWS, PIECE_COLUMNS = 48, 16  # elements that one thread computes together
FEW_PIECES = 4


def split_inner(kernel: GemmKernel) -> list[Kernel]:
    """Return kernels that compute a product: itself, or products of parts and their sum."""
    if kernel.bias is not None or not _is_long_and_small(kernel):
        return [kernel]
    depth = kernel.k // PARTS
    rest = kernel.k - PARTS * depth
    count = PARTS + (rest > 0)
    buffer = Buffer("arena", (count, *kernel.out.shape), kernel.out.dtype, f"{kernel.name} parts")
    parts = contiguous(buffer, buffer.shape)
    made: list[Kernel] = [_parts(kernel, depth, parts)]
    if rest:
        made.append(_rest(kernel, rest, parts))
    return [*made, sum_of_parts(kernel, parts, kernel.out)]


def _is_long_and_small(kernel: GemmKernel) -> bool:
    m, n, k, batch = kernel.m, kernel.n, kernel.k, size_of(kernel.batch)
    if not k >= PARTS * LEAST_DEPTH or not kernel.out.contiguous:
        return False
    pieces = batch * min(_pieces(m, n), _pieces(n, m))
    return 0 < pieces < FEW_PIECES and product_work(batch, m, n, k) >= PARTS * LEAST_WORK


def product_work(batch: int, m: int, n: int, k: int) -> int:
    """Return the operations of a product, or as many as take the time to read its operands."""
    return 2 * batch * k * max(m * n, 4 * (m + n))


def _pieces(m: int, n: int) -> int:
    return -(-m // PIECE_ROWS) * -(-n // PIECE_COLUMNS)


def _parts(kernel: GemmKernel, depth: int, parts: View) -> GemmKernel:
    """Return the products of all whole parts, as a batch."""
    *batch, down, across = kernel.x.strides
    x = View(
        kernel.x.buffer,
        (PARTS, *kernel.batch, kernel.m, depth),
        (depth * across, *batch, down, across),
        kernel.x.offset,
    )
    y = _rows_in_parts(kernel.y, depth)
    windows = kernel.windows
    if windows is not None:
        windows = replace(windows, offsets=_rows_in_parts(windows.offsets, depth))
    out = View(parts.buffer, (PARTS, *parts.shape[1:]), parts.strides)
    batch_of_parts = (PARTS, *kernel.batch)
    return replace(kernel, batch=batch_of_parts, k=depth, x=x, y=y, out=out, windows=windows)


def _rows_in_parts(y: View, depth: int) -> View:
    """Return the rows of all whole parts, as a batch."""
    *batch, down, across = y.strides
    shape = (PARTS, *y.shape[:-2], depth, y.shape[-1])
    return View(y.buffer, shape, (depth * down, *batch, down, across), y.offset)


def _rest(kernel: GemmKernel, rest: int, parts: View) -> GemmKernel:
    """Return the product of what remains of the inner dimension."""
    first = kernel.k - rest
    x, y = kernel.x, kernel.y
    x = View(x.buffer, (*x.shape[:-1], rest), x.strides, x.offset + first * x.strides[-1])
    windows = kernel.windows
    if windows is not None:
        windows = replace(windows, offsets=_rows_from(windows.offsets, first))
    out = View(parts.buffer, kernel.out.shape, parts.strides[1:], PARTS * parts.strides[0])
    y = _rows_from(y, first)
    return replace(kernel, k=rest, x=x, y=y, out=out, origins=(), windows=windows)


def _rows_from(y: View, first: int) -> View:
    """Return the rows from one on."""
    *batch, depth, columns = y.shape
    shape = (*batch, depth - first, columns)
    return View(y.buffer, shape, y.strides, y.offset + first * y.strides[-2])


def sum_of_parts(kernel: GemmKernel, parts: View, out: View) -> ColumnKernel:
    """Return the kernel that adds up the parts of each element of a product."""
    count, elements = parts.shape[0], size_of(parts.shape[1:])
    lines = View(parts.buffer, (count, elements), (elements, 1))
    total = out.reshaped((elements,))
    assert total is not None
    return ColumnKernel(
        kernel.name,
        (count, elements),
        (True, False),
        (Operand(lines, (elements, 1)), Operand(total, (0, 1))),
        Output(1, ScalarBuilder().load(0, kernel.out.dtype)),
        "sum",
        kernel.origins,
    )
