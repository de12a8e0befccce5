"""Write copies that turn a matrix: read along its columns, written along its rows.

    void kernel(ptr source, ptr target, i64 begin, i64 end)

copies rows begin to end of the target, as any row kernel does. Element by element each of them
would touch another line of the source; instead squares are read by vectors, transposed in
registers, and stored by vectors. Two squares stand side by side where there are rows enough, so
that whole lines of the cache are used at once.
"""

from __future__ import annotations

from ..lower.kernels import RowKernel
from .gemm_pack import transposed
from .target import Target
from .text import FunctionText, ModuleText
from .values import Value, element_of, vector_of

SQUARES = 2
WIDTHS = (4, 8)  # bytes of elements that vectors are transposed of


def is_turning(kernel: RowKernel, target: Target) -> bool:
    """Tell whether a kernel only copies, from columns to rows, and fills squares."""
    if len(kernel.operands) != 2 or len(kernel.outputs) != 1 or len(kernel.loops) < 2:
        return False
    (output,), (source, result) = kernel.outputs, kernel.operands
    value, size = output.value, source.view.dtype.itemsize
    copies = value.kind == "load" and value.data == 0 and output.operand == 1
    if not copies or output.way is not None or size not in WIDTHS:
        return False
    down, across = source.strides[-2:]
    turned = down == 1 and across > 1 and result.strides[-1] == 1
    return turned and min(kernel.loops[-2:]) >= target.vector_bytes // size


def write_turning_kernel(module: ModuleText, name: str, kernel: RowKernel) -> None:
    """Add the function of such a kernel to a module."""
    _TurningWriter(module.function(name, ["ptr noalias"] * 2 + ["i64"] * 2), kernel).write()


class _TurningWriter:
    def __init__(self, f: FunctionText, kernel: RowKernel) -> None:
        self.f = f
        self.source_strides, self.target_strides = (o.strides for o in kernel.operands)
        self.outer = kernel.loops[:-2]
        self.rows, self.columns = kernel.loops[-2:]
        dtype = kernel.operands[0].view.dtype
        self.element = element_of(dtype)
        self.lanes = f.target.vector_bytes // dtype.itemsize

    def write(self) -> None:
        """Write the loop over matrices, each with the rows of it that are wanted."""
        f = self.f
        source, target, begin, end = f.parameters
        first, last = f.udiv(begin, self.rows), f.udiv(f.add(end, self.rows - 1), self.rows)
        with f.loop(first, last, 1) as matrix:
            before = f.mul(matrix, self.rows)
            start = f.maximum(f.sub(begin, before), 0)
            stop = f.minimum(f.sub(end, before), self.rows)
            here = self._matrix(source, matrix, self.source_strides)
            self._turn(here, self._matrix(target, matrix, self.target_strides), start, stop)
        f.ret()

    def _matrix(self, place: Value, number: Value, strides: tuple[int, ...]) -> Value:
        """Return where a matrix lies of all those that the outer loops count."""
        f = self.f
        for axis in reversed(range(len(self.outer))):
            index = f.urem(number, self.outer[axis]) if axis else number
            number = f.udiv(number, self.outer[axis]) if axis else number
            place = f.gep(place, f.mul(index, strides[axis]), self.element)
        return place

    def _turn(self, source: Value, target: Value, start: Value, stop: Value) -> None:
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

    def _squares(self, source: Value, target: Value, rows: int) -> None:
        f, lanes = self.f, self.lanes
        with f.loop(0, self.columns, lanes) as i:
            column = f.minimum(i, self.columns - lanes) if self.columns % lanes else i
            for row in range(0, rows, lanes):
                lines = [
                    f.load(vector_of(self.element, lanes), self._source(source, column, row, j))
                    for j in range(lanes)
                ]
                for j, value in enumerate(transposed(f, lines)):
                    down = f.gep(target, (row + j) * self.target_strides[-2], self.element)
                    f.store(value, f.gep(down, column, self.element))

    def _source(self, source: Value, column: Value, row: int, line: int) -> Value:
        f, across = self.f, self.source_strides[-1]
        start = f.gep(source, f.mul(column, across), self.element)
        return f.gep(start, line * across + row, self.element)

    def _row(self, source: Value, target: Value) -> None:
        f = self.f
        with f.loop(0, self.columns, 1) as i:
            element = f.load(self.element, self._source(source, i, 0, 0))
            f.store(element, f.gep(target, i, self.element))
