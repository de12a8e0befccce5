"""Inverse trigonometric functions."""

from __future__ import annotations

from math import inf

from ..text import FunctionText
from ..values import IRValue
from . import coefficients as table
from .formats import at_most, format_of, number_where, polynomial

_TAN_EIGHTH = 0.41421356237309503  # tan(pi / 8)
# Sums of such sizes neither overflow nor lose bits to underflow.
_SAFE = {"float": (2.0**-60, 2.0**60), "double": (2.0**-500, 2.0**500)}


def asin(f: FunctionText, x: IRValue) -> IRValue:
    """Return the arc sine; NaN beyond 1."""
    high, low = _half_pi(x)
    outer, t, tail = _asin_parts(f, x)
    flipped = f.fsub(high, f.fsub(f.multiply_add(tail, 2.0, -low), f.fmul(t, -2.0)))
    return f.copysign(f.select(outer, flipped, f.fadd(t, tail)), x)


def acos(f: FunctionText, x: IRValue) -> IRValue:
    """Return the arc cosine; NaN beyond 1."""
    high, low = _half_pi(x)
    outer, t, tail = _asin_parts(f, x)
    double = f.fmul(f.fadd(t, tail), 2.0)
    left = f.fcmp("olt", x, 0.0)
    far = f.select(left, f.fsub(2 * high, f.fsub(double, 2 * low)), double)
    # Inside, acos(x) = pi/2 - asin(x), with the sign of x given to t and its tail.
    near = f.fsub(high, f.fsub(f.copysign(t, x), f.fsub(low, f.copysign(tail, x))))
    return f.select(outer, far, near)


def _asin_parts(f: FunctionText, x: IRValue) -> tuple[IRValue, IRValue, IRValue]:
    """Return whether |x| exceeds 1/2, and (t, tail) with asin(t) = t + tail.

    t is |x|, or beyond 1/2 sqrt((1 - |x|) / 2), as asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
    """
    size = f.fabs(x)
    outer = f.fcmp("ugt", size, 0.5)
    z = f.select(outer, f.multiply_add(size, -0.5, 0.5), f.fmul(size, size))
    t = f.select(outer, f.sqrt(z), size)
    tail = f.fmul(f.fmul(t, z), polynomial(f, z, table.ASIN[format_of(x).element]))
    return outer, t, tail


def atan(f: FunctionText, x: IRValue) -> IRValue:
    """Return the arc tangent."""
    a = f.fabs(x)
    one = f.constant(x.type, 1.0)
    # Beyond this size atan is pi/2 after rounding, and no sum overflows below it.
    y = _angle(f, at_most(f, a, _SAFE[format_of(x).element][1]), one)
    return f.copysign(y, x)


def atan2(f: FunctionText, y: IRValue, x: IRValue) -> IRValue:
    """Return the angle of the point (x, y), signs of zeros and infinities as in C."""
    high, low = (2 * part for part in _half_pi(x))
    b, a = _scaled_pair(f, f.fabs(y), f.fabs(x))
    angle = _angle(f, b, a)
    negative = f.icmp("slt", f.as_integer(x), 0)
    turned = f.select(negative, f.fsub(high, f.fsub(angle, low)), angle)
    result = f.copysign(turned, y)
    return f.select(f.fcmp("uno", x, y), f.fadd(x, y), result)


def _scaled_pair(f: FunctionText, b: IRValue, a: IRValue) -> tuple[IRValue, IRValue]:
    """Return both sizes times a power of two that makes sums and quotients safe."""
    low, high = _SAFE[format_of(a).element]
    both = f.and_(f.fcmp("oeq", a, inf), f.fcmp("oeq", b, inf))
    one = f.constant(a.type, 1.0)
    a, b = f.select(both, one, a), f.select(both, one, b)
    larger = f.maximum(a, b)
    cases = [(f.fcmp("ogt", larger, high), low), (f.fcmp("olt", larger, low), high)]
    factor = number_where(f, a.type, cases, 1.0)
    return f.fmul(b, factor), f.fmul(a, factor)


def _angle(f: FunctionText, b: IRValue, a: IRValue) -> IRValue:
    """Return atan(b / a) for sizes a, b >= 0, not both infinite; 0 if both are 0.

    One division serves three zones: t = b / a up to pi/8, (b - a) / (b + a) around pi/4 and
    -a / b from 3 pi/8 on, so that |t| <= tan(pi / 8) always.
    """
    element = format_of(a).element
    high, low = _half_pi(a)
    steep = f.fcmp("ogt", f.fmul(b, _TAN_EIGHTH), a)
    flat = f.fcmp("ule", b, f.fmul(a, _TAN_EIGHTH))
    top = f.select(flat, b, f.select(steep, f.fneg(a), f.fsub(b, a)))
    bottom = f.select(flat, a, f.select(steep, b, f.fadd(b, a)))
    t = f.fdiv(top, f.select(f.fcmp("oeq", bottom, 0.0), 1.0, bottom))
    z = f.fmul(t, t)
    tail = f.fmul(f.fmul(t, z), polynomial(f, z, table.ATAN[element]))
    base = number_where(f, a.type, [(flat, 0.0), (steep, high)], high / 2)
    rest = number_where(f, a.type, [(flat, 0.0), (steep, low)], low / 2)
    return f.fadd(base, f.fadd(t, f.fadd(tail, rest)))


def _half_pi(x: IRValue) -> tuple[float, float]:
    high, low = table.PI[format_of(x).element]
    return high / 2, low / 2
