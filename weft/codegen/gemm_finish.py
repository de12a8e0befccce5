"""Write what happens to the elements of a product after they are complete.

    void finish(ptr out, ptr extra0, ..., i64 rows, i64 columns)

computes expressions of each element, and of the elements of further operands at its place, in part
of the result that was just stored and is still in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..lower.kernels import Output
from ..lower.scalar import Expr, postorder
from .gemm_pack import INTERNAL
from .gemm_product import Strides
from .scalars import broadcast_to_lanes, type_of, write_constant, write_operation
from .text import FunctionText, ModuleText
from .values import Value, element_of


@dataclass(frozen=True)
class Finish:
    """Expressions to store and their operands: operand 0 is the product, i the extra i - 1."""

    outputs: tuple[Output, ...]
    strides: tuple[Strides, ...]
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
        finish = Finish(finish.outputs, tuple(map(_turned, finish.strides)), finish.lanes)
    lanes = finish.lanes if _are_lines(finish.strides) else 1
    with f.loop(0, rows, 1) as row:

        def body(i: Value, rest: Value | None, row: Value = row) -> None:
            _Elements(f, finish, pointers, row, i, lanes, rest).write()

        f.each_vector(columns, lanes, body)
    f.ret()


def _are_lines(strides: tuple[Strides, ...]) -> bool:
    """Tell whether the elements of rows lie one behind another, or are all the same."""
    return all(s.across in (0, 1) for s in strides)


def _turned(strides: Strides) -> Strides:
    return strides.transposed()


@dataclass(frozen=True)
class _Elements:
    """One vector of elements of the result, and what lies at its place in other operands."""

    f: FunctionText
    finish: Finish
    pointers: list[Value]
    row: Value
    column: Value
    lanes: int
    rest: Value | None

    def write(self) -> None:
        """Write the expressions, and store them after all is read: it may lie at the same place."""
        known: dict[int, Value] = {}
        for expr in postorder([output.value for output in self.finish.outputs]):
            if expr.kind == "load":
                known[id(expr)] = self._load(expr)
            elif expr.kind == "const":
                known[id(expr)] = write_constant(self.f, expr, self.lanes)
            else:
                arguments = [known[id(a)] for a in expr.args]
                known[id(expr)] = write_operation(self.f, expr, arguments)
        for output in self.finish.outputs:
            place = self._place(output.operand, element_of(output.value.dtype))
            self.f.store(known[id(output.value)], place, count=self.rest)

    def _place(self, operand: int, element: str) -> Value:
        f, strides = self.f, self.finish.strides[operand]
        offset = f.add(f.mul(self.row, strides.down), f.mul(self.column, strides.across))
        return f.gep(self.pointers[operand], offset, element)

    def _load(self, expr: Expr) -> Value:
        f, strides = self.f, self.finish.strides[expr.data]
        place = self._place(expr.data, element_of(expr.dtype))
        if strides.across == 0:
            return broadcast_to_lanes(f, f.load(type_of(expr, 1), place), self.lanes)
        return f.load(type_of(expr, self.lanes), place, count=self.rest)
