"""Write copies that turn a matrix: read along its columns, written along its rows.

    void kernel(ptr source, ptr target, i64 begin, i64 end)

copies rows begin to end of the target, as any row kernel does. Element by element each of them
would touch another line of the source; instead squares are read by vectors, transposed in
registers, and stored by vectors. Two squares stand side by side where there are rows enough, so
that whole lines of the cache are used at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ....core.dim import is_known
from ....lower.kernels import RowKernel
from .gemm.pack import transposed
from .target import Target
from .text import FunctionText, ModuleText
from .values import IRValue, bytes_of, element_of, vector_of

SQUARES = 2
WIDTHS = (4, 8)  # bytes of elements that vectors are transposed of


def is_turning(kernel: RowKernel, target: Target) -> bool:
    """Tell whether a kernel only copies, from columns to rows, and fills squares."""
    if len(kernel.operands) != 2 or len(kernel.outputs) != 1 or len(kernel.loops) < 2:
        return False
    (output,), (source, result) = kernel.outputs, kernel.operands
    value, size = output.value, source.view.dtype.itemsize
    copies = value.kind == "load" and value.data == 0 and output.operand == 1
    if not is_known((*kernel.loops[-2:], *source.strides[-2:], *result.strides[-2:])):
        return False
    if not copies or output.way is not None or size not in WIDTHS:
        return False
    down, across = source.strides[-2:]
    turned = down == 1 and across > 1 and result.strides[-1] == 1
    return bool(turned and min(kernel.loops[-2:]) >= target.vector_bytes // size)


def write_turning_kernel(module: ModuleText, name: str, kernel: RowKernel) -> None:
    """Add the function of such a kernel to a module."""
    _TurningWriter(module.function(name, ["ptr noalias"] * 2 + ["i64"] * 2), kernel).write()


class Matrices:
    """The matrices that the outer loops of a kernel count, the last two being rows and columns."""

    def __init__(self, f: FunctionText, loops: tuple[int, ...]) -> None:
        self.f = f
        self.outer = loops[:-2]
        self.rows = loops[-2]

    @contextmanager
    def between(self, begin: IRValue, end: IRValue) -> Iterator[tuple[IRValue, IRValue, IRValue]]:
        """Write a loop over matrices; yield the number of one, and from where to where it goes."""
        f = self.f
        if not self.outer:
            yield f.constant("i64", 0), begin, end
            return
        first, last = f.udiv(begin, self.rows), f.udiv(f.add(end, self.rows - 1), self.rows)
        with f.loop(first, last, 1) as matrix:
            before = f.mul(matrix, self.rows)
            start = f.maximum(f.sub(begin, before), 0)
            yield matrix, start, f.minimum(f.sub(end, before), self.rows)

    def place(
        self, start: IRValue, number: IRValue, strides: tuple[int, ...], element: str
    ) -> IRValue:
        """Return where a matrix lies of all those that the outer loops count."""
        f = self.f
        for axis in reversed(range(len(self.outer))):
            index = f.urem(number, self.outer[axis]) if axis else number
            number = f.udiv(number, self.outer[axis]) if axis else number
            start = f.gep(start, f.mul(index, strides[axis]), element)
        return start


def turn_square(
    f: FunctionText, source: IRValue, target: IRValue, element: str, across: int, down: int
) -> None:
    """Copy a square, a vector wide and high: its lines are `across` apart, then `down`."""
    lanes = f.target.vector_bytes // bytes_of(element)
    type = vector_of(element, lanes)
    lines = [f.load(type, f.gep(source, j * across, element)) for j in range(lanes)]
    for j, value in enumerate(transposed(f, lines)):
        f.store(value, f.gep(target, j * down, element))


class _TurningWriter:
    def __init__(self, f: FunctionText, kernel: RowKernel) -> None:
        self.f = f
        self.source_strides, self.target_strides = (o.strides for o in kernel.operands)
        self.matrices = Matrices(f, kernel.loops)
        self.columns = kernel.columns
        dtype = kernel.operands[0].view.dtype
        self.element = element_of(dtype)
        self.lanes = f.target.vector_bytes // dtype.itemsize

    def write(self) -> None:
        """Write the loop over matrices, each with the rows of it that are wanted."""
        source, target, begin, end = self.f.parameters
        with self.matrices.between(begin, end) as (matrix, start, stop):
            here = self.matrices.place(source, matrix, self.source_strides, self.element)
            there = self.matrices.place(target, matrix, self.target_strides, self.element)
            self._turn(here, there, start, stop)
        self.f.ret()

    def _turn(self, source: IRValue, target: IRValue, start: IRValue, stop: IRValue) -> None:
        """Write rows by squares side by side, by one square, and what is left singly."""
        f = self.f
        for count in (SQUARES * self.lanes, self.lanes, 1):
            whole = f.sub(stop, f.urem(f.sub(stop, start), count))
            with f.loop(start, whole, count) as row:
                here = f.gep(source, row, self.element)
                there = f.gep(target, f.mul(row, self.target_strides[-2]), self.element)
                if count == 1:
                    self._row(here, there)
                else:
                    self._squares(here, there, count)
            start = whole

    def _squares(self, source: IRValue, target: IRValue, rows: int) -> None:
        f, lanes, down = self.f, self.lanes, self.target_strides[-2]
        with f.loop(0, self.columns, lanes) as i:
            column = f.minimum(i, self.columns - lanes) if self.columns % lanes else i
            for row in range(0, rows, lanes):
                here = f.gep(self._source(source, column), row, self.element)
                there = f.gep(target, row * down, self.element)
                there = f.gep(there, column, self.element)
                turn_square(f, here, there, self.element, self.source_strides[-1], down)

    def _source(self, source: IRValue, column: IRValue) -> IRValue:
        return self.f.gep(source, self.f.mul(column, self.source_strides[-1]), self.element)

    def _row(self, source: IRValue, target: IRValue) -> None:
        f = self.f
        with f.loop(0, self.columns, 1) as i:
            element = f.load(self.element, self._source(source, i))
            f.store(element, f.gep(target, i, self.element))
