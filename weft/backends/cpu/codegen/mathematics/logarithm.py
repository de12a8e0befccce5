"""Logarithms and the inverse hyperbolic functions.

x = m 2^e with m in [sqrt(1/2), sqrt(2)), and log(m) = f + tail with f = m - 1. In float32 the tail
is a polynomial in f; in float64 one in s = f / (2 + f), which needs half the terms:
log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)), as 2 s = f - s f (the identity behind fdlibm's log).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, nan

from ..text import FunctionText
from ..values import IRValue
from . import coefficients as table
from .formats import (
    format_of,
    is_outside,
    keep_zero,
    polynomial,
    power_of_two,
    split_any_number,
    split_number,
    with_sign_of,
)

LN_2 = 0.6931471805599453
_SQUARES_VANISH = {"float": 2.0**28, "double": 2.0**58}  # beyond, 1 + x^2 rounds to x^2


def log(f: FunctionText, x: IRValue) -> IRValue:
    """Return the natural logarithm."""
    return _of_parts(f, x, lambda e, m: _join(f, e, f.fsub(m, 1.0)))


def log2(f: FunctionText, x: IRValue) -> IRValue:
    """Return the logarithm to base 2, exact for powers of two."""
    high, low = table.LOG2_E[format_of(x).element]

    def join(e: IRValue, m: IRValue) -> IRValue:
        t = f.fsub(m, 1.0)
        tail = log1p_tail(f, t)
        part = f.multiply_add(t, high, f.multiply_add(tail, high, f.fmul(t, low)))
        return f.fadd(e, part)

    return _of_parts(f, x, join)


def log10(f: FunctionText, x: IRValue) -> IRValue:
    """Return the logarithm to base 10."""
    element = format_of(x).element
    high, low = table.LOG10_E[element]
    two_high, two_low = table.LOG10_2[element]

    def join(e: IRValue, m: IRValue) -> IRValue:
        t = f.fsub(m, 1.0)
        small = f.multiply_add(e, two_low, f.fmul(t, low))
        part = f.multiply_add(t, high, f.multiply_add(log1p_tail(f, t), high, small))
        return f.multiply_add(e, two_high, part)

    return _of_parts(f, x, join)


def _of_parts(f: FunctionText, x: IRValue, join: Callable[[IRValue, IRValue], IRValue]) -> IRValue:
    """Return the logarithm of x = m 2^e as `join` makes it of e and m.

    What is no normal number above 0 goes a longer way.
    """
    exponent, fraction, _ = split_number(f, x)
    usual = join(exponent, fraction)
    anywhere = partial(_of_any_parts, f, x, join)
    unusual = is_outside(f, x, format_of(x).least_normal, inf)
    return f.replaced_where(unusual, usual, anywhere)


def _of_any_parts(
    f: FunctionText, x: IRValue, join: Callable[[IRValue, IRValue], IRValue]
) -> IRValue:
    return _with_limits(f, x, join(*split_any_number(f, x)))


def log1p(f: FunctionText, x: IRValue) -> IRValue:
    """Return log(1 + x), accurate near 0."""
    total = f.fadd(x, 1.0)
    # What the sum lost: by Dekker's rule, the larger summand subtracted first.
    larger = f.select(f.fcmp("ogt", x, 1.0), x, 1.0)
    smaller = f.select(f.fcmp("olt", x, 1.0), x, 1.0)
    lost = f.fsub(smaller, f.fsub(total, larger))
    e, m, biased = split_number(f, total)
    format = format_of(x)
    inverse = power_of_two(f, f.shl(f.sub(format.bias, biased), format.mantissa))
    usual = with_sign_of(f, _join(f, e, f.multiply_add(inverse, lost, f.fsub(m, 1.0))), x)
    unusual = is_outside(f, total, format.least_normal, 2.0 ** (format.bias - 1))
    return f.replaced_where(unusual, usual, lambda: _log1p_anywhere(f, x, total, lost))


def _log1p_anywhere(f: FunctionText, x: IRValue, total: IRValue, lost: IRValue) -> IRValue:
    """Return log(1 + x), given the sum 1 + x and what its rounding lost."""
    e, m, biased = split_number(f, total)
    t = f.multiply_add(_inverse_power(f, x, biased), lost, f.fsub(m, 1.0))
    return keep_zero(f, x, _with_limits(f, total, _join(f, e, t)))


def _inverse_power(f: FunctionText, x: IRValue, biased: IRValue) -> IRValue:
    """Return 2^-e, or 2^-bias where e is too large for its inverse to be normal."""
    format = format_of(x)
    exponent = f.sub(format.bias, biased)
    normal = f.icmp("sgt", exponent, -format.bias)
    return power_of_two(f, f.shl(f.select(normal, exponent, 1 - format.bias), format.mantissa))


def log1p_tail(f: FunctionText, t: IRValue) -> IRValue:
    """Return log(1 + t) - t for sqrt(1/2) <= 1 + t <= sqrt(2)."""
    square = f.fmul(t, t)
    if format_of(t).element == "float":
        cubic = f.fmul(f.fmul(t, square), polynomial(f, t, table.LOG1P["float"]))
        return f.multiply_add(square, -0.5, cubic)
    s = f.fdiv(t, f.fadd(t, 2.0))
    z = f.fmul(s, s)
    half = f.fmul(square, 0.5)
    rest = f.multiply_add(z, polynomial(f, z, table.ATANH["double"]), half)
    return f.multiply_add(s, rest, f.fneg(half))


def _join(f: FunctionText, e: IRValue, t: IRValue) -> IRValue:
    """Return e ln(2) + log(1 + t), the small parts first."""
    high, low = table.LN2[format_of(t).element]
    return f.multiply_add(e, high, f.fadd(t, f.multiply_add(e, low, log1p_tail(f, t))))


def _with_limits(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    """Return y, a logarithm of x, with the right values at 0, infinity, NaN and below 0."""
    y = f.select(f.fcmp("olt", x, inf), y, x)
    y = f.select(f.fcmp("oeq", x, 0.0), f.constant(x.type, -inf), y)
    return f.select(f.fcmp("olt", x, 0.0), f.constant(x.type, nan), y)


def asinh(f: FunctionText, x: IRValue) -> IRValue:
    """Return the inverse hyperbolic sine: log1p(a + a^2 / (1 + sqrt(1 + a^2))), a = |x|."""
    a = f.fabs(x)
    huge = f.fcmp("ogt", a, _SQUARES_VANISH[format_of(x).element])
    square = f.fmul(a, a)
    root = f.sqrt(f.fadd(square, 1.0))
    inside = f.fadd(a, f.fdiv(square, f.fadd(root, 1.0)))
    return f.copysign(_log1p_or_log_of_double(f, huge, a, inside), x)


def acosh(f: FunctionText, x: IRValue) -> IRValue:
    """Return the inverse hyperbolic cosine: log1p(t + sqrt(2 t + t^2)), t = x - 1."""
    t = f.fsub(x, 1.0)
    huge = f.fcmp("ogt", x, _SQUARES_VANISH[format_of(x).element])
    inside = f.fadd(t, f.sqrt(f.fmul(t, f.fadd(t, 2.0))))
    y = _log1p_or_log_of_double(f, huge, x, inside)
    return f.select(f.fcmp("olt", x, 1.0), f.constant(x.type, nan), y)


def _log1p_or_log_of_double(f: FunctionText, huge: IRValue, a: IRValue, inside: IRValue) -> IRValue:
    """Return log1p(inside), but log(2 a) for huge a."""
    y = log1p(f, f.select(huge, a, inside))
    return f.select(huge, f.fadd(y, LN_2), y)


def atanh(f: FunctionText, x: IRValue) -> IRValue:
    """Return the inverse hyperbolic tangent: log1p(2 a / (1 - a)) / 2, a = |x|."""
    a = f.fabs(x)
    y = log1p(f, f.fdiv(f.fadd(a, a), f.fsub(1.0, a)))
    return f.copysign(f.fmul(y, 0.5), x)
