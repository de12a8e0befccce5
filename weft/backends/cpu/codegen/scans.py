"""Write scan kernels: recurrences along an axis, several columns at a time.

    void kernel(ptr operand0, ..., i64 begin, i64 end)

runs units begin to end. A unit is a strip of a few vectors, whose carried values stay in registers
while the steps go by; steps run in order.
"""

from __future__ import annotations

from ....core.dim import Dim, is_known
from ....core.scalar.builder import Expr
from ....core.shape import Size, size_of
from ....lower.kernels import ScanKernel
from .scalars import type_of, write_constant, write_operation
from .target import Target
from .text import FunctionText, ModuleText
from .values import IRValue, element_of

VECTORS = 4


def scan_units(kernel: ScanKernel, target: Target) -> int:
    """Return how many units of work a kernel has."""
    width = _lanes(kernel, target) * VECTORS
    return int(size_of(kernel.loops[1:-1]) * -(-kernel.loops[-1] // width))


def write_scan_kernel(module: ModuleText, name: str, kernel: ScanKernel) -> None:
    """Add the function of a kernel to a module."""
    _ScanWriter(module, name, kernel).write()


def _lanes(kernel: ScanKernel, target: Target) -> int:
    if kernel.loops[-1] == 1:
        return 1
    dtypes = [kernel.value.dtype, *(after.dtype for _, after in kernel.carried)]
    return max(1, target.vector_bytes // max(dtype.itemsize for dtype in dtypes))


class _ScanWriter:
    """Writes one kernel."""

    def __init__(self, module: ModuleText, name: str, kernel: ScanKernel) -> None:
        self.kernel = kernel
        pointers = ["ptr"] * len(kernel.operands)
        self.f: FunctionText = module.function(name, [*pointers, "i64", "i64"])
        *self.pointers, self.begin, self.end = self.f.parameters
        self.lanes = _lanes(kernel, self.f.target)
        self.width = self.lanes * VECTORS

    def write(self) -> None:
        """Write the function."""
        f, columns = self.f, self.kernel.loops[-1]
        strips = -(-columns // self.width)
        with f.loop(self.begin, self.end, 1) as unit:
            several = not is_known([strips]) or strips > 1
            turn = f.udiv(unit, strips) if several else unit
            strip = f.urem(unit, strips) if several else f.constant("i64", 0)
            first = f.mul(strip, self.width)
            bases = self._bases(turn, first)
            if columns % self.width == 0:
                self._steps(bases, None)
            elif not several:
                self._steps(bases, columns)
            else:
                self._whole_or_last(bases, first, columns)
        f.ret()

    def _whole_or_last(self, bases: list[IRValue], first: IRValue, columns: Size) -> None:
        f = self.f
        whole, last, done = f.label("whole"), f.label("last"), f.label("next")
        f.branch_if(f.icmp("sle", first, columns - self.width), whole, last)
        f.block(whole)
        self._steps(bases, None)
        f.branch(done)
        f.block(last)
        self._steps(bases, columns % self.width)
        f.branch(done)
        f.block(done)

    def _bases(self, turn: IRValue, first: IRValue) -> list[IRValue]:
        """Return the addresses of a unit's first elements."""
        f, bases, rest = self.f, list(self.pointers), turn
        for axis in range(len(self.kernel.loops) - 2, 0, -1):
            size = self.kernel.loops[axis]
            index = rest if axis == 1 else f.urem(rest, size)
            rest = rest if axis == 1 else f.udiv(rest, size)
            bases = [self._ahead(i, base, axis, index) for i, base in enumerate(bases)]
        last = len(self.kernel.loops) - 1
        return [self._ahead(i, base, last, first) for i, base in enumerate(bases)]

    def _ahead(self, operand: int, base: IRValue, axis: int, index: IRValue) -> IRValue:
        given = self.kernel.operands[operand]
        stride = given.strides[axis]
        if not stride:
            return base
        step = index if stride == 1 else self.f.mul(index, stride)
        return self.f.gep(base, step, element_of(given.view.dtype))

    def _steps(self, bases: list[IRValue], rest: Size | None) -> None:
        """Write the steps of one strip; `rest` is its width if that is not the full one."""
        f, kernel = self.f, self.kernel
        known = rest is not None and is_known([rest])
        vectors = -(-rest // self.lanes) if rest is not None and known else VECTORS
        count = len(kernel.carried)
        start = [write_constant(f, first, self.lanes) for first, _ in kernel.carried] * vectors
        with f.loop(0, kernel.loops[0], 1, carry=start) as step:
            here = [self._ahead(i, base, 0, step) for i, base in enumerate(bases)]
            following: list[IRValue] = []
            for v in range(vectors):
                carried = list(step.carried[v * count : (v + 1) * count])
                turn = _Turn(self, here, step, v, self._count(rest, v), carried)
                turn.store()
                following += [turn.value(after) for _, after in kernel.carried]
            step.next(*following)

    def _count(self, rest: Size | None, vector: int) -> IRValue | None:
        if rest is None or self.lanes == 1:
            return None
        left = rest - vector * self.lanes
        if isinstance(left, Dim):
            return self.f.size(left)
        return None if left >= self.lanes else self.f.constant("i64", left)


class _Turn:
    """One vector of elements at one step."""

    def __init__(
        self,
        writer: _ScanWriter,
        bases: list[IRValue],
        step: IRValue,
        vector: int,
        count: IRValue | None,
        carried: list[IRValue],
    ) -> None:
        self.writer = writer
        self.f = writer.f
        self.bases = bases
        self.step: IRValue = step
        self.vector = vector
        self.count = count
        self.carried = carried
        self.known: dict[int, IRValue] = {}

    def store(self) -> None:
        """Write what the step stores."""
        last = len(self.bases) - 1
        self.f.store(self.value(self.writer.kernel.value), self._place(last), count=self.count)

    def value(self, expr: Expr) -> IRValue:
        """Return the value of an expression."""
        if id(expr) not in self.known:
            self.known[id(expr)] = self._new_value(expr)
        return self.known[id(expr)]

    def _new_value(self, expr: Expr) -> IRValue:
        lanes = self.writer.lanes
        if expr.kind == "const":
            return write_constant(self.f, expr, lanes)
        if expr.kind == "carry":
            carried: IRValue = self.carried[expr.data]
            return carried
        if expr.kind == "step":
            return self.f.splat(self.step, lanes)
        if expr.kind == "load":
            return self._load(expr)
        return write_operation(self.f, expr, [self.value(a) for a in expr.args])

    def _load(self, expr: Expr) -> IRValue:
        lanes = self.writer.lanes
        if self.writer.kernel.operands[expr.data].strides[-1] == 0 and lanes > 1:
            return self.f.splat(self.f.load(element_of(expr.dtype), self.bases[expr.data]), lanes)
        type = type_of(expr, lanes)
        return self.f.load(type, self._place(expr.data), count=self.count)

    def _place(self, operand: int) -> IRValue:
        given = self.writer.kernel.operands[operand]
        columns = self.vector * self.writer.lanes * given.strides[-1]
        base = self.bases[operand]
        return self.f.gep(base, columns, element_of(given.view.dtype)) if columns else base
