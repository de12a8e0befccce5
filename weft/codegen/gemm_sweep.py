"""Write the product of a vector and a matrix that lies along its rows.

    void sweep(ptr x, ptr y, ptr out, ptr bias, i64 columns)

adds a few rows of y at a time, each times its element of x, to a stretch of the result that stays
in the first-level cache. So memory is read along rows, which is all that counts here.
"""

from __future__ import annotations

from dataclasses import dataclass

from .gemm_pack import INTERNAL
from .text import FunctionText, ModuleText
from .values import Value, vector_of

PARAMETERS = [*["ptr noalias"] * 4, "i64"]
ROWS = 8  # read side by side


@dataclass(frozen=True)
class Sweep:
    """What a function is made for; strides in elements, depth being the number of rows of y.

    bias   "one" number for all, one for each "column", or None
    """

    element: str
    lanes: int
    depth: int
    x_step: int
    y_line: int
    bias: str | None

    @property
    def vector(self) -> str:
        """Return the type of a vector of elements."""
        return vector_of(self.element, self.lanes)


def write_sweep(module: ModuleText, name: str, sweep: Sweep) -> None:
    """Add the function to a module."""
    f = module.function(name, PARAMETERS, INTERNAL)
    _write_start(f, sweep)
    whole = sweep.depth // ROWS * ROWS
    if whole:
        with f.loop(0, whole, ROWS) as k:
            _write_rows(f, sweep, k, ROWS)
    if whole < sweep.depth:
        _write_rows(f, sweep, f.constant("i64", whole), sweep.depth - whole)
    f.ret()


def _write_start(f: FunctionText, sweep: Sweep) -> None:
    """Store the bias, or zeros."""
    _, _, out, bias, columns = f.parameters
    start = f.constant(sweep.vector, 0)
    if sweep.bias == "one":
        start = f.splat(f.load(sweep.element, bias), sweep.lanes)

    def body(i: Value, rest: Value | None) -> None:
        value = start
        if sweep.bias == "column":
            value = f.load(sweep.vector, f.gep(bias, i, sweep.element), count=rest)
        f.store(value, f.gep(out, i, sweep.element), count=rest)

    f.each_vector(columns, sweep.lanes, body)


def _write_rows(f: FunctionText, sweep: Sweep, k: Value, rows: int) -> None:
    x, y, out, _, columns = f.parameters
    here = f.gep(x, f.mul(k, sweep.x_step), sweep.element)
    lines = f.gep(y, f.mul(k, sweep.y_line), sweep.element)
    factors = [
        f.splat(f.load(sweep.element, f.gep(here, r * sweep.x_step, sweep.element)), sweep.lanes)
        for r in range(rows)
    ]

    def body(i: Value, rest: Value | None) -> None:
        place = f.gep(out, i, sweep.element)
        total = f.load(sweep.vector, place, count=rest)
        start = f.gep(lines, i, sweep.element)
        for r, factor in enumerate(factors):
            at = f.gep(start, r * sweep.y_line, sweep.element)
            total = f.multiply_add(factor, f.load(sweep.vector, at, count=rest), total)
        f.store(total, place, count=rest)

    f.each_vector(columns, sweep.lanes, body)
