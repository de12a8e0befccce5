"""Exponentials: exp, exp2, expm1, and what is made of them.

All reduce x = n ln(2) + r with |r| <= ln(2) / 2 (Cody and Waite 1980) and evaluate a polynomial
in r. Rounding to n is an addition of a large number, which leaves n in the low bits of the sum.
"""

from __future__ import annotations

from typing import NamedTuple

from ..text import FunctionText
from ..values import IRValue
from . import coefficients as table
from .exact import fast_two_sum, quotient
from .formats import Format, at_most, format_of, polynomial, power_of_two, with_sign_of

LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453
# Beyond these exp is 0 or infinite after rounding.
_EXP_RANGE = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}
_EXP_NORMAL = {"float": 86.0, "double": 707.0}  # up to here it is a normal number
_EXP2_RANGE = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}
# Below the first expm1 is -1 after rounding.
_EXPM1_RANGE = {"float": (-18.0, 89.0), "double": (-38.0, 710.0)}
_TANH_END = {"float": 9.5, "double": 20.0}  # tanh is 1 after rounding
_HYPERBOLIC_END = {"float": 90.0, "double": 711.0}  # sinh and cosh overflow before it


def reduce_by_ln2(f: FunctionText, x: IRValue) -> tuple[IRValue, IRValue]:
    """Return (r, k): x = n ln(2) + r, and an integer k with n in its low bits."""
    format = format_of(x)
    high, low = table.LN2[format.element]
    sum = f.multiply_add(x, LOG2_E, format.rounding)
    n = f.fsub(sum, format.rounding)
    r = f.multiply_add(n, -low, f.multiply_add(n, -high, x))
    return r, f.as_integer(sum)


def expm1_reduced(f: FunctionText, r: IRValue) -> IRValue:
    """Return exp(r) - 1 for |r| <= ln(2) / 2."""
    tail = polynomial(f, r, table.EXP[format_of(r).element])
    return f.multiply_add(f.fmul(r, r), tail, r)


def exp_reduced(f: FunctionText, r: IRValue) -> IRValue:
    """Return exp(r) for |r| <= ln(2) / 2, with less work and error than 1 + expm1(r)."""
    return polynomial(f, r, (1.0, 1.0, *table.EXP[format_of(r).element]))


def scale(f: FunctionText, y: IRValue, k: IRValue) -> IRValue:
    """Return y 2^n, in two steps, so that n may exceed the range of normal exponents."""
    bits = format_of(y).mantissa
    half = f.shl(f.lshr(k, 1), bits)
    rest = f.sub(f.shl(k, bits), half)
    return f.fmul(f.fmul(y, power_of_two(f, half)), power_of_two(f, rest))


def scale_factor(f: FunctionText, format: Format, k: IRValue) -> IRValue:
    """Return 2^n where n is known to be a normal exponent."""
    return power_of_two(f, f.shl(k, format.mantissa))


def times_power_of_two(f: FunctionText, y: IRValue, k: IRValue) -> IRValue:
    """Return y 2^n where that is a normal number: n is added to the exponent."""
    return f.as_float(f.add(f.as_integer(y), f.shl(k, format_of(y).mantissa)))


def exp(f: FunctionText, x: IRValue) -> IRValue:
    """Return e^x; where it may be subnormal or infinite, and for NaN, by a longer way."""
    format = format_of(x)
    r, k = reduce_by_ln2(f, x)
    near = times_power_of_two(f, exp_reduced(f, r), k)
    far = f.fcmp("ugt", f.fabs(x), _EXP_NORMAL[format.element])
    return f.replaced_where(far, near, lambda: _exp_anywhere(f, x))


def _exp_anywhere(f: FunctionText, x: IRValue) -> IRValue:
    r, k = reduce_by_ln2(f, f.clamp(x, *_EXP_RANGE[format_of(x).element]))
    return scale(f, exp_reduced(f, r), k)


def exp2(f: FunctionText, x: IRValue) -> IRValue:
    """Return 2^x."""
    format = format_of(x)
    held = f.clamp(x, *_EXP2_RANGE[format.element])
    sum = f.fadd(held, format.rounding)
    r = f.fmul(f.fsub(held, f.fsub(sum, format.rounding)), LN_2)
    return scale(f, exp_reduced(f, r), f.as_integer(sum))


