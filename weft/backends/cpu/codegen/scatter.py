"""Write scatter kernels: values added or written to computed places.

    void kernel(ptr operand0, ..., i64 begin, i64 end)

runs units begin to end. A unit is one turn of the loops that touch different elements, and a strip
of the row; it goes through all values that may meet, in order. So results do not depend on how the
units are divided.
"""

from __future__ import annotations

from ....core.dim import is_known
from ....core.scalar.builder import PLACED, Expr
from ....core.shape import size_of
from ....lower.kernels import ScatterKernel
from .phases import Phases
from .placed import Turn, write_placed
from .scalars import broadcast_to_lanes, combine, type_of, write_constant, write_operation
from .text import FunctionText, ModuleText
from .values import IRValue, element_of

STRIP = 64


def scatter_units(kernel: ScatterKernel) -> int:
    """Return how many units of work a kernel has."""
    return int(size_of(kernel.loops[: kernel.apart]) * -(-kernel.columns // STRIP))


def write_scatter_kernel(module: ModuleText, name: str, kernel: ScatterKernel) -> None:
    """Add the function of a kernel to a module."""
    _ScatterWriter(module, name, kernel).write()


class _ScatterWriter:
    """Writes one kernel; also a `Stand` for the writers of placed values."""

    def __init__(self, module: ModuleText, name: str, kernel: ScatterKernel) -> None:
        self.kernel = kernel
        self.phases = Phases(kernel)
        pointers = ["ptr"] * len(kernel.operands)
        self.f: FunctionText = module.function(name, [*pointers, "i64", "i64"])
        *self.pointers, self.begin, self.end = self.f.parameters
        self.bases: list[IRValue] = []
        self.iota_bases: list[IRValue] = []
        self.rows: dict[int, IRValue] = {}
        self.lanes = self._lanes()

    def _lanes(self) -> int:
        if self._is_single:
            return 1
        strides = {o.strides[-1] for o in self.kernel.operands}
        if self.phases.is_full(self.kernel.offset) or not strides <= {0, 1}:
            return 1
        return self.f.target.lanes(self.kernel.value.dtype)

    @property
    def _is_single(self) -> bool:
        """Tell whether rows have one element: a vector of it would only be slow to mask."""
        return is_known([self.kernel.columns]) and self.kernel.columns == 1

    def write(self) -> None:
        """Write the function."""
        f, kernel = self.f, self.kernel
        strips = -(-kernel.columns // STRIP)
        zeros = [f.constant("i64", 0)] * len(kernel.iotas)
        with f.loop(self.begin, self.end, 1) as unit:
            several = not is_known([strips]) or strips > 1
            turn = f.udiv(unit, strips) if several else unit
            first = f.mul(f.urem(unit, strips), STRIP) if several else f.constant("i64", 0)
            left = f.sub(f.constant("i64", kernel.columns), first)
            width = f.select(f.icmp("slt", left, STRIP), left, STRIP)
            bases, iotas = self._moved(list(self.pointers), zeros, 0, kernel.apart, turn)
            self._in_order(kernel.apart, bases, iotas, first, width)
        f.ret()

    def _moved(
        self, bases: list[IRValue], iotas: list[IRValue], start: int, stop: int, turn: IRValue
    ) -> tuple[list[IRValue], list[IRValue]]:
        """Return addresses and numbers for one turn of some of the loops, counted together."""
        f = self.f
        rest = turn
        for axis in range(stop - 1, start - 1, -1):
            size = self.kernel.loops[axis]
            index = rest if axis == start else f.urem(rest, size)
            rest = rest if axis == start else f.udiv(rest, size)
            bases = [self._ahead(i, base, axis, index) for i, base in enumerate(bases)]
            iotas = [
                f.add(number, f.mul(index, strides[axis])) if strides[axis] else number
                for number, strides in zip(iotas, self.kernel.iotas, strict=True)
            ]
        return bases, iotas

    def _ahead(self, operand: int, base: IRValue, axis: int, index: IRValue) -> IRValue:
        stride = self.kernel.operands[operand].strides[axis]
        return self._at(operand, base, self.f.mul(index, stride)) if stride else base

    def _at(self, operand: int, base: IRValue, index: IRValue) -> IRValue:
        return self.f.gep(base, index, element_of(self.kernel.operands[operand].view.dtype))

    def _in_order(
        self, axis: int, bases: list[IRValue], iotas: list[IRValue], first: IRValue, width: IRValue
    ) -> None:
        """Write the loops over values that may meet."""
        if axis == len(self.kernel.loops) - 1:
            self.bases, self.iota_bases, self.rows = bases, iotas, {}
            self._row(first, width)
            return
        with self.f.loop(0, self.kernel.loops[axis], 1) as index:
            moved = self._moved(bases, iotas, axis, axis + 1, index)
            self._in_order(axis + 1, *moved, first, width)

    def _row(self, first: IRValue, width: IRValue) -> None:
        """Write what happens to one strip of a row."""
        for expr in self.phases.order:
            if not self.phases.is_full(expr):
                self._row_value(expr)

        if self._is_single:
            self._put(first, None)
            return

        def body(i: IRValue, count: IRValue | None) -> None:
            self._put(self.f.add(first, i), count)

        self.f.each_vector(width, self.lanes, body)

    def _put(self, i: IRValue, count: IRValue | None) -> None:
        f, kernel = self.f, self.kernel
        env: dict[int, IRValue] = {}
        value = self._value(kernel.value, i, count, env)
        whole = len(self.pointers) - 1
        offset = kernel.offset
        full = self.phases.is_full(offset)
        moved = self._value(offset, i, count, env) if full else self._row_value(offset)
        place = self._at(whole, self.bases[whole], moved)
        stride = kernel.operands[whole].strides[-1]
        if stride:
            place = self._at(whole, place, i if stride == 1 else f.mul(i, stride))
        masked = count if self.lanes > 1 else None
        if kernel.way != "set":
            old = f.load(value.type, place, count=masked)
            value = combine(f, kernel.way, kernel.value.dtype, old, value)
        f.store(value, place, count=masked)

    # -- values ------------------------------------------------------------------------------------

    def _row_value(self, expr: Expr) -> IRValue:
        if id(expr) not in self.rows:
            self.rows[id(expr)] = self._new_row_value(expr)
        return self.rows[id(expr)]

    def _new_row_value(self, expr: Expr) -> IRValue:
        if expr.kind == "const":
            return write_constant(self.f, expr, 1)
        if expr.kind == "load":
            return self.f.load(element_of(expr.dtype), self.bases[expr.data])
        args = [self._row_value(a) for a in expr.args]
        if expr.kind in PLACED:
            return write_placed(expr, Turn(self, None, None, args))
        return write_operation(self.f, expr, args)

    def _value(
        self, expr: Expr, i: IRValue, count: IRValue | None, env: dict[int, IRValue]
    ) -> IRValue:
        if id(expr) not in env:
            env[id(expr)] = self._new_value(expr, i, count, env)
        return env[id(expr)]

    def _new_value(
        self, expr: Expr, i: IRValue, count: IRValue | None, env: dict[int, IRValue]
    ) -> IRValue:
        if expr.kind == "const":
            return write_constant(self.f, expr, self.lanes)
        if not self.phases.is_full(expr):
            return broadcast_to_lanes(self.f, self._row_value(expr), self.lanes)
        if expr.kind == "load":
            stride = self.kernel.operands[expr.data].strides[-1]
            step = i if stride == 1 else self.f.mul(i, stride)
            place = self._at(expr.data, self.bases[expr.data], step)
            masked = count if self.lanes > 1 else None
            return self.f.load(type_of(expr, self.lanes), place, count=masked)
        if expr.kind in PLACED:
            args = [
                self._value(a, i, count, env) if self.phases.is_full(a) else self._row_value(a)
                for a in expr.args
            ]
            return write_placed(expr, Turn(self, i, count, args))
        args = [self._value(a, i, count, env) for a in expr.args]
        return write_operation(self.f, expr, args)
