"""Write row kernels: loops over rows, and in each row passes over its elements by vectors.

    void kernel(ptr operand0, ..., i64 begin, i64 end)

runs units begin to end: rows, or blocks of rows where rows are combined element by element. A
kernel with a single loop has no rows: it runs the elements from begin to end. Parts of a kernel may
run on different threads; each unit is done by one of them, in one order, so that results do not
depend on how the units are divided.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from ....core.dim import Dim
from ....core.shape import Size
from ....lower.kernels import RowKernel
from .accumulation import Accumulation
from .elements import ElementWriter, Line
from .scalars import identity_of, write_number
from .text import ModuleText
from .turning import is_turning, write_turning_kernel
from .values import IRValue, element_of


def write_row_kernel(module: ModuleText, name: str, kernel: RowKernel) -> None:
    """Add the function of a kernel to a module."""
    if is_turning(kernel, module.target):
        write_turning_kernel(module, name, kernel)
    else:
        RowWriter(module, name, kernel).write()


class RowWriter(ElementWriter):
    """Writes one kernel."""

    def write(self) -> None:
        """Write the function."""
        f = self.f
        for line in self.lines:
            self._allocate(line)
        if self.streamed:
            self._stream()
        self._all()
        f.ret()

    def _allocate(self, line: Line) -> None:
        """Give the kept values of a row their scratch memory."""
        for key, expr in self.phases.kept.items():
            if key not in self.places:
                element = element_of(expr.dtype)
                size = self.kernel.columns + self.lanes
                line.scratch[key] = self.f.alloca("i8" if element == "i1" else element, size)

    def _all(self) -> None:
        """Write all loops."""
        if len(self.kernel.loops) == 1:
            self._flat()
        elif self.totals:
            self._blocks()
        else:
            self._rows(self.begin, self.end)

    def _stream(self) -> None:
        """Write the loops with stores past the caches, for results at boundaries of vectors."""
        f = self.f
        begin = self.begin if len(self.kernel.loops) == 1 else f.constant("i64", 0)
        starts = [f.number_of(self.address(i, begin)) for i in sorted(self.streamed)]
        beyond = f.and_(reduce(f.or_, starts), f.target.vector_bytes - 1)
        fitting, other = f.label("fitting"), f.label("other")
        f.branch_if(f.icmp("eq", beyond, 0), fitting, other)
        f.block(fitting)
        pointers = list(self.pointers)  # blocks move them
        self._all()
        self.pointers = pointers
        f.write("fence seq_cst")  # these stores are not in order with others
        f.ret()
        f.block(other)
        self.streamed = frozenset()

    def _rows(self, begin: IRValue, end: IRValue) -> None:
        """Write the loop over rows, by tiles if operands must be turned."""
        if self.tiles is None:
            self._each_row(begin, end)
        else:
            for rows in self.tiles.each(self.pointers, begin, end):
                self._each_row(*rows)

    def _each_row(self, begin: IRValue, end: IRValue) -> None:
        """Write the loop over rows, several at a time where that is best, and over what remains."""
        f, lines = self.f, self.lines
        if len(lines) > 1:
            whole = f.sub(end, f.urem(f.sub(end, begin), len(lines)))
            with f.loop(begin, whole, len(lines)) as row:
                self._row(row)
            begin = whole
        self.lines = lines[:1]
        with f.loop(begin, end, 1) as row:
            self._row(row)
        self.lines = lines

    def _begin(self, line: Line, row: IRValue) -> None:
        """Find out where a row lies."""
        places = self._places_of_loops(row)
        zero = self.f.constant("i64", 0)
        line.bases = [self._base(i, places) for i in range(len(self.pointers))]
        if self.tiles is not None:
            for number in self.tiles.places:
                line.bases[number] = self.tiles.row_of(number, row)
        line.iota_bases = [self._offset(s, places) or zero for s in self.kernel.iotas]
        line.rows = {}

    def _blocks(self) -> None:
        """Write the loop over blocks of rows, each with totals of its own."""
        f, kernel = self.f, self.kernel
        starts = {n: self.pointers[n] for n in self.totals}
        with f.loop(self.begin, self.end, 1) as unit:
            for operand, way in self.totals.items():
                place = f.mul(unit, kernel.columns)
                self.pointers[operand] = self.address(operand, place, starts[operand])
                self._clear(operand, way)
            first = f.mul(unit, kernel.block)
            last = f.add(first, kernel.block)
            self._rows(
                first, last if kernel.rows % kernel.block == 0 else f.minimum(last, kernel.rows)
            )

    def _clear(self, operand: int, way: str) -> None:
        dtype = self.kernel.operands[operand].view.dtype

        def body(i: IRValue, count: IRValue | None) -> None:
            place = self.address(operand, i)
            start = write_number(self.f, dtype, identity_of(way, dtype), self.lanes)
            self.f.store(start, place, count=count if self.lanes > 1 else None)

        self._loop_over(0, self.kernel.columns, body)

    def _places_of_loops(self, row: IRValue) -> list[IRValue]:
        """Return the index of each loop over rows, outermost first."""
        f, (_, *sizes, _) = self.f, self.kernel.loops
        places, rest = [], row
        for size in reversed(sizes):
            places.append(f.urem(rest, size))
            rest = f.udiv(rest, size)
        return [rest, *reversed(places)]

    def _base(self, operand: int, places: list[IRValue]) -> IRValue:
        """Return the address of a row of an operand."""
        offset = self._offset(self.kernel.operands[operand].strides, places)
        return self.pointers[operand] if offset is None else self.address(operand, offset)

    def _offset(self, all_strides: tuple[int, ...], places: list[IRValue]) -> IRValue | None:
        """Return how far a row lies behind the first one; None if not at all."""
        f = self.f
        *strides, _ = all_strides
        offset: IRValue | None = None
        for index, stride in zip(places, strides, strict=True):
            if stride:
                part = f.mul(index, stride) if stride != 1 else index
                offset = part if offset is None else f.add(offset, part)
        return offset

    def _flat(self) -> None:
        f = self.f
        self.line.bases = list(self.pointers)
        self.line.iota_bases = [f.constant("i64", 0)] * len(self.kernel.iotas)
        self.line.rows = {}
        self._row_values(0)
        roots = self.phases.roots(0)
        count = f.sub(self.end, self.begin)

        def body(i: IRValue, rest: IRValue | None) -> None:
            env: dict[int, IRValue] = {}
            at = f.add(self.begin, i)
            # Everything is loaded before anything is stored: an output may lie where an input did.
            values = [self.value(root, 0, at, rest, env) for root in roots]
            for root, value in zip(roots, values, strict=True):
                self.store(root, value, at, rest)

        whole = f.and_(count, -self.lanes)
        with f.loop(0, whole, self.lanes) as i:
            body(i, None)
        if self.lanes > 1:
            with self.narrowed(), f.loop(whole, count, self.lanes) as i:
                body(i, f.sub(count, i))

    def _row(self, first: IRValue) -> None:
        """Write all passes over a row, or over several that do not wait for one another."""
        for n, line in enumerate(self.lines):
            self._begin(line, first if n == 0 else self.f.add(first, n))
        for phase in range(self.phases.count):
            for _ in self.each_line():
                self._row_values(phase)
            self._pass(phase)
        for line in self.each_line():
            self._row_values(self.phases.count)
            for output in self.kernel.outputs:
                if not self.phases.per_element(output):
                    self.f.store(self.row_value(output.value), line.bases[output.operand])

    def _row_values(self, phase: int) -> None:
        """Write the values per row that are known before a pass."""
        for expr in self.phases.order:
            ready = self.phases.phase[id(expr)] == phase and not self.phases.is_full(expr)
            awaited = expr.kind == "reduce" and id(expr) not in self.phases.picks
            if ready and id(expr) not in self.line.rows and not awaited:
                self.row_value(expr)

    def _pass(self, phase: int) -> None:
        """Write one pass over the elements: stores, and reductions with their accumulators."""
        reductions = [
            e for e in self.phases.reductions if self.phases.phase[id(e.args[0])] == phase
        ]
        roots = self.phases.roots(phase)
        if not roots and not reductions:
            return
        if reductions:
            Accumulation(self, phase, reductions).write()
        else:
            self._loop_over(0, self._width, lambda i, n: self._all_elements(phase, i, n))

    @property
    def _width(self) -> Size:
        """How many elements of a row are treated before others of the next one."""
        return self.kernel.columns if self.tiles is None else self.tiles.columns

    def _all_elements(self, phase: int, i: IRValue, count: IRValue | None) -> None:
        i = i if self.tiles is None else self.f.add(self.tiles.left, i)
        for _ in self.each_line():
            self.elements(phase, i, count)

    def _loop_over(
        self, start: int, stop: Size, body: Callable[[IRValue, IRValue | None], object]
    ) -> None:
        """Write a loop over vectors of a row, and what remains."""
        f = self.f
        if isinstance(stop, Dim):
            self._loop_over_any(stop, body)
            return
        start = self._whole_vectors(start, stop, body)
        with self.narrowed(stop - start):
            start = self._whole_vectors(start, stop, body)
            if start < stop:
                body(f.constant("i64", start), f.constant("i64", stop - start))

    def _loop_over_any(self, stop: Dim, body: Callable[[IRValue, IRValue | None], object]) -> None:
        """Write a loop over vectors of a row whose length only a run knows, and what remains."""
        f, wide = self.f, self.lanes
        with f.loop(0, stop // wide * wide, wide) as i:
            body(i, None)
        with self.narrowed():
            end = stop // self.lanes * self.lanes
            if self.lanes < wide:
                with f.loop(stop // wide * wide, end, self.lanes) as i:
                    body(i, None)
            if self.lanes > 1:
                with f.when(f.icmp("slt", f.size(end), stop)):
                    body(f.size(end), f.size(stop - end))

    def _whole_vectors(
        self, start: int, stop: int, body: Callable[[IRValue, IRValue | None], object]
    ) -> int:
        """Write a loop over whole vectors; return where they end."""
        end = start + (stop - start) // self.lanes * self.lanes
        if end > start:
            with self.f.loop(start, end, self.lanes) as i:
                body(i, None)
        return end
