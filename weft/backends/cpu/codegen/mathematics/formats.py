"""The layouts of float32 and float64, and the small steps every function is built of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..text import FunctionText
from ..values import IRValue, bytes_of, constant, lanes_of, scalar_of, suffix_of


@dataclass(frozen=True)
class Format:
    """A binary floating-point format of IEEE 754."""

    element: str
    width: int
    mantissa: int  # bits after the point
    bias: int

    @property
    def rounding(self) -> float:
        """The number whose addition rounds small numbers to integers, held in its low bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def least_normal(self) -> float:
        """The smallest number of full precision."""
        return 2.0 ** (1 - self.bias)

    def bits(self, number: float) -> int:
        """Return the bits of a number as an integer."""
        if self.element == "float":
            return int(np.float32(number).view(np.uint32))
        return int(np.float64(number).view(np.uint64))

    @property
    def one(self) -> int:
        """The bits of 1, the exponent's bias in its place."""
        return self.bias << self.mantissa


_LONG_CHAIN = 8

FLOAT = Format("float", 32, 23, 127)
DOUBLE = Format("double", 64, 52, 1023)
_FORMATS = {"float": FLOAT, "double": DOUBLE}


def format_of(x: IRValue) -> Format:
    """Return the format of a value, scalar or vector."""
    element = scalar_of(x.type)
    if element not in _FORMATS:
        raise TypeError(f"mathematics is for float and double; got a value of type {x.type}")
    return _FORMATS[element]


def polynomial(f: FunctionText, x: IRValue, coefficients: Sequence[float]) -> IRValue:
    """Return c0 + c1 x + c2 x^2 + ... by Horner's rule, the fewest operations.

    Of many terms only the first two, which decide the accuracy, are added so; the others are
    paired by Estrin's rule, since a long chain of operations leaves the machine waiting.
    """
    lead = 2 if len(coefficients) > _LONG_CHAIN else len(coefficients) - 1
    terms = [_coefficient(f, x.type, c) for c in coefficients]
    total = _estrin(f, x, terms[lead:])
    for term in reversed(terms[:lead]):
        total = f.multiply_add(total, x, term)
    return total


def _estrin(f: FunctionText, x: IRValue, terms: list[IRValue]) -> IRValue:
    while len(terms) > 1:
        pairs = [f.multiply_add(b, x, a) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[2 * len(pairs) :]
        x = f.fmul(x, x) if len(terms) > 1 else x
    return terms[0]


def _coefficient(f: FunctionText, type: str, number: float) -> IRValue:
    """Return a constant, with AVX2 from memory as whole vectors, which an instruction can read.

    LLVM would keep one number and broadcast it into a register first; registers are scarce.
    """
    size, width = bytes_of(type) * lanes_of(type), f.target.vector_bytes
    if f.target.architecture != "x86_64" or size % width or width > 32:
        return f.constant(type, number)
    name = f"weft.constant.{suffix_of(type)}.{format_of(IRValue('', type)).bits(number):x}"
    text = f"private unnamed_addr constant {constant(type, number).typed}, align {size}"
    f.helpers[name] = f"@{name} = {text}"
    return f.load(type, IRValue(f"@{name}", "ptr"), aligned=True)


def number_where(
    f: FunctionText, type: str, cases: Sequence[tuple[IRValue, float]], otherwise: float
) -> IRValue:
    """Return the number of the first mask that holds, lane by lane."""
    value = f.constant(type, otherwise)
    for mask, number in reversed(cases):
        value = f.select(mask, number, value)
    return value


def at_most(f: FunctionText, x: IRValue, high: float) -> IRValue:
    """Return the smaller of x and a number; a NaN stays."""
    return f.select(f.fcmp("olt", high, x), high, x)


def power_of_two(f: FunctionText, shifted: IRValue) -> IRValue:
    """Return 2^n for integers n already in the place of the exponent, all results normal."""
    format = {32: FLOAT, 64: DOUBLE}[int(scalar_of(shifted.type)[1:])]
    return f.as_float(f.add(shifted, format.one))


def keep_zero(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    """Return y, but x itself where it is zero: the sign of a zero is kept."""
    return f.select(f.fcmp("oeq", x, 0.0), x, y)


def split_number(f: FunctionText, x: IRValue) -> tuple[IRValue, IRValue, IRValue]:
    """Return (e, m, b): x = m 2^e for normal x > 0, m in [sqrt(1/2), sqrt(2)).

    e is a float and b the integer e + bias.
    """
    format = format_of(x)
    start = format.bits(2.0**-0.5)
    above = f.sub(f.as_integer(x), start)
    biased = f.lshr(f.add(above, format.one), format.mantissa)
    # An integer below 2^mantissa, written into the mantissa of 2^mantissa, needs no conversion.
    anchor = 2.0**format.mantissa
    exponent = f.fsub(f.as_float(f.or_(biased, format.bits(anchor))), anchor + format.bias)
    fraction = f.add(f.and_(above, (1 << format.mantissa) - 1), start)
    return exponent, f.as_float(fraction), biased


def is_outside(f: FunctionText, x: IRValue, low: float, high: float) -> IRValue:
    """Return where low <= x < high does not hold, for numbers above 0; a NaN is outside.

    The bits of what is inside are a range of integers, moved here to the lower end of all: one
    addition and one comparison.
    """
    format = format_of(x)
    lowest = -(1 << (format.width - 1))
    moved = f.add(f.as_integer(x), lowest - format.bits(low))
    return f.icmp("sge", moved, lowest + format.bits(high) - format.bits(low))


def split_any_number(f: FunctionText, x: IRValue) -> tuple[IRValue, IRValue]:
    """Return (e, m): x = m 2^e for every finite x > 0, subnormal ones included."""
    format = format_of(x)
    lift = format.mantissa + 1
    tiny = f.fcmp("olt", x, format.least_normal)
    exponent, fraction, _ = split_number(f, f.select(tiny, f.fmul(x, 2.0**lift), x))
    zero = f.constant(x.type, 0.0)
    return f.fsub(exponent, f.select(tiny, float(lift), zero)), fraction


def with_sign_of(f: FunctionText, magnitude: IRValue, x: IRValue) -> IRValue:
    """Return a number that is not negative with the sign of another: less than a copysign."""
    sign = f.and_(f.as_integer(x), -1 << (format_of(x).width - 1))
    return f.as_float(f.or_(f.as_integer(magnitude), sign))
