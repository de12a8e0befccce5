"""Write the statements of a C function by the instructions that machine code is written by.

The formulas of scalar functions stand once, in `cpu/codegen/scalars.py` and `mathematics`: they are
functions of a writer, which has a method for each instruction. This one spells them in C. Values
keep the types of machine code; integers are unsigned in C, where they wrap round, and signed by a
cast.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import numpy as np

from ..cpu.codegen.instructions import Instructions
from ..cpu.codegen.lines import Operand
from ..cpu.codegen.values import IRValue, bits_of, is_float
from . import helpers

C_TYPES = {
    "i1": "i32",
    "i8": "u8",
    "i16": "u16",
    "i32": "u32",
    "i64": "u64",
    "float": "f32",
    "double": "f64",
}
_OPERATORS = {
    **dict.fromkeys(("fadd", "add"), "+"),
    **dict.fromkeys(("fsub", "sub"), "-"),
    **dict.fromkeys(("fmul", "mul"), "*"),
    **dict.fromkeys(("fdiv", "udiv", "sdiv"), "/"),
    **dict.fromkeys(("urem", "srem"), "%"),
    **dict.fromkeys(("lshr", "ashr"), ">>"),
    "shl": "<<",
    "and": "&",
    "or": "|",
    "xor": "^",
}
_SIGNED = ("sdiv", "srem", "ashr")
_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OPPOSITE = {"lt": ">=", "le": ">", "gt": "<=", "ge": "<"}
_NARROW = 32  # bits: C computes with no fewer
VECTOR_BYTES = 32  # of vectors that compilers make of loops by themselves
_LANES = 8  # turns of a loop that one such vector takes
_AT_A_TIME = 4  # vectors of a long loop
_ALONE = 1.25  # what a vector costs that is taken by itself
_VALUE = re.compile(r"\s*const (\w+) v\d+ = ")
_BYTES = {**dict.fromkeys(("f64", "u64"), 8), **dict.fromkeys(("f32", "u32"), 4)}


class FormulaMachine(NamedTuple):
    """What formulas ask of a machine: that it rounds a product and a sum once."""

    has_fma: bool = True
    has_rounding: bool = False
    has_half: bool = False
    architecture: str = "c"
    vector_bytes: int = 0


class CFunction(Instructions):
    """The text of one function, and of the functions that it calls (`helpers`).

    vector_bytes   of the vectors that loops are to have
    branches   whether what is rare is branched to
    flag       else the name of a variable that notes it, if there is one, and
    flagged    whether something was
    """

    has_blocks = False

    def __init__(self) -> None:
        super().__init__(cast(Any, FormulaMachine()))
        self.lines: list[str] = []
        self.vector_bytes = VECTOR_BYTES
        self.branches = False
        self.flag: str | None = None
        self.flagged = False
        self._depth = 1

    # -- statements --------------------------------------------------------------------------------

    def write(self, line: str) -> None:
        """Append a line."""
        self.lines.append("  " * self._depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write a statement with a body: a loop, a condition, or a scope."""
        self.write(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.write("}")

    @contextmanager
    def vectors(self, kind: str, turns: int, head: str) -> Iterator[None]:
        """Write a loop that becomes one of vectors, if it has turns enough.

        Several are taken at a time, unless too many turns would be left over: each costs a vector.

        kind   APART if no turn needs another's result, REDUCED if they are combined
        """
        start = len(self.lines)
        with self.block(head):
            yield
        if turns < _LANES:
            return
        told = self._lanes_to_tell(self.lines[start:], turns)
        lanes = told or _LANES
        long = lanes * _AT_A_TIME
        several = turns // long * _AT_A_TIME + turns % long
        single = turns // lanes * _ALONE + turns % lanes
        asked = [f"LANES({told})"] if told else []
        asked.append(kind if several <= single else f"{kind}_SHORT")
        self.lines[start:start] = ["  " * self._depth + line for line in asked]

    def _lanes_to_tell(self, loop: list[str], turns: int) -> int:
        """Return how many turns a vector is to take; 0 if a compiler takes as many by itself.

        By themselves they make vectors of half of what processors have that are slower then, or
        were once.
        """
        types = [found[1] for found in map(_VALUE.match, loop) if found]
        widest = max([_BYTES.get(type, 0) for type in types], default=0)
        if not widest or self.vector_bytes <= VECTOR_BYTES:
            return 0
        lanes = self.vector_bytes // widest
        return lanes if turns >= lanes else 0

    def define(self, type: str, text: str) -> IRValue:
        """Append the definition of a value."""
        name = f"v{self._fresh}"
        self._fresh += 1
        self.write(f"const {C_TYPES[type]} {name} = {text};")
        return IRValue(name, type)

    def name(self, hint: str) -> str:
        """Return a name that is used nowhere else in this function."""
        self._fresh += 1
        return f"{hint}_{self._fresh - 1}"

    def replaced_where(
        self, rare: IRValue, usual: IRValue, write: Callable[[], IRValue]
    ) -> IRValue:
        """Return a value, or what is to be in its place where a condition holds, which is rare.

        A branch would keep a loop from being one of vectors. There the condition is noted, for the
        loop to be repeated; or what serves all values is taken at once.
        """
        if self.flag is not None:
            self.write(f"{self.flag} |= -{rare};")
            self.flagged = True
            return usual
        if not self.branches:
            return write()
        name = self.name("w")
        self.write(f"{C_TYPES[usual.type]} {name} = {usual};")
        with self.block(f"if ({rare})"):
            self.write(f"{name} = {write()};")
        return IRValue(name, usual.type)

    def any_lane(self, mask: IRValue, bits: int = 32) -> IRValue:
        """Return a condition as it is: there is one lane."""
        return mask

    def huge_angle(
        self, x: IRValue, huge: IRValue, r: IRValue, quadrant: IRValue
    ) -> tuple[IRValue, IRValue]:
        """Return x modulo pi/2, by a function where it is huge."""
        type = C_TYPES[x.type]
        self.helpers |= helpers.huge_angle(type)
        angle, turns = self.name("r"), self.name("n")
        self.write(f"{type} {angle} = {r}; {C_TYPES[quadrant.type]} {turns} = {quadrant};")
        call = f"weft_angle_{type}({x}, &{angle})"
        self.write(f"if ({huge}) {turns} = ({C_TYPES[quadrant.type]}){call};")
        infinite = self.fcmp("oeq", self.fabs(x), math.inf)
        found = self.select(infinite, self.constant(x.type, math.nan), IRValue(angle, x.type))
        return found, IRValue(turns, quadrant.type)

    def long_division(self, long: IRValue, a: IRValue, b: IRValue, rest: IRValue) -> IRValue:
        """Return what a division leaves, by a function where the quotient is long."""
        type, name = C_TYPES[a.type], self.name("rest")
        self.helpers |= helpers.long_division(type)
        self.write(f"{type} {name} = {rest};")
        self.write(f"if ({long}) {name} = weft_rest_{type}({a}, {b});")
        return IRValue(name, a.type)

    # -- expressions -------------------------------------------------------------------------------

    def _like(self, x: Any, type: str) -> IRValue:
        return x if isinstance(x, IRValue) else IRValue(literal(type, x), type)

    def _binary(self, name: str, a: Operand, b: Operand, flags: str = "") -> IRValue:
        a, b = self._pair(a, b)
        if is_float(a.type):
            return self.define(a.type, f"{a} {_OPERATORS[name]} {b}")
        if a.type == "i1":
            return self.define("i1", f"({a} {_OPERATORS[name]} {b}) & 1")
        wide = ("i" if name in _SIGNED else "u") + str(max(_NARROW, bits_of(a.type)))
        x, y = (_as(v, name in _SIGNED) for v in (a, b))
        text = f"({wide}){x} {_OPERATORS[name]} ({wide}){y}"
        return self.define(a.type, f"({C_TYPES[a.type]})({text})")

    def _compare(self, name: str, predicate: str, a: Operand, b: Operand) -> IRValue:
        a, b = self._pair(a, b)
        compare = _float_comparison if name == "fcmp" else _integer_comparison
        return self.define("i1", compare(predicate, a, b))

    def _cast(self, name: str, x: IRValue, element: str) -> IRValue:
        if element == "i1":
            return self.define("i1", f"(i32)({x} & 1)")
        if name == "sitofp":
            return self.define(element, f"({C_TYPES[element]}){_as(x, True)}")
        if name == "sext":
            return self.define(element, f"({C_TYPES[element]})(i{bits_of(element)}){_as(x, True)}")
        if name == "fptosi":
            return self.define(element, f"({C_TYPES[element]})(i{bits_of(element)}){x}")
        return self.define(element, f"({C_TYPES[element]}){x}")

    def select(self, mask: IRValue, a: Operand, b: Operand) -> IRValue:
        """Return a where a condition holds, else b."""
        a, b = self._same(a, b)
        return self.define(a.type, f"{mask} ? {a} : {b}")

    def _extremum(self, name: str, better: str, signed: str, a: Operand, b: Operand) -> IRValue:
        """Return the larger or smaller one, or NaN, by one choice.

        Of two choices, one in the other, LLVM 14 takes time that doubles with each element of a
        window whose extreme is wanted.
        """
        a, b = self._same(a, b)
        if not is_float(a.type):
            return self.select(self.icmp(signed, a, b), a, b)
        wanted = f"({_float_comparison(better, a, b)}) | ({a} != {a})"
        return self.select(self.define("i1", wanted), a, b)

    def fneg(self, x: IRValue) -> IRValue:
        """Return -x, also of zeros."""
        return self.define(x.type, f"-{x}")

    def bitcast(self, x: IRValue, type: str) -> IRValue:
        """Return the same bits as another type of that size."""
        if x.type == type:
            return x
        spelled = {"float": "F32", "double": "F64"}.get(type) or f"BITS{bits_of(type)}"
        if not is_float(type) and not is_float(x.type):
            return IRValue(x, type)
        return self.define(type, f"{spelled}({x})")

    def intrinsic(self, name: str, returns: str, *arguments: IRValue) -> IRValue:
        """Return what an instruction of most machines gives."""
        return _INTRINSICS[name](self, *arguments)

    def _absolute(self, x: IRValue) -> IRValue:
        return self.as_float(self.and_(self.as_integer(x), (1 << (bits_of(x.type) - 1)) - 1))

    def _with_sign(self, magnitude: IRValue, sign: IRValue) -> IRValue:
        bit = 1 << (bits_of(sign.type) - 1)
        size = self.and_(self.as_integer(magnitude), bit - 1)
        return self.as_float(self.or_(size, self.and_(self.as_integer(sign), bit)))

    def _fused(self, a: IRValue, b: IRValue, c: IRValue) -> IRValue:
        return self.define(a.type, f"FMA{bits_of(a.type)}({a}, {b}, {c})")

    def _root(self, x: IRValue) -> IRValue:
        return self.define(x.type, f"SQRT{bits_of(x.type)}({x})")


_INTRINSICS: dict[str, Callable[..., IRValue]] = {
    "fabs": CFunction._absolute,
    "copysign": CFunction._with_sign,
    "fma": CFunction._fused,
    "sqrt": CFunction._root,
}


def literal(type: str, number: float) -> str:
    """Return a number as it is spelled in C, to the last bit."""
    if type == "i1":
        return str(int(bool(number)))
    if not is_float(type):
        bits = int(number) & ((1 << bits_of(type)) - 1)
        return f"({C_TYPES[type]}){bits:#x}"
    if type == "double":
        return _finite(number, "") or f"F64({_bits('<d', '<Q', number):#x})"
    with np.errstate(over="ignore"):
        single = float(np.float32(number))
    return _finite(single, "f") or f"F32({_bits('<f', '<I', single):#x})"


def _finite(number: float, suffix: str) -> str | None:
    spelled = f"{number!r}{suffix}"
    if not math.isfinite(number):
        return None
    return f"({spelled})" if spelled.startswith("-") else spelled


def _bits(float_format: str, word_format: str, number: float) -> int:
    bits: int = struct.unpack(word_format, struct.pack(float_format, number))[0]
    return bits


def _as(x: IRValue, signed: bool) -> str:
    """Return an integer as a signed one where that matters."""
    return f"(i{bits_of(x.type)}){x}" if signed and x.type != "i1" else str(x)


def _float_comparison(predicate: str, a: IRValue, b: IRValue) -> str:
    """Return a comparison that is false (o..) or true (u..) for NaN, without branches."""
    if predicate in ("uno", "ord"):
        relation, both = ("!=", "|") if predicate == "uno" else ("==", "&")
        sides = [f"{x} {relation} {x}" for x in dict.fromkeys((str(a), str(b)))]
        return sides[0] if len(sides) == 1 else f"({sides[0]}) {both} ({sides[1]})"
    unordered, relation = predicate[0] == "u", predicate[1:]
    if relation in _OPPOSITE:
        return (
            f"!({a} {_OPPOSITE[relation]} {b})" if unordered else f"{a} {_RELATIONS[relation]} {b}"
        )
    if predicate in ("oeq", "une"):
        return f"{a} {_RELATIONS[relation]} {b}"
    apart = f"(({a} < {b}) | ({a} > {b}))"
    return apart if predicate == "one" else f"!{apart}"


def _integer_comparison(predicate: str, a: IRValue, b: IRValue) -> str:
    signed, relation = predicate[0] == "s", predicate[-2:]
    return f"{_as(a, signed)} {_RELATIONS[relation]} {_as(b, signed)}"
