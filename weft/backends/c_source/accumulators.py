"""Accumulators of reductions along rows, in forms of which compilers for processors make vectors.

Sums and products of floats may be taken in another order, in that one statement. Extremes of floats
are those of integers: their bits, with those of negative numbers turned round, have the same order,
and NaN comes first by a number of its own.
"""

from __future__ import annotations

import numpy as np

from ...core.scalar.builder import Expr
from ..cpu.codegen.values import IRValue, element_of
from .function import CFunction
from .scalars import c_type, combined, neutral


class Accumulator:
    """What a reduction has found so far."""

    def __init__(self, f: CFunction, expr: Expr) -> None:
        self.f = f
        self.way: str = expr.data
        self.dtype = expr.dtype
        self.name = f.name("s")
        self.type = c_type(expr.dtype)

    @property
    def start(self) -> str:
        """Return what it is before the first element."""
        return str(neutral(self.f, self.way, self.dtype))

    def declare(self) -> None:
        """Write its definition."""
        self.f.write(f"{self.type} {self.name} = {self.start};")

    def reset(self) -> None:
        """Write that it begins anew."""
        self.f.write(f"{self.name} = {self.start};")

    def add(self, value: IRValue) -> None:
        """Write how an element is added."""
        before = IRValue(self.name, element_of(self.dtype))
        self.f.write(f"{self.name} = {combined(self.f, self.way, self.dtype, before, value)};")

    def join(self, other: Accumulator) -> None:
        """Write how the result of another one is added."""
        self.add(IRValue(other.name, element_of(self.dtype)))

    def result(self) -> IRValue:
        """Return what was found."""
        return IRValue(self.name, element_of(self.dtype))


class SumAccumulator(Accumulator):
    """A sum or a product of floats."""

    def add(self, value: IRValue) -> None:
        """Write how an element is added, in whatever order."""
        operator = "+" if self.way == "sum" else "*"
        with self.f.block(""):
            self.f.write("REASSOCIATED")
            self.f.write(f"{self.name} = {self.name} {operator} {value};")


class ExtremeAccumulator(Accumulator):
    """The largest or the least of floats, as that of integers."""

    def __init__(self, f: CFunction, expr: Expr) -> None:
        super().__init__(f, expr)
        self.bits = 8 * expr.dtype.itemsize
        self.type = f"i{self.bits}"
        self.rest = f"({self.type}){(1 << (self.bits - 1)) - 1:#x}"

    @property
    def start(self) -> str:
        """Return the integer of the infinity that every number changes."""
        end = np.array(-np.inf if self.way == "max" else np.inf, self.dtype)
        bits = int(end.view(f"i{self.dtype.itemsize}"))
        return f"({self.type}){(bits ^ self._mask(bits)) & ((1 << self.bits) - 1):#x}"

    def _mask(self, bits: int) -> int:
        return (1 << (self.bits - 1)) - 1 if bits < 0 else 0

    def add(self, value: IRValue) -> None:
        """Write how the integer of an element is added."""
        f = self.f
        bits, key = f.name("k"), f.name("k")
        f.write(f"const {self.type} {bits} = ({self.type})BITS{self.bits}({value});")
        nan = self.rest if self.way == "max" else f"~{self.rest}"
        turned = f"{bits} ^ (({bits} >> {self.bits - 1}) & {self.rest})"
        f.write(f"const {self.type} {key} = {value} != {value} ? {nan} : {turned};")
        self._take(key)

    def join(self, other: Accumulator) -> None:
        """Write how the result of another one is added."""
        self._take(other.name)

    def _take(self, key: str) -> None:
        relation = ">" if self.way == "max" else "<"
        self.f.write(f"{self.name} = {key} {relation} {self.name} ? {key} : {self.name};")

    def result(self) -> IRValue:
        """Return the float of the integer that was found: NaN's own is one of NaN too."""
        turned = f"{self.name} ^ (({self.name} >> {self.bits - 1}) & {self.rest})"
        nan = f"{self.name} == ~{self.rest} ? {self.rest} : {turned}"
        return self.f.define(element_of(self.dtype), f"F{self.bits}({nan})")


def accumulator(f: CFunction, expr: Expr) -> Accumulator:
    """Return the accumulator of a reduction."""
    if expr.dtype.kind != "f" or expr.dtype.itemsize < np.dtype(np.float32).itemsize:
        return Accumulator(f, expr)
    return (SumAccumulator if expr.data in ("sum", "prod") else ExtremeAccumulator)(f, expr)
