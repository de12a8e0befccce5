"""Write what row kernels compute: the values of a row, and of one vector of its elements.

How the loops around it run is the subject of rows.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ....core.scalar.builder import PLACED, Expr
from ....lower.kernels import Output, RowKernel
from .fetching import LINE_BYTES, fetched_operands, fetching_pass
from .phases import Phases
from .picks import Pick
from .placed import Turn, write_placed
from .scalars import (
    broadcast_to_lanes,
    combine,
    identity_of,
    type_of,
    write_constant,
    write_number,
    write_operation,
)
from .streaming import AHEAD, operands_read_ahead, streamed_operands
from .strided import by_vectors, load_strided
from .text import FunctionText, ModuleText
from .tiles import Tiles, tiling_of
from .values import IRValue, element_of, vector_of
from .width import is_short, register_lanes, rows_together, vectors_of


@dataclass
class Line:
    """What belongs to one of the rows that are treated together.

    bases        where its operands lie
    iota_bases   what numbers that follow from the loops' counters begin with
    rows         its values per row
    scratch      memory of kept values
    """

    bases: list[IRValue] = field(default_factory=list)
    iota_bases: list[IRValue] = field(default_factory=list)
    rows: dict[int, IRValue] = field(default_factory=dict)
    scratch: dict[int, IRValue] = field(default_factory=dict)


class ElementWriter:
    """Writes the elements of one kernel, wherever its loops have come to."""

    def __init__(self, module: ModuleText, name: str, kernel: RowKernel) -> None:
        self.kernel = kernel
        pointers = ["ptr"] * len(kernel.operands)
        self.f: FunctionText = module.function(name, [*pointers, "i64", "i64"])
        *self.pointers, self.begin, self.end = self.f.parameters
        vectors = by_vectors(kernel)
        streamed = streamed_operands(kernel, self.f.target) if vectors else frozenset[int]()
        self.phases = Phases(kernel, streamed)
        self.streamed = self.phases.streamed
        self.fetching = fetching_pass(kernel, self.phases, self.f.target) if vectors else None
        self.places = self.phases.places
        tiling = tiling_of(kernel, self.phases, self.f.target) if vectors else None
        self.tiles = None if tiling is None else Tiles(self.f, kernel, tiling)
        self.register = register_lanes(kernel, self.f.target) if vectors else 1
        self.short = is_short(kernel, self.phases, self.register)
        self.together = rows_together(kernel, self.phases, self.register)
        self.vectors = vectors_of(self.phases, short=self.short) if vectors else 1
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

    @property
    def bases(self) -> list[IRValue]:
        """Where the operands of the current row lie."""
        return self.line.bases

    @property
    def iota_bases(self) -> list[IRValue]:
        """What numbers that follow from the loops' counters begin with in the current row."""
        return self.line.iota_bases

    def each_line(self) -> Iterator[Line]:
        """Yield the rows that are treated together, each while it is the current one."""
        for line in self.lines:
            self.line = line
            yield line

    def address(self, operand: int, index: IRValue, base: IRValue | None = None) -> IRValue:
        """Return where an element lies, counted from the start of its operand or another place."""
        element = element_of(self.kernel.operands[operand].view.dtype)
        return self.f.gep(self.pointers[operand] if base is None else base, index, element)

    def row_value(self, expr: Expr) -> IRValue:
        """Return the value of an expression that all elements of a row share."""
        if id(expr) not in self.line.rows:
            if expr.kind == "const":
                value = write_constant(self.f, expr, 1)
            elif expr.kind == "load":
                value = self.f.load(element_of(expr.dtype), self.line.bases[expr.data])
            elif id(expr) in self.phases.picks:
                value = self._pick(expr, self.phases.picks[id(expr)])
            elif expr.kind in PLACED:
                args = [self.row_value(a) for a in expr.args]
                value = write_placed(expr, Turn(self, None, None, args))
            else:
                value = write_operation(self.f, expr, [self.row_value(a) for a in expr.args])
            self.line.rows[id(expr)] = value
        return self.line.rows[id(expr)]

    def _pick(self, expr: Expr, pick: Pick) -> IRValue:
        """Return a sum that is one element of the row, or none."""
        f, place = self.f, self.row_value(pick.place)
        exists = f.icmp("ult", place, self.kernel.columns)
        value = self._element_at(pick.value, f.select(exists, place, 0), {})
        for sign in pick.signs:
            value = write_operation(f, sign, [value])
        nothing = write_number(f, expr.dtype, identity_of("sum", expr.dtype), 1)
        return combine(f, "sum", expr.dtype, nothing, f.select(exists, value, nothing))

    def _element_at(self, expr: Expr, place: IRValue, env: dict[int, IRValue]) -> IRValue:
        """Return the value of an expression for the one element at a place of the row."""
        if not self.phases.is_full(expr):
            return self.row_value(expr)
        if id(expr) not in env:
            if expr.kind == "index":
                env[id(expr)] = place
            elif expr.kind == "load":
                at = self.f.mul(place, self.kernel.operands[expr.data].strides[-1])
                found = self.address(expr.data, at, self.line.bases[expr.data])
                env[id(expr)] = self.f.load(element_of(expr.dtype), found)
            else:
                args = [self._element_at(a, place, env) for a in expr.args]
                env[id(expr)] = write_operation(self.f, expr, args)
        return env[id(expr)]

    def elements(self, phase: int, i: IRValue, count: IRValue | None) -> dict[int, IRValue]:
        """Write what a pass computes for one vector of elements; return its values."""
        env: dict[int, IRValue] = {}
        if phase == self.fetching and count is None:
            self._fetch_next_row(i)
        roots = self.phases.roots(phase)
        kept = [e for key, e in self.phases.kept.items() if self.phases.phase[key] == phase]
        values = [self.value(expr, phase, i, count, env) for expr in (*roots, *kept)]
        for root, value in zip(roots, values, strict=False):
            self.store(root, value, i, count)
        for expr, value in zip(kept, values[len(roots) :], strict=True):
            if not self.phases.is_stored(expr):
                self._keep(expr, value, i, count)
        return env

    def _fetch_next_row(self, i: IRValue) -> None:
        """Ask for the place of a vector of elements in the next row; there need not be one."""
        for number in fetched_operands(self.kernel, self.phases):
            operand = self.kernel.operands[number]
            for k in range(0, self.lanes, LINE_BYTES // operand.view.dtype.itemsize):
                place = self.f.add(i, len(self.lines) * operand.strides[-2] + k)
                self.f.prefetch(self.address(number, place, self.line.bases[number]))

    def value(
        self, expr: Expr, phase: int, i: IRValue, count: IRValue | None, env: dict[int, IRValue]
    ) -> IRValue:
        """Return the value of an expression for one vector of elements."""
        known = env.get(id(expr))
        if known is None:
            known = env[id(expr)] = self._new_value(expr, phase, i, count, env)
        return known

    def _new_value(
        self, expr: Expr, phase: int, i: IRValue, count: IRValue | None, env: dict[int, IRValue]
    ) -> IRValue:
        if expr.kind == "const":
            return write_constant(self.f, expr, self.lanes)
        if not self.phases.is_full(expr):
            return broadcast_to_lanes(self.f, self.row_value(expr), self.lanes)
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
        self, expr: Expr, phase: int, i: IRValue, count: IRValue | None, env: dict[int, IRValue]
    ) -> list[IRValue]:
        """Return what an expression is computed from, values per row as scalars."""
        return [
            self.value(a, phase, i, count, env) if self.phases.is_full(a) else self.row_value(a)
            for a in expr.args
        ]

    def _numbers(self, i: IRValue) -> IRValue:
        """Return where in the row the elements of a vector stand."""
        if self.lanes == 1:
            return i
        numbers = self.f.lane_numbers(vector_of("i64", self.lanes))
        return self.f.add(self.f.splat(i, self.lanes), numbers)

    def _load(self, expr: Expr, i: IRValue, count: IRValue | None) -> IRValue:
        stride, base = self.kernel.operands[expr.data].strides[-1], self.line.bases[expr.data]
        if self.tiles is not None and expr.data in self.tiles.places:
            i = self.f.sub(i, self.tiles.left)
        elif stride != 1:
            return load_strided(self.f, type_of(expr, self.lanes), base, i, stride, count)
        place = self.address(expr.data, i, base)
        if count is None and expr.data in self.ahead:
            self.f.read_ahead(place, self.lanes * expr.dtype.itemsize, AHEAD)
        masked = count if self.lanes > 1 else None
        return self.f.load(type_of(expr, self.lanes), place, count=masked)

    def store(self, expr: Expr, value: IRValue, i: IRValue, count: IRValue | None) -> None:
        """Store a vector of elements wherever the kernel puts them."""
        for output in self.kernel.outputs:
            if output.value is expr and self.phases.per_element(output):
                stride = self.kernel.operands[output.operand].strides[-1]
                index = i if stride == 1 else self.f.mul(i, stride)
                place = self.address(output.operand, index, self.line.bases[output.operand])
                self._put(output, value, place, count if self.lanes > 1 else None)

    def _put(self, output: Output, value: IRValue, place: IRValue, count: IRValue | None) -> None:
        """Store a value, or combine it with that of the rows before."""
        if output.way is not None:
            before = self.f.load(value.type, place, count=count)
            value = combine(self.f, output.way, output.value.dtype, before, value)
        past = output.operand in self.streamed and count is None
        self.f.store(value, place, count=count, streamed=past)

    def _keep(self, expr: Expr, value: IRValue, i: IRValue, count: IRValue | None) -> None:
        masked = count if self.lanes > 1 else None
        self.f.store(value, self._kept_place(expr, i), count=masked)

    def _kept(self, expr: Expr, i: IRValue, count: IRValue | None) -> IRValue:
        masked = count if self.lanes > 1 else None
        return self.f.load(type_of(expr, self.lanes), self._kept_place(expr, i), count=masked)

    def _kept_place(self, expr: Expr, i: IRValue) -> IRValue:
        operand = self.places.get(id(expr))
        if operand is not None:
            return self.address(operand, i, self.line.bases[operand])
        return self.f.gep(self.line.scratch[id(expr)], i, element_of(expr.dtype))
