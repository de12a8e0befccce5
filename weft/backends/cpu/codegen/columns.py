"""Write column kernels: reductions over leading axes, a strip of columns at a time.

    void kernel(ptr operand0, ..., i64 begin, i64 end)

runs strips begin to end. A strip is a few vectors wide; its accumulators stay in registers while
the rows go by. Sums are taken in blocks of rows, so that rounding errors do not add up.
"""

from __future__ import annotations

from collections.abc import Callable

from ....core.dim import Dim, is_known, size_max, size_min
from ....core.scalar.builder import Expr, postorder
from ....core.shape import Size, size_of
from ....lower.kernels import ColumnKernel
from .lines import Operand
from .scalars import combine, identity_of, type_of, write_constant, write_number, write_operation
from .strided import load_strided
from .text import FunctionText, ModuleText
from .values import IRValue, element_of

VECTORS = 4
BLOCK = 512


def strips(kernel: ColumnKernel, lanes: int) -> int:
    """Return how many strips a kernel has."""
    kept = [n for n, gone in zip(kernel.loops, kernel.reduced, strict=True) if not gone]
    return int(size_of(kept[:-1]) * -(-kept[-1] // (VECTORS * lanes)))


def rows_of_a_block(rows: Size) -> Size:
    """Return how many rows are summed into one partial sum: all of them, if they are not many."""
    if is_known([rows]):
        return rows if rows <= 2 * BLOCK else BLOCK
    few = size_max(0, size_min(1, 2 * BLOCK + 1 - rows))  # 1 if they are, else 0
    return BLOCK + few * (rows - BLOCK)


def column_lanes(kernel: ColumnKernel, target_lanes: Callable[[object], int]) -> int:
    """Return the lanes of a kernel's vectors: 1 if the result is not written in sequence."""
    if kernel.operands[kernel.output.operand].strides[-1] not in (0, 1):
        return 1
    return target_lanes(kernel.output.value.dtype)


def write_column_kernel(module: ModuleText, name: str, kernel: ColumnKernel) -> None:
    """Add the function of a kernel to a module."""
    _ColumnWriter(module, name, kernel).write()


class _ColumnWriter:
    """Writes one kernel."""

    def __init__(self, module: ModuleText, name: str, kernel: ColumnKernel) -> None:
        self.kernel = kernel
        self.f: FunctionText = module.function(
            name, [*["ptr"] * len(kernel.operands), "i64", "i64"]
        )
        *self.pointers, self.begin, self.end = self.f.parameters
        self.lanes = column_lanes(kernel, self.f.target.lanes)
        self.width = self.lanes * VECTORS
        self.reduced = [i for i, gone in enumerate(kernel.reduced) if gone]
        self.kept = [i for i, gone in enumerate(kernel.reduced) if not gone][:-1]

    def write(self) -> None:
        """Write the function."""
        f = self.f
        columns = self.kernel.loops[-1]
        across = -(-columns // self.width)
        with f.loop(self.begin, self.end, 1) as strip:
            outer = f.udiv(strip, across) if self.kept else None
            number = f.urem(strip, across) if self.kept else strip
            first = f.mul(number, self.width)
            bases = [self._base(i, outer) for i in range(len(self.pointers))]
            if columns % self.width == 0:
                self._strip(bases, first, None)
            else:
                self._last_or_whole(bases, first, columns)
        f.ret()

    def _last_or_whole(self, bases: list[IRValue], first: IRValue, columns: Size) -> None:
        f = self.f
        whole, last, done = f.label("whole"), f.label("last"), f.label("next")
        f.branch_if(f.icmp("sle", first, columns - self.width), whole, last)
        f.block(whole)
        self._strip(bases, first, None)
        f.branch(done)
        f.block(last)
        start = columns // self.width * self.width
        self._strip(bases, f.constant("i64", start), columns - start)
        f.branch(done)
        f.block(done)

    def _base(self, operand: int, outer: IRValue | None) -> IRValue:
        """Return the address of an operand for the kept axes before the last."""
        f, place = self.f, self.pointers[operand]
        strides = self.kernel.operands[operand].strides
        rest = outer
        for axis in reversed(self.kept):
            assert rest is not None
            size = self.kernel.loops[axis]
            index = f.urem(rest, size)
            rest = f.udiv(rest, size)
            if strides[axis]:
                place = self._address(operand, place, f.mul(index, strides[axis]))
        return place

    def _address(self, operand: int, base: IRValue, index: IRValue) -> IRValue:
        return self.f.gep(base, index, element_of(self.kernel.operands[operand].view.dtype))

    # -- one strip ---------------------------------------------------------------------------------

    def _strip(self, bases: list[IRValue], first: IRValue, rest: Size | None) -> None:
        """Write the reduction of one strip; `rest` is its width if that is not the full one."""
        if isinstance(rest, Dim) and self.lanes == 1:
            self._single_columns(bases, first, rest)
            return
        known = rest is not None and is_known([rest])
        vectors = -(-rest // self.lanes) if rest is not None and known else VECTORS
        counts = [self._count(rest, v) for v in range(vectors)]
        start = [self._identity()] * vectors
        sums = self._over_rows(0, bases, first, counts, start)
        output = self.kernel.output.operand
        for v, (total, count) in enumerate(zip(sums, counts, strict=True)):
            place = self._address(output, bases[output], self._column(first, v))
            self.f.store(self._finished(total), place, count=count)

    def _single_columns(self, bases: list[IRValue], first: IRValue, rest: Dim) -> None:
        """Write the reduction of columns whose number only a run knows, one after another."""
        output = self.kernel.output.operand
        with self.f.loop(0, rest, 1) as number:
            column = self.f.add(first, number)
            (total,) = self._over_rows(0, bases, column, [None], [self._identity()])
            place = self._address(output, bases[output], column)
            self.f.store(self._finished(total), place)

    def _finished(self, total: IRValue) -> IRValue:
        """Return what is stored: the result of the reduction, or a function of it."""
        expr = self.kernel.finish
        if expr is None:
            return total
        env = {id(e): total for e in postorder([expr]) if e.kind == "reduce"}
        return self._value(expr, [], total, None, env)

    def _count(self, rest: Size | None, vector: int) -> IRValue | None:
        if rest is None or self.lanes == 1:
            return None
        left = rest - vector * self.lanes
        if isinstance(left, Dim):
            return self.f.size(left)
        return None if left >= self.lanes else self.f.constant("i64", left)

    def _identity(self) -> IRValue:
        expr = self.kernel.output.value
        neutral = identity_of(self.kernel.way, expr.dtype)
        return write_number(self.f, expr.dtype, neutral, self.lanes)

    def _column(self, first: IRValue, vector: int) -> IRValue:
        return first if vector == 0 else self.f.add(first, vector * self.lanes)

    def _over_rows(
        self,
        depth: int,
        bases: list[IRValue],
        first: IRValue,
        counts: list[IRValue | None],
        sums: list[IRValue],
    ) -> list[IRValue]:
        """Write the loops over reduced axes, the outermost in blocks if it is long."""
        if depth == len(self.reduced):
            return self._take(bases, first, counts, sums)
        axis = self.reduced[depth]
        size = self.kernel.loops[axis]

        def rows(start: Operand, stop: Operand, carry: list[IRValue]) -> list[IRValue]:
            with self.f.loop(start, stop, 1, carry=carry) as row:
                here = [self._row(i, base, axis, row) for i, base in enumerate(bases)]
                row.next(*self._over_rows(depth + 1, here, first, counts, list(row.carried)))
            return list(row.results)

        length = rows_of_a_block(size)
        if length == size:
            return rows(0, size, sums)
        f = self.f
        zeros = [self._identity()] * len(sums)
        whole = size // length * length
        with f.loop(0, whole, length, carry=sums) as block:
            partial = rows(block, f.add(block, length), zeros)
            block.next(*self._joined(list(block.carried), partial))
        total = list(block.results)
        return total if whole == size else self._joined(total, rows(whole, size, zeros))

    def _row(self, operand: int, base: IRValue, axis: int, row: IRValue) -> IRValue:
        stride = self.kernel.operands[operand].strides[axis]
        if not stride:
            return base
        return self._address(operand, base, self.f.mul(row, stride))

    def _joined(self, a: list[IRValue], b: list[IRValue]) -> list[IRValue]:
        dtype = self.kernel.output.value.dtype
        return [combine(self.f, self.kernel.way, dtype, x, y) for x, y in zip(a, b, strict=True)]

    def _take(
        self,
        bases: list[IRValue],
        first: IRValue,
        counts: list[IRValue | None],
        sums: list[IRValue],
    ) -> list[IRValue]:
        values = []
        for v, count in enumerate(counts):
            env: dict[int, IRValue] = {}
            column = self._column(first, v)
            values.append(self._value(self.kernel.output.value, bases, column, count, env))
        return self._joined(sums, values)

    def _value(
        self,
        expr: Expr,
        bases: list[IRValue],
        column: IRValue,
        count: IRValue | None,
        env: dict[int, IRValue],
    ) -> IRValue:
        known = env.get(id(expr))
        if known is None:
            if expr.kind == "const":
                known = write_constant(self.f, expr, self.lanes)
            elif expr.kind == "load":
                known = self._load(expr, bases, column, count)
            else:
                args = [self._value(a, bases, column, count, env) for a in expr.args]
                known = write_operation(self.f, expr, args)
            env[id(expr)] = known
        return known

    def _load(
        self, expr: Expr, bases: list[IRValue], column: IRValue, count: IRValue | None
    ) -> IRValue:
        stride = self.kernel.operands[expr.data].strides[-1]
        if stride == 0:
            return self.f.splat(self.f.load(element_of(expr.dtype), bases[expr.data]), self.lanes)
        type = type_of(expr, self.lanes)
        if stride != 1:
            return load_strided(self.f, type, bases[expr.data], column, stride, count)
        place = self._address(expr.data, bases[expr.data], column)
        return self.f.load(type, place, count=count)
