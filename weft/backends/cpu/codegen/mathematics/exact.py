"""Sums and products together with what their rounding loses."""

from __future__ import annotations

from ..lines import Operand
from ..text import FunctionText
from ..values import IRValue, scalar_of
from .formats import number_where

_LOW_BITS = 27  # of a double that go to the lower of two numbers: either has 26 of them
_EXPONENT = 0x7FF << 52


def fma(f: FunctionText, a: IRValue, b: IRValue, c: IRValue) -> IRValue:
    """Return a * b + c rounded once, or, if the machine cannot, exactly where that is a number.

    It is one in what functions use it for: the rest of a division, and what a product has lost.
    Otherwise it may be rounded twice then.
    """
    if f.target.has_fma:
        return f.fma(a, b, c)
    if scalar_of(a.type) == "float":
        wide = [f.fpext(x, "double") for x in (a, b, c)]
        return f.fptrunc(f.fadd(f.fmul(wide[0], wide[1]), wide[2]), "float")
    # A product of parts may exceed that of the whole, which is about as large as c.
    huge = f.fcmp("oge", f.fabs(c), 2.0**1000)
    down, up = (number_where(f, a.type, [(huge, 2.0**power)], 1.0) for power in (-64, 64))
    product, lost = two_product(f, a, f.fmul(b, down))
    total, rest = _two_sum(f, product, f.fmul(c, down))
    return f.fmul(f.fadd(total, f.fadd(rest, lost)), up)


def two_product(f: FunctionText, a: IRValue, b: IRValue) -> tuple[IRValue, IRValue]:
    """Return a * b rounded, and what the rounding lost."""
    product = f.fmul(a, b)
    if f.target.has_fma or scalar_of(a.type) == "float":
        return product, fma(f, a, b, f.fneg(product))
    return product, _lost(f, a, b, product)


def fast_two_sum(f: FunctionText, a: Operand, b: IRValue) -> tuple[IRValue, IRValue]:
    """Return a + b rounded, and what the rounding lost, for |a| >= |b| (Dekker 1971)."""
    total = f.fadd(a, b)
    return total, f.fsub(b, f.fsub(total, a))


def quotient(f: FunctionText, top: IRValue, bottom: IRValue, lost: IRValue) -> IRValue:
    """Return top / (bottom + lost), where `lost` is what rounding took from the sum."""
    if not f.target.has_fma:
        return f.fdiv(top, bottom)
    inverse = f.fdiv(1.0, bottom)
    ratio = f.fmul(top, inverse)
    rest = f.fma(ratio, f.fneg(bottom), top)
    rest = f.fma(ratio, f.fneg(lost), rest)
    return f.fma(rest, inverse, ratio)


def _two_sum(f: FunctionText, a: IRValue, b: IRValue) -> tuple[IRValue, IRValue]:
    """Return a + b rounded, and what the rounding lost (Knuth 1969, 4.2.2, theorem B)."""
    total = f.fadd(a, b)
    of_b = f.fsub(total, a)
    return total, f.fadd(f.fsub(a, f.fsub(total, of_b)), f.fsub(b, of_b))


def _lost(f: FunctionText, a: IRValue, b: IRValue, product: IRValue) -> IRValue:
    """Return what a product of doubles has lost, from the exact products of parts (Dekker 1971)."""
    (a_high, a_low), (b_high, b_low) = _in_parts(f, a), _in_parts(f, b)
    rest = f.fsub(f.fmul(a_high, b_high), product)
    rest = f.fadd(f.fadd(rest, f.fmul(a_high, b_low)), f.fmul(a_low, b_high))
    return f.fadd(rest, f.fmul(a_low, b_low))


def _in_parts(f: FunctionText, x: IRValue) -> tuple[IRValue, IRValue]:
    """Return doubles as sums of two numbers with half of the bits, the higher one rounded.

    The largest doubles would round to infinity: they are cut.
    """
    bits = f.as_integer(x)
    rounded = f.add(bits, 1 << (_LOW_BITS - 1))
    beyond = f.icmp("eq", f.and_(rounded, _EXPONENT), _EXPONENT)
    high = f.as_float(f.and_(f.select(beyond, bits, rounded), -1 << _LOW_BITS))
    return high, f.fsub(x, high)
