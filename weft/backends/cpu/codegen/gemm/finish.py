"""Write what happens to the elements of a product after they are complete.

    void finish(ptr out, ptr extra0, ..., i64 rows, i64 columns)

computes expressions of each element, and of the elements of further operands at its place, in part
of the result that was just stored and is still in the cache. Results of several rows may be
combined, element by element: they then become one row for each block of so many rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .....core.scalar.builder import CHEAP, Expr, postorder
from .....lower.kernels import Output
from ..scalars import broadcast_to_lanes, combine, identity_of, type_of, write_number, write_values
from ..text import FunctionText, ModuleText
from ..values import IRValue
from .pack import INTERNAL
from .product import Strides

# Rows that are combined with one another before they meet those above: fewer loads and stores, and
# less rounding. Few if they take long: registers are wanted for one of them then.
ROWS, LONG_ROWS = 4, 2
LONG = 12  # operations


@dataclass(frozen=True)
class Finish:
    """Expressions to store and their operands: operand 0 is the product, i the extra i - 1.

    columns   of the whole result
    block     rows that outputs with a way combine into one; 0 if there are none
    """

    outputs: tuple[Output, ...]
    strides: tuple[Strides, ...]
    dtypes: tuple[str, ...]
    lanes: int
    columns: int
    block: int = 0

    @property
    def goes_down(self) -> bool:
        """Tell whether vectors run along columns: of a transposed product, or of a single one."""
        if self.block or not _are_lines(tuple(map(_turned, self.strides))):
            return False
        return self.columns == 1 or not _are_lines(self.strides)

    @property
    def rows_at_once(self) -> int:
        """Return how many rows to treat at once."""
        order = postorder([output.value for output in self.outputs])
        short = len(order) <= LONG and all(expr.kind in CHEAP for expr in order)
        return (ROWS if short else LONG_ROWS) if self.block else 1

    @property
    def width(self) -> int:
        """Return how many elements of a row to treat at once."""
        return self.lanes if _are_lines(self.strides) else 1


def write_finish(module: ModuleText, name: str, finish: Finish) -> None:
    """Add the function to a module."""
    parameters = [*["ptr"] * len(finish.strides), "i64", "i64"]
    f = module.function(name, parameters, INTERNAL)
    *pointers, rows, columns = f.parameters
    if finish.goes_down:
        rows, columns = columns, rows
        finish = replace(finish, strides=tuple(map(_turned, finish.strides)))
    writer = _Writer(f, finish, pointers, columns)
    if finish.block:
        writer.blocks(rows)
    else:
        writer.rows(f.constant("i64", 0), rows)
    f.ret()


def _are_lines(strides: tuple[Strides, ...]) -> bool:
    """Tell whether the elements of rows lie one behind another, or are all the same."""
    return all(s.across in (0, 1) for s in strides)


def _turned(strides: Strides) -> Strides:
    return strides.transposed()


class _Line:
    """One row of the result, and what lies at its place in other operands."""

    def __init__(
        self, f: FunctionText, finish: Finish, pointers: Sequence[IRValue], row: IRValue
    ) -> None:
        self.f = f
        self.finish = finish
        self.lanes = finish.width
        self.dtypes = finish.dtypes
        self.totals = {output.operand for output in finish.outputs if output.way is not None}
        # No pass moves code out of the inner loop, so all that stays the same is written before it.
        self.starts = [self._start(i, pointer, row) for i, pointer in enumerate(pointers)]
        self.order = postorder([output.value for output in finish.outputs])
        self.replaced = {output.operand for output in finish.outputs}
        self.same: dict[int, IRValue] = {}
        for expr in self.order:
            if expr.kind == "load" and finish.strides[expr.data].across == 0:
                one = f.load(type_of(expr, 1), self.starts[expr.data])
                self.same[id(expr)] = broadcast_to_lanes(f, one, self.lanes)

    def _start(self, operand: int, pointer: IRValue, row: IRValue) -> IRValue:
        down = self.finish.strides[operand].down
        if down == 0 or operand in self.totals:
            return pointer
        return self.f.gep(pointer, self.f.mul(row, down), self.dtypes[operand])

    def results(self, column: IRValue, rest: IRValue | None) -> list[IRValue]:
        """Write a vector of elements and return its outputs; those that combine are not stored.

        All is read before the first is stored: it may lie there.
        """

        def load(expr: Expr) -> IRValue:
            place = self._place(expr.data, column)
            apart = expr.data in self.replaced
            return self.f.load(type_of(expr, self.lanes), place, count=rest, apart=apart)

        known = write_values(self.f, self.order, self.lanes, self.same, load)
        for output in self.finish.outputs:
            if output.way is None:
                place = self._place(output.operand, column)
                self.f.store(known[id(output.value)], place, count=rest)
        return [known[id(output.value)] for output in self.finish.outputs]

    def _place(self, operand: int, column: IRValue) -> IRValue:
        f, across = self.f, self.finish.strides[operand].across
        offset = column if across == 1 else f.mul(column, across)
        return f.gep(self.starts[operand], offset, self.dtypes[operand])


class _Writer:
    """Writes the loops over rows, a few at a time."""

    def __init__(
        self, f: FunctionText, finish: Finish, pointers: Sequence[IRValue], columns: IRValue
    ) -> None:
        self.f = f
        self.finish = finish
        self.pointers = list(pointers)
        self.columns = columns
        self.combined = [(i, o) for i, o in enumerate(finish.outputs) if o.way is not None]

    def blocks(self, rows: IRValue) -> None:
        """Write the loop over blocks of rows, each with totals of its own."""
        f, block = self.f, self.finish.block
        starts = list(self.pointers)
        with f.loop(0, rows, block) as first:
            number = f.udiv(first, block)
            for _, output in self.combined:
                down = self.finish.strides[output.operand].down
                place = self._behind(output.operand, f.mul(number, down), starts)
                self.pointers[output.operand] = place
            self._clear()
            self.rows(first, f.minimum(f.add(first, block), rows))

    def rows(self, first: IRValue, end: IRValue) -> None:
        """Write the loops over rows."""
        f, count = self.f, self.finish.rows_at_once
        whole = f.sub(end, f.urem(f.sub(end, first), count)) if count > 1 else first
        if count > 1:
            with f.loop(first, whole, count) as row:
                self._lines([f.add(row, i) for i in range(count)])
        with f.loop(whole, end, 1) as row:
            self._lines([row])

    def _behind(self, operand: int, index: IRValue, places: Sequence[IRValue]) -> IRValue:
        return self.f.gep(places[operand], index, self.finish.dtypes[operand])

    def _clear(self) -> None:
        """Store what changes nothing."""

        def body(column: IRValue, rest: IRValue | None) -> None:
            for _, output in self.combined:
                assert output.way is not None
                dtype = output.value.dtype
                neutral = identity_of(output.way, dtype)
                start = write_number(self.f, dtype, neutral, self.finish.width)
                self.f.store(start, self._total(output, column), count=rest)

        self.f.each_vector(self.columns, self.finish.width, body)

    def _lines(self, rows: Sequence[IRValue]) -> None:
        """Write a few rows; those that are combined meet one another, then those above."""
        f = self.f
        lines = [_Line(f, self.finish, self.pointers, row) for row in rows]

        def body(column: IRValue, rest: IRValue | None) -> None:
            found = [line.results(column, rest) for line in lines]
            for i, output in self.combined:
                values = [results[i] for results in found]
                place = self._total(output, column)
                above = f.load(values[0].type, place, count=rest)
                while len(values) > 1:
                    pairs = zip(values[::2], values[1::2], strict=True)
                    values = [self._combine(output, a, b) for a, b in pairs]
                f.store(self._combine(output, above, values[0]), place, count=rest)

        f.each_vector(self.columns, self.finish.width, body)

    def _combine(self, output: Output, a: IRValue, b: IRValue) -> IRValue:
        assert output.way is not None
        return combine(self.f, output.way, output.value.dtype, a, b)

    def _total(self, output: Output, column: IRValue) -> IRValue:
        return self._behind(output.operand, column, self.pointers)
