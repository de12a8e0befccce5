"""Write expressions for the place at which loops stand.

Loops are counted by variables of C; where an operand's element lies follows from them and the
operand's strides. What does not change along the innermost loop is written before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...core.scalar.builder import Expr
from ...lower.kernels import Operand
from ..cpu.codegen.values import IRValue, element_of
from . import helpers
from .function import CFunction
from .scalars import stored_type, write_scalar

Known = dict[int, IRValue]
BLOCK_BYTES = 32  # of the random generator


class LoopPlace:
    """Where the loops of a kernel stand: by the names of their counters.

    operands   by a stride for each loop
    pointers   the names of pointers to the operands
    iotas      for numbers that follow from the counters alone: what each turn adds
    counters   the names of the loops' counters, from the outermost to the innermost
    """

    def __init__(
        self,
        f: CFunction,
        operands: Sequence[Operand],
        pointers: Sequence[str],
        iotas: Sequence[Sequence[int]],
        counters: Sequence[str],
    ) -> None:
        self.f = f
        self.operands = operands
        self.pointers = pointers
        self.iotas = iotas
        self.counters = counters
        self._bases: dict[tuple[int, ...], str] = {}

    def settle(self, numbers: Iterable[int], iotas: Iterable[int] = ()) -> None:
        """Write where operands lie for the outer loops, before the innermost one begins."""
        for strides in [self.operands[i].strides for i in numbers] + [self.iotas[i] for i in iotas]:
            key = tuple(strides[:-1])
            if any(key) and key not in self._bases:
                self._bases[key] = name = self.f.name("p")
                self.f.write(f"const i64 {name} = {linear(key, self.counters[:-1])};")

    def offset(self, strides: Sequence[int]) -> str:
        """Return the sum of all counters times strides."""
        known = self._bases.get(tuple(strides[:-1]))
        if known is None:
            return linear(strides, self.counters)
        last = linear(strides[-1:], self.counters[-1:])
        return known if last == "0" else f"{known} + {last}"

    def element(self, number: int, further: str = "") -> str:
        """Return an operand's element here, or so far behind, as C spells it."""
        offset = self.offset(self.operands[number].strides)
        if further:
            offset = further if offset == "0" else f"{offset} + {further}"
        return f"{self.pointers[number]}[{offset}]"

    def store(self, number: int, value: IRValue, further: str = "") -> None:
        """Write a value to an operand."""
        kind = stored_type(self.operands[number].view.dtype)
        self.f.write(f"{self.element(number, further)} = ({kind}){value};")

    def write(self, order: Iterable[Expr], known: Known) -> Known:
        """Return the values of expressions by their id, arguments first, and those known before."""
        values = dict(known)
        for expr in order:
            if id(expr) not in values:
                args = [values[id(arg)] for arg in expr.args]
                special = _SPECIAL.get(expr.kind)
                values[id(expr)] = (
                    write_scalar(self.f, expr, args)
                    if special is None
                    else special(self, expr, args)
                )
        return values

    # -- what depends on where the loops stand -----------------------------------------------------

    def loaded(self, dtype: Any, element: str) -> IRValue:
        """Return what memory holds as a value."""
        text = f"{element} != 0" if dtype.kind == "b" else element
        return self.f.define(element_of(dtype), text)

    def _load(self, expr: Expr, args: list[IRValue]) -> IRValue:
        return self.loaded(expr.dtype, self.element(expr.data))

    def _load_at(self, expr: Expr, args: list[IRValue]) -> IRValue:
        """Return an element so far behind the place; zero where the guard is false."""
        number, has_offset, has_guard = expr.data
        further = f"(i64){args[0]}" if has_offset else ""
        element = self.element(number, further)
        text = f"{element} != 0" if expr.dtype.kind == "b" else element
        if has_guard:
            text = f"{args[-1]} ? ({stored_type(expr.dtype)})({text}) : 0"
        return self.f.define(element_of(expr.dtype), text)

    def _iota(self, expr: Expr, args: list[IRValue]) -> IRValue:
        return self.f.define("i64", f"(u64)({self.offset(self.iotas[expr.data])})")

    def _index(self, expr: Expr, args: list[IRValue]) -> IRValue:
        return self.f.define("i64", f"(u64){self.counters[-1]}")

    def _checked(self, expr: Expr, args: list[IRValue]) -> IRValue:
        """Return an index within its axis; one outside is reported and becomes 0."""
        size, flag, wraps, ignored = expr.data
        (index,) = args
        place = (
            f"((i64){index} < 0 ? (i64){index} + {size} : (i64){index})"
            if wraps
            else f"(i64){index}"
        )
        at = IRValue(self.f.name("at"), "i64")
        self.f.write(f"const i64 {at} = {place};")
        wrong = f"({at} < 0 || {at} >= {size})"
        if ignored is not None:
            wrong = f"({wrong} && (i64){index} != {ignored})"
        if flag is not None:
            self.f.write(f"if ({wrong}) {self.pointers[flag]}[0] = 1;")
        found = f"{wrong} ? 0 : {at}"
        if ignored is not None:
            found = f"(i64){index} == {ignored} ? -1 : {found}"
        return self.f.define("i64", f"(u64)({found})")

    def _random(self, expr: Expr, args: list[IRValue]) -> IRValue:
        """Return lanes of a draw: places count them, so many to a block of the generator."""
        self.f.helpers |= helpers.philox()
        low, high, counter, place = args
        lanes = BLOCK_BYTES // expr.dtype.itemsize
        each = 8 // expr.dtype.itemsize
        word = f"(i64)({place} % {lanes}) / {each}"
        call = f"weft_philox({low}, {high}, {counter} + {place} / {lanes}, {word})"
        if each == 1:
            return self.f.define("i64", call)
        return self.f.define("i32", f"(u32)({call} >> (32 * ({place} % {each})))")


