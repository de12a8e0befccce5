"""Write row kernels: loops over rows, and in each row passes over its elements by vectors.

    void kernel(ptr operand0, ..., i64 begin, i64 end)

runs units begin to end: rows, or blocks of rows where rows are combined element by element. A
kernel with a single loop has no rows: it runs the elements from begin to end. Parts of a kernel may
run on different threads; each unit is done by one of them, in one order, so that results do not
depend on how the units are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce

from ..lower.kernels import Output, RowKernel
from ..lower.scalar import Expr
from ..lower.scalar_kinds import PLACED
from .accumulation import Accumulation, rows_together
from .fetching import LINE_BYTES, fetched_operands, fetching_pass
from .phases import Phases
from .placed import Turn, write_placed
from .scalars import (
    broadcast_to_lanes,
    combine,
    identity_of,
    type_of,
    write_constant,
    write_operation,
)
from .streaming import AHEAD, operands_read_ahead, streamed_operands
from .text import FunctionText, ModuleText
from .turning import is_turning, write_turning_kernel
from .values import Value, element_of, vector_of
from .width import register_lanes, vectors_of


@dataclass
class Line:
    """What belongs to one of the rows that are treated together.

    bases        where its operands lie
    iota_bases   what numbers that follow from the loops' counters begin with
    rows         its values per row
    scratch      memory of kept values
    """

    bases: list[Value] = field(default_factory=list)
    iota_bases: list[Value] = field(default_factory=list)
    rows: dict[int, Value] = field(default_factory=dict)
    scratch: dict[int, Value] = field(default_factory=dict)


def write_row_kernel(module: ModuleText, name: str, kernel: RowKernel) -> None:
    """Add the function of a kernel to a module."""
    if is_turning(kernel, module.target):
        write_turning_kernel(module, name, kernel)
    else:
        RowWriter(module, name, kernel).write()


class RowWriter:
    """Writes one kernel."""

    def __init__(self, module: ModuleText, name: str, kernel: RowKernel) -> None:
        self.kernel = kernel
        pointers = ["ptr"] * len(kernel.operands)
        self.f: FunctionText = module.function(name, [*pointers, "i64", "i64"])
        *self.pointers, self.begin, self.end = self.f.parameters
        by_vectors = {o.strides[-1] for o in kernel.operands} <= {0, 1}
        streamed = streamed_operands(kernel, self.f.target) if by_vectors else frozenset[int]()
        self.phases = Phases(kernel, streamed)
        self.streamed = self.phases.streamed
        self.fetching = fetching_pass(kernel, self.phases, self.f.target) if by_vectors else None
        self.places = self.phases.places
        self.register = register_lanes(kernel, self.f.target) if by_vectors else 1
        self.together = rows_together(kernel, self.phases, self.register)
        self.vectors = vectors_of(self.phases, self.together) if by_vectors else 1
        self.lanes = self.register * self.vectors
        self.lines = [Line() for _ in range(self.together)]
        self.line = self.lines[0]
        self.totals = {o.operand: o.way for o in kernel.outputs if o.way is not None}
        self.ahead = operands_read_ahead(kernel, self.phases, self.f.target)

    @contextmanager
    def narrowed(self, rest: int = 0) -> Iterator[None]:
        """Treat a register of a value at a time: what remains when vectors are not filled.

        A rest between one and two registers is a single part of two, which are not all used.
        """
        wide, self.lanes = self.lanes, self.register
        if self.register < rest < 2 * self.register:
            self.lanes *= 2
        yield
        self.lanes = wide

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

    @property
    def bases(self) -> list[Value]:
        """Where the operands of the current row lie."""
        return self.line.bases

    @property
    def iota_bases(self) -> list[Value]:
        """What numbers that follow from the loops' counters begin with in the current row."""
        return self.line.iota_bases

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
        starts = [f.number_of(self._address(i, begin)) for i in sorted(self.streamed)]
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

    def _rows(self, begin: Value, end: Value) -> None:
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

    def _begin(self, line: Line, row: Value) -> None:
        """Find out where a row lies."""
        places = self._places_of_loops(row)
        zero = self.f.constant("i64", 0)
        line.bases = [self._base(i, places) for i in range(len(self.pointers))]
        line.iota_bases = [self._offset(s, places) or zero for s in self.kernel.iotas]
        line.rows = {}

    def each_line(self) -> Iterator[Line]:
        """Yield the rows that are treated together, each while it is the current one."""
        for line in self.lines:
            self.line = line
            yield line

    def _blocks(self) -> None:
        """Write the loop over blocks of rows, each with totals of its own."""
        f, kernel = self.f, self.kernel
        starts = {n: self.pointers[n] for n in self.totals}
        with f.loop(self.begin, self.end, 1) as unit:
            for operand, way in self.totals.items():
                place = f.mul(unit, kernel.columns)
                self.pointers[operand] = self._address(operand, place, starts[operand])
                self._clear(operand, way)
            first = f.mul(unit, kernel.block)
            last = f.add(first, kernel.block)
            self._rows(
                first, last if kernel.rows % kernel.block == 0 else f.minimum(last, kernel.rows)
            )

    def _clear(self, operand: int, way: str) -> None:
        dtype = self.kernel.operands[operand].view.dtype

        def body(i: Value, count: Value | None) -> None:
            place = self._address(operand, i)
            type = vector_of(element_of(dtype), self.lanes)
            start = self.f.constant(type, identity_of(way, dtype))
            self.f.store(start, place, count=count if self.lanes > 1 else None)

        self._loop_over(0, self.kernel.columns, body)

    def _places_of_loops(self, row: Value) -> list[Value]:
        """Return the index of each loop over rows, outermost first."""
        f, (_, *sizes, _) = self.f, self.kernel.loops
        places, rest = [], row
        for size in reversed(sizes):
            places.append(f.urem(rest, size))
            rest = f.udiv(rest, size)
        return [rest, *reversed(places)]

    def _base(self, operand: int, places: list[Value]) -> Value:
        """Return the address of a row of an operand."""
        offset = self._offset(self.kernel.operands[operand].strides, places)
        return self.pointers[operand] if offset is None else self._address(operand, offset)

    def _offset(self, all_strides: tuple[int, ...], places: list[Value]) -> Value | None:
        """Return how far a row lies behind the first one; None if not at all."""
        f = self.f
        *strides, _ = all_strides
        offset: Value | None = None
        for index, stride in zip(places, strides, strict=True):
            if stride:
                part = f.mul(index, stride) if stride != 1 else index
                offset = part if offset is None else f.add(offset, part)
        return offset

    def _address(self, operand: int, index: Value, base: Value | None = None) -> Value:
        element = element_of(self.kernel.operands[operand].view.dtype)
        return self.f.gep(self.pointers[operand] if base is None else base, index, element)

    # -- a kernel without rows ---------------------------------------------------------------------

    def _flat(self) -> None:
        f = self.f
        self.line.bases = list(self.pointers)
        self.line.iota_bases = [f.constant("i64", 0)] * len(self.kernel.iotas)
        self.line.rows = {}
        self._row_values(0)
        roots = self.phases.roots(0)
        count = f.sub(self.end, self.begin)

        def body(i: Value, rest: Value | None) -> None:
            env: dict[int, Value] = {}
            at = f.add(self.begin, i)
            # Everything is loaded before anything is stored: an output may lie where an input did.
            values = [self.value(root, 0, at, rest, env) for root in roots]
            for root, value in zip(roots, values, strict=True):
                self._store(root, value, at, rest)

        whole = f.and_(count, -self.lanes)
        with f.loop(0, whole, self.lanes) as i:
            body(i, None)
        if self.lanes > 1:
            with self.narrowed(), f.loop(whole, count, self.lanes) as i:
                body(i, f.sub(count, i))

    # -- one row -----------------------------------------------------------------------------------

    def _row(self, first: Value) -> None:
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
                    self.f.store(self._row_value(output.value), line.bases[output.operand])

    def _row_values(self, phase: int) -> None:
        """Write the values per row that are known before a pass."""
        for expr in self.phases.order:
            ready = self.phases.phase[id(expr)] == phase and not self.phases.is_full(expr)
            if ready and id(expr) not in self.line.rows and expr.kind != "reduce":
                self._row_value(expr)

    def _row_value(self, expr: Expr) -> Value:
        if id(expr) not in self.line.rows:
            if expr.kind == "const":
                value = write_constant(self.f, expr, 1)
            elif expr.kind == "load":
                value = self.f.load(element_of(expr.dtype), self.line.bases[expr.data])
            elif expr.kind in PLACED:
                args = [self._row_value(a) for a in expr.args]
                value = write_placed(expr, Turn(self, None, None, args))
            else:
                value = write_operation(self.f, expr, [self._row_value(a) for a in expr.args])
            self.line.rows[id(expr)] = value
        return self.line.rows[id(expr)]

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
            self._loop_over(0, self.kernel.columns, lambda i, n: self._all_elements(phase, i, n))

    def _all_elements(self, phase: int, i: Value, count: Value | None) -> None:
        for _ in self.each_line():
            self.elements(phase, i, count)

    def _loop_over(
        self, start: int, stop: int, body: Callable[[Value, Value | None], object]
    ) -> None:
        """Write a loop over vectors of a row whose length is known, and what remains."""
        f = self.f
        start = self._whole_vectors(start, stop, body)
        with self.narrowed(stop - start):
            start = self._whole_vectors(start, stop, body)
            if start < stop:
                body(f.constant("i64", start), f.constant("i64", stop - start))

    def _whole_vectors(
        self, start: int, stop: int, body: Callable[[Value, Value | None], object]
    ) -> int:
        """Write a loop over whole vectors; return where they end."""
        end = start + (stop - start) // self.lanes * self.lanes
        if end > start:
            with self.f.loop(start, end, self.lanes) as i:
                body(i, None)
        return end

    def elements(self, phase: int, i: Value, count: Value | None) -> dict[int, Value]:
        """Write what a pass computes for one vector of elements; return its values."""
        env: dict[int, Value] = {}
        if phase == self.fetching and count is None:
            self._fetch_next_row(i)
        roots = self.phases.roots(phase)
        kept = [e for key, e in self.phases.kept.items() if self.phases.phase[key] == phase]
        values = [self.value(expr, phase, i, count, env) for expr in (*roots, *kept)]
        for root, value in zip(roots, values, strict=False):
            self._store(root, value, i, count)
        for expr, value in zip(kept, values[len(roots) :], strict=True):
            if not self.phases.is_stored(expr):
                self._keep(expr, value, i, count)
        return env

    def _fetch_next_row(self, i: Value) -> None:
        """Ask for the place of a vector of elements in the next row; there need not be one."""
        for number in fetched_operands(self.kernel, self.phases):
            operand = self.kernel.operands[number]
            for k in range(0, self.lanes, LINE_BYTES // operand.view.dtype.itemsize):
                place = self.f.add(i, len(self.lines) * operand.strides[-2] + k)
                self.f.prefetch(self._address(number, place, self.line.bases[number]))

    def value(
        self, expr: Expr, phase: int, i: Value, count: Value | None, env: dict[int, Value]
    ) -> Value:
        """Return the value of an expression for one vector of elements."""
        known = env.get(id(expr))
        if known is None:
            known = env[id(expr)] = self._new_value(expr, phase, i, count, env)
        return known

    def _new_value(
        self, expr: Expr, phase: int, i: Value, count: Value | None, env: dict[int, Value]
    ) -> Value:
        if expr.kind == "const":
            return write_constant(self.f, expr, self.lanes)
        if not self.phases.is_full(expr):
            return broadcast_to_lanes(self.f, self._row_value(expr), self.lanes)
        if expr.kind == "load":
            return self._load(expr, i, count)
        if expr.kind == "index":
            return self._numbers(i)
        if id(expr) in self.phases.kept and self.phases.phase[id(expr)] < phase:
            return self._kept(expr, i, count)
        if expr.kind in PLACED:
            placed = self._placed_args(expr, phase, i, count, env)
            return write_placed(expr, Turn(self, i, count, placed))
        args = [self.value(a, phase, i, count, env) for a in expr.args]
        return write_operation(self.f, expr, args)

    def _placed_args(
        self, expr: Expr, phase: int, i: Value, count: Value | None, env: dict[int, Value]
    ) -> list[Value]:
        """Return what an expression is computed from, values per row as scalars."""
        return [
            self.value(a, phase, i, count, env) if self.phases.is_full(a) else self._row_value(a)
            for a in expr.args
        ]

    def _numbers(self, i: Value) -> Value:
        """Return where in the row the elements of a vector stand."""
        if self.lanes == 1:
            return i
        numbers = self.f.lane_numbers(vector_of("i64", self.lanes))
        return self.f.add(self.f.splat(i, self.lanes), numbers)

    def _load(self, expr: Expr, i: Value, count: Value | None) -> Value:
        stride = self.kernel.operands[expr.data].strides[-1]
        index = i if stride == 1 else self.f.mul(i, stride)
        place = self._address(expr.data, index, self.line.bases[expr.data])
        if count is None and expr.data in self.ahead:
            self.f.read_ahead(place, self.lanes * expr.dtype.itemsize, AHEAD)
        masked = count if self.lanes > 1 else None
        return self.f.load(type_of(expr, self.lanes), place, count=masked)

    def _store(self, expr: Expr, value: Value, i: Value, count: Value | None) -> None:
        for output in self.kernel.outputs:
            if output.value is expr and self.phases.per_element(output):
                stride = self.kernel.operands[output.operand].strides[-1]
                index = i if stride == 1 else self.f.mul(i, stride)
                place = self._address(output.operand, index, self.line.bases[output.operand])
                self._put(output, value, place, count if self.lanes > 1 else None)

    def _put(self, output: Output, value: Value, place: Value, count: Value | None) -> None:
        """Store a value, or combine it with that of the rows before."""
        if output.way is not None:
            before = self.f.load(value.type, place, count=count)
            value = combine(self.f, output.way, output.value.dtype, before, value)
        past = output.operand in self.streamed and count is None
        self.f.store(value, place, count=count, streamed=past)

    def _keep(self, expr: Expr, value: Value, i: Value, count: Value | None) -> None:
        masked = count if self.lanes > 1 else None
        self.f.store(value, self._kept_place(expr, i), count=masked)

    def _kept(self, expr: Expr, i: Value, count: Value | None) -> Value:
        masked = count if self.lanes > 1 else None
        return self.f.load(type_of(expr, self.lanes), self._kept_place(expr, i), count=masked)

    def _kept_place(self, expr: Expr, i: Value) -> Value:
        operand = self.places.get(id(expr))
        if operand is not None:
            return self._address(operand, i, self.line.bases[operand])
        return self.f.gep(self.line.scratch[id(expr)], i, element_of(expr.dtype))
