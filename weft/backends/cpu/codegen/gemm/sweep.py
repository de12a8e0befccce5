"""Write the product of a vector and a matrix that lies along its rows.

    void sweep(ptr x, ptr y, ptr out, ptr bias, i64 columns)

adds a few rows of y at a time, each times its element of x, to a stretch of sums that stays in the
first-level cache. So memory is read along rows, which is all that counts here.

Where rows are a multiple of a page long, those that are read side by side fill a set of that cache.
So the sums lie half a page away from them, wherever the result may lie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .....core.dim import Dim
from .....core.shape import Size
from ..text import FunctionText, ModuleText
from ..values import IRValue, bytes_of, vector_of
from .pack import INTERNAL

Reader = Callable[[IRValue, IRValue | None], IRValue]
PARAMETERS = [*["ptr noalias"] * 4, "i64"]
ROWS = 8  # read side by side
PAGE_BYTES = 4096


@dataclass(frozen=True)
class Sweep:
    """What a function is made for; strides in elements, depth being the number of rows of y.

    columns   the most that it is called for
    bias      "one" number for all, one for each "column", or None
    """

    element: str
    lanes: int
    columns: int
    depth: Size
    x_step: Size
    y_line: Size
    bias: str | None

    @property
    def vector(self) -> str:
        """Return the type of a vector of elements."""
        return vector_of(self.element, self.lanes)


def write_sweep(module: ModuleText, name: str, sweep: Sweep) -> None:
    """Add the function to a module."""
    _SweepWriter(module.function(name, PARAMETERS, INTERNAL), sweep).write()


class _SweepWriter:
    def __init__(self, f: FunctionText, sweep: Sweep) -> None:
        self.f = f
        self.sweep = sweep
        self.x, self.y, self.out, self.bias, self.columns = f.parameters

    def write(self) -> None:
        """Write the first rows, which begin the sums, those between, and the last, which end."""
        f, depth = self.f, self.sweep.depth
        if isinstance(depth, Dim):
            self._any_depth(depth)
            return
        last = (depth - 1) // ROWS * ROWS
        start = self._start()
        if last <= 0:
            self._rows(f.constant("i64", 0), depth, start, self.out)
        else:
            sums = self._room()
            self._rows(f.constant("i64", 0), ROWS, start, sums)
            with f.loop(ROWS, last, ROWS) as k:
                self._rows(k, ROWS, self._reader(sums), sums)
            self._rows(f.constant("i64", last), depth - last, self._reader(sums), self.out)
        f.ret()

    def _any_depth(self, depth: Dim) -> None:
        """Write the sums of rows whose number only a run knows; it is more than a few."""
        f, sweep = self.f, self.sweep
        sums, whole = self._room(), depth // ROWS * ROWS
        self._rows(f.constant("i64", 0), ROWS, self._start(), sums)
        for start, stop, step in ((f.constant("i64", ROWS), whole, ROWS), (whole, depth, 1)):
            with f.loop(start, stop, step) as k:
                self._rows(k, step, self._reader(sums), sums)
        read = self._reader(sums)

        def body(i: IRValue, rest: IRValue | None) -> None:
            f.store(read(i, rest), f.gep(self.out, i, sweep.element), count=rest)

        f.each_vector(self.columns, sweep.lanes, body)
        f.ret()

    def _room(self) -> IRValue:
        """Return where the sums lie: on the stack, half a page away from y in a page."""
        f, sweep = self.f, self.sweep
        itemsize = bytes_of(sweep.element)
        room = f.alloca(sweep.element, sweep.columns + PAGE_BYTES // itemsize)
        apart = f.add(f.sub(f.number_of(self.y), f.number_of(room)), PAGE_BYTES // 2)
        return f.gep(room, f.and_(apart, PAGE_BYTES - sweep.lanes * itemsize))

    def _start(self) -> Reader:
        """Return what reads the bias, or zeros."""
        f, sweep = self.f, self.sweep
        if sweep.bias == "column":
            return self._reader(self.bias)
        start = f.constant(sweep.vector, 0)
        if sweep.bias == "one":
            start = f.splat(f.load(sweep.element, self.bias), sweep.lanes)
        return lambda _i, _rest: start

    def _reader(self, place: IRValue) -> Reader:
        """Return what reads the vector at an index."""
        f, sweep = self.f, self.sweep
        return lambda i, rest: f.load(sweep.vector, f.gep(place, i, sweep.element), count=rest)

    def _rows(self, k: IRValue, rows: int, earlier: Reader, to: IRValue) -> None:
        """Write the sums of earlier ones and of a few rows, each times its factor."""
        f, sweep = self.f, self.sweep
        here = f.gep(self.x, f.mul(k, sweep.x_step), sweep.element)
        lines = f.gep(self.y, f.mul(k, sweep.y_line), sweep.element)
        factors = [
            f.splat(
                f.load(sweep.element, f.gep(here, r * sweep.x_step, sweep.element)), sweep.lanes
            )
            for r in range(rows)
        ]

        def body(i: IRValue, rest: IRValue | None) -> None:
            total = earlier(i, rest)
            start = f.gep(lines, i, sweep.element)
            for r, factor in enumerate(factors):
                at = f.gep(start, r * sweep.y_line, sweep.element)
                total = f.multiply_add(factor, f.load(sweep.vector, at, count=rest), total)
            f.store(total, f.gep(to, i, sweep.element), count=rest)

        f.each_vector(self.columns, sweep.lanes, body)