_SPECIAL: Mapping[str, Any] = {
    "load": LoopPlace._load,
    "load_at": LoopPlace._load_at,
    "iota": LoopPlace._iota,
    "index": LoopPlace._index,
    "checked": LoopPlace._checked,
    "random": LoopPlace._random,
}


def linear(strides: Sequence[int], counters: Sequence[str]) -> str:
    """Return the sum of counters times strides, as C spells it."""
    terms = []
    for stride, counter in zip(strides, counters, strict=True):
        if stride and counter != "0":
            terms.append(counter if stride == 1 else f"{counter} * {stride}")
    return " + ".join(terms) or "0"


def write_counters(f: CFunction, flat: str, sizes: Sequence[int]) -> list[str]:
    """Write the counters of loops that one number counts all turns of; return their names."""
    names: list[str] = []
    rest = flat
    for axis in range(len(sizes) - 1, -1, -1):
        if sizes[axis] == 1:
            names.append("0")
            continue
        if all(size == 1 for size in sizes[:axis]):
            names.append(rest)
            rest = "0"
            continue
        name, left = f.name("i"), f.name("t")
        f.write(f"const i64 {name} = {rest} % {sizes[axis]};")
        f.write(f"const i64 {left} = {rest} / {sizes[axis]};")
        names.append(name)
        rest = left
    return names[::-1]


def placed_numbers(order: Iterable[Expr]) -> tuple[set[int], set[int]]:
    """Return which operands and which iotas expressions refer to."""
    operands, iotas = set(), set()
    for expr in order:
        if expr.kind == "load":
            operands.add(expr.data)
        elif expr.kind == "load_at":
            operands.add(expr.data[0])
        elif expr.kind == "iota":
            iotas.add(expr.data)
    return operands, iotas


def varying(order: Sequence[Expr], operands: Sequence[Operand], iotas: Sequence[Any]) -> set[int]:
    """Return the ids of expressions, arguments first, that change along the innermost loop."""
    found: set[int] = set()
    for expr in order:
        if expr.kind == "reduce":
            continue
        along = any(id(arg) in found for arg in expr.args)
        if expr.kind == "load":
            along = operands[expr.data].strides[-1] != 0
        elif expr.kind == "load_at":
            along = along or operands[expr.data[0]].strides[-1] != 0
        elif expr.kind == "iota":
            along = iotas[expr.data][-1] != 0
        if along or expr.kind == "index":
            found.add(id(expr))
    return found
