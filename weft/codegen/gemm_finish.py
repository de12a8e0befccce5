"""Write what happens to the elements of a product after they are complete.

    void finish(ptr out, ptr extra0, ..., i64 rows, i64 columns)

computes expressions of each element, and of the elements of further operands at its place, in part
of the result that was just stored and is still in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..lower.kernels import Output
from ..lower.scalar import Expr, postorder
from .gemm_pack import INTERNAL
from .gemm_product import Strides
from .scalars import broadcast_to_lanes, type_of, write_values
from .text import FunctionText, ModuleText
from .values import Value


@dataclass(frozen=True)
class Finish:
    """Expressions to store and their operands: operand 0 is the product, i the extra i - 1."""

    outputs: tuple[Output, ...]
    strides: tuple[Strides, ...]
    dtypes: tuple[str, ...]
    lanes: int

    @property
    def goes_down(self) -> bool:
        """Tell whether vectors run along columns: the product was computed transposed."""
        return not _are_lines(self.strides) and _are_lines(tuple(map(_turned, self.strides)))


def write_finish(module: ModuleText, name: str, finish: Finish) -> None:
    """Add the function to a module."""
    parameters = [*["ptr"] * len(finish.strides), "i64", "i64"]
    f = module.function(name, parameters, INTERNAL)
    *pointers, rows, columns = f.parameters
    if finish.goes_down:
        rows, columns = columns, rows
        finish = replace(finish, strides=tuple(map(_turned, finish.strides)))
    lanes = finish.lanes if _are_lines(finish.strides) else 1
    with f.loop(0, rows, 1) as row:
        line = _Line(f, finish, pointers, row, lanes)
        f.each_vector(columns, lanes, line.write)
    f.ret()


def _are_lines(strides: tuple[Strides, ...]) -> bool:
    """Tell whether the elements of rows lie one behind another, or are all the same."""
    return all(s.across in (0, 1) for s in strides)


def _turned(strides: Strides) -> Strides:
    return strides.transposed()


class _Line:
    """One row of the result, and what lies at its place in other operands."""

    def __init__(
        self, f: FunctionText, finish: Finish, pointers: list[Value], row: Value, lanes: int
    ) -> None:
        self.f = f
        self.finish = finish
        self.lanes = lanes
        self.dtypes = finish.dtypes
        # No pass moves code out of the inner loop, so all that stays the same is written before it.
        self.starts = [self._start(i, pointer, row) for i, pointer in enumerate(pointers)]
        self.order = postorder([output.value for output in finish.outputs])
        self.replaced = {output.operand for output in finish.outputs}
        self.same: dict[int, Value] = {}
        for expr in self.order:
            if expr.kind == "load" and finish.strides[expr.data].across == 0:
                one = f.load(type_of(expr, 1), self.starts[expr.data])
                self.same[id(expr)] = broadcast_to_lanes(f, one, lanes)

    def _start(self, operand: int, pointer: Value, row: Value) -> Value:
        down = self.finish.strides[operand].down
        if down == 0:
            return pointer
        return self.f.gep(pointer, self.f.mul(row, down), self.dtypes[operand])

    def write(self, column: Value, rest: Value | None) -> None:
        """Write a vector of elements; all is read before the first is stored: it may lie there."""

        def load(expr: Expr) -> Value:
            place = self._place(expr.data, column)
            apart = expr.data in self.replaced
            return self.f.load(type_of(expr, self.lanes), place, count=rest, apart=apart)

        known = write_values(self.f, self.order, self.lanes, self.same, load)
        for output in self.finish.outputs:
            place = self._place(output.operand, column)
            self.f.store(known[id(output.value)], place, count=rest)

    def _place(self, operand: int, column: Value) -> Value:
        f, across = self.f, self.finish.strides[operand].across
        offset = column if across == 1 else f.mul(column, across)
        return f.gep(self.starts[operand], offset, self.dtypes[operand])