def expm1(f: FunctionText, x: IRValue) -> IRValue:
    """Return e^x - 1, accurate near 0."""
    format = format_of(x)
    r, k = reduce_by_ln2(f, f.clamp(x, *_EXPM1_RANGE[format.element]))
    p = expm1_reduced(f, r)
    # 2^(n-1) is finite for the largest n too; the doubling overflows when the result does.
    power = scale_factor(f, format, f.sub(k, 1))
    y = f.fmul(f.multiply_add(p, power, f.fsub(power, 0.5)), 2.0)
    near = f.fcmp("oeq", power, 0.5)
    return f.copysign(f.select(near, p, y), x)


def tanh(f: FunctionText, x: IRValue) -> IRValue:
    """Return the hyperbolic tangent."""
    small = format_of(x).element == "float"
    return _tanh_of_float(f, x) if small else _tanh_of_double(f, x)


def _tanh_of_float(f: FunctionText, x: IRValue) -> IRValue:
    """Return 1 - 2 / (e^2|x| + 1), and near 0, where that cancels, a polynomial."""
    size = at_most(f, f.fabs(x), _TANH_END["float"])
    r, k = reduce_by_ln2(f, f.fadd(size, size))
    e = f.fmul(exp_reduced(f, r), scale_factor(f, format_of(x), k))
    outer = f.fsub(1.0, f.fdiv(2.0, f.fadd(e, 1.0)))
    z = f.fmul(size, size)
    inner = f.multiply_add(f.fmul(size, z), polynomial(f, z, table.TANH["float"]), size)
    return with_sign_of(f, f.select(f.fcmp("olt", size, 0.55), inner, outer), x)


def _tanh_of_double(f: FunctionText, x: IRValue) -> IRValue:
    """Return e / (e + 2) with e = expm1(2 |x|), which needs no second polynomial."""
    size = at_most(f, f.fabs(x), _TANH_END["double"])
    r, k = reduce_by_ln2(f, f.fadd(size, size))
    power = scale_factor(f, format_of(x), k)
    e = f.multiply_add(expm1_reduced(f, r), power, f.fsub(power, 1.0))
    return f.copysign(f.fdiv(e, f.fadd(e, 2.0)), x)


def sigmoid(f: FunctionText, x: IRValue) -> IRValue:
    """Return 1 / (1 + e^-x), relatively accurate in the tail at the left too."""
    e = exp(f, f.fneg(f.fabs(x)))
    top = f.select(f.fcmp("olt", x, 0.0), e, f.constant(x.type, 1.0))
    bottom, lost = fast_two_sum(f, 1.0, e)
    return quotient(f, top, bottom, lost)


def sinh(f: FunctionText, x: IRValue) -> IRValue:
    """Return the hyperbolic sine."""
    parts = _hyperbolic_parts(f, x)
    y = f.multiply_add(parts.difference, parts.cosh, f.fmul(parts.sum, parts.sinh))
    return f.copysign(f.fmul(y, parts.factor), x)


def cosh(f: FunctionText, x: IRValue) -> IRValue:
    """Return the hyperbolic cosine."""
    parts = _hyperbolic_parts(f, x)
    y = f.multiply_add(parts.difference, parts.sinh, f.fmul(parts.sum, parts.cosh))
    return f.fmul(y, parts.factor)


class _HyperbolicParts(NamedTuple):
    """What sinh and cosh of |x| = n ln(2) + r are made of by the addition theorem.

    sinh, cosh        of r
    difference, sum   (2^n - 2^-n) / 2 and (2^n + 2^-n) / 2, both over `factor`
    factor            1, or 16 where 2^n alone would overflow although the result may not
    """

    sinh: IRValue
    cosh: IRValue
    difference: IRValue
    sum: IRValue
    factor: IRValue


def _hyperbolic_parts(f: FunctionText, x: IRValue) -> _HyperbolicParts:
    format = format_of(x)
    size = at_most(f, f.fabs(x), _HYPERBOLIC_END[format.element])
    r, k = reduce_by_ln2(f, size)
    z = f.fmul(r, r)
    sinh_r = f.multiply_add(f.fmul(r, z), polynomial(f, z, table.SINH[format.element]), r)
    cosh_r = f.multiply_add(z, polynomial(f, z, table.COSH[format.element]), 1.0)
    far = f.fcmp("ogt", size, _HYPERBOLIC_END[format.element] * 0.9)
    shifted = f.shl(f.select(far, f.sub(k, 4), k), format.mantissa)
    unit = 1 << format.mantissa
    half_power = power_of_two(f, f.sub(shifted, unit))
    half_inverse = power_of_two(f, f.sub(-unit, shifted))
    return _HyperbolicParts(
        sinh_r,
        cosh_r,
        f.fsub(half_power, half_inverse),
        f.fadd(half_power, half_inverse),
        f.select(far, f.constant(x.type, 16.0), 1.0),
    )
