"""Powers and roots: pow, hypot.

pow(x, y) = exp(y log(x)). In float32 both are computed in float64. In float64 the logarithm is a
sum of two doubles (about 64 bits), since its error is multiplied by up to 745.
"""

from __future__ import annotations

from math import inf, nan

from ..text import FunctionText
from ..values import IRValue, scalar_of
from . import coefficients as table
from .exact import fast_two_sum, fma, two_product
from .exponential import LN_2, LOG2_E, scale, scale_factor
from .formats import (
    DOUBLE,
    format_of,
    is_outside,
    number_where,
    polynomial,
    split_any_number,
    split_number,
)
from .rounding import round

_LARGEST_EXPONENT = 2.0**70  # more overflows or vanishes for every base but 1


def pow(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    """Return x to the power of y, special values as in C and NumPy."""
    size = f.fabs(x)
    short = scalar_of(x.type) == "float"
    power = _pow_of_float(f, size, y) if short else _pow_of_double(f, size, y)
    unusual = is_outside(f, x, format_of(x).least_normal, inf)
    unusual = f.or_(unusual, f.fcmp("uge", f.fabs(y), inf))
    return f.replaced_where(unusual, power, lambda: _pow_anywhere(f, x, size, y, power))


def _pow_anywhere(
    f: FunctionText, x: IRValue, size: IRValue, y: IRValue, power: IRValue
) -> IRValue:
    """Return the power of |x|, made that of x whatever x and y are."""
    power = _at_ends(f, size, y, power)
    power = _of_negative_base(f, x, size, y, power)
    power = f.select(f.fcmp("uno", x, y), f.fadd(x, y), power)
    unit = f.or_(f.fcmp("oeq", y, 0.0), f.fcmp("oeq", x, 1.0))
    endless = f.and_(f.fcmp("oeq", size, 1.0), f.fcmp("oeq", f.fabs(y), inf))
    return f.select(f.or_(unit, endless), f.constant(x.type, 1.0), power)


def _at_ends(f: FunctionText, size: IRValue, y: IRValue, power: IRValue) -> IRValue:
    """Return the power, exact for a base of 0 or infinity."""
    infinite = f.fcmp("oeq", size, inf)
    end = f.or_(infinite, f.fcmp("oeq", size, 0.0))
    grows = f.xor(infinite, f.fcmp("olt", y, 0.0))
    limit = f.select(grows, f.constant(size.type, inf), 0.0)
    return f.select(end, limit, power)


def _of_negative_base(
    f: FunctionText, x: IRValue, size: IRValue, y: IRValue, power: IRValue
) -> IRValue:
    """Return the power with its sign, or NaN where it would be complex."""
    half = f.fmul(y, 0.5)
    whole = f.fcmp("oeq", round(f, y), y)
    even = f.fcmp("oeq", round(f, half), half)
    odd = f.and_(whole, f.not_(even))
    signed = f.select(odd, f.copysign(power, x), power)
    negative = f.and_(f.fcmp("olt", x, 0.0), f.fcmp("olt", size, inf))
    return f.select(f.and_(negative, f.not_(whole)), f.constant(x.type, nan), signed)


def _pow_of_float(f: FunctionText, size: IRValue, y: IRValue) -> IRValue:
    e, m, _ = split_number(f, f.fpext(size, "double"))
    s = f.fdiv(f.fsub(m, 1.0), f.fadd(m, 1.0))
    z = f.fmul(s, s)
    tail = polynomial(f, z, table.ATANH["double for float"])
    logarithm = f.multiply_add(f.fmul(s, z), tail, f.fadd(s, s))
    exponent = f.fmul(f.fpext(y, "double"), f.multiply_add(logarithm, LOG2_E, e))
    held = f.clamp(exponent, -200.0, 200.0)
    sum = f.fadd(held, DOUBLE.rounding)
    r = f.fmul(f.fsub(held, f.fsub(sum, DOUBLE.rounding)), LN_2)
    tail = polynomial(f, r, table.EXP["double for float"])
    power = f.fadd(f.multiply_add(f.fmul(r, r), tail, r), 1.0)
    return f.fptrunc(f.fmul(power, scale_factor(f, DOUBLE, f.as_integer(sum))), "float")


def _pow_of_double(f: FunctionText, size: IRValue, y: IRValue) -> IRValue:
    high, low = _log_in_two(f, size)
    held = f.clamp(y, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
    product, lost = two_product(f, held, high)
    lost = f.multiply_add(held, low, lost)
    inside = f.fcmp("olt", f.fabs(product), 800.0)
    lost = f.select(inside, lost, f.constant(y.type, 0.0))
    return _exp_of_two(f, f.clamp(product, -800.0, 800.0), lost)


def _log_in_two(f: FunctionText, x: IRValue) -> tuple[IRValue, IRValue]:
    """Return log(x) as a sum of two doubles: 2 s + 2/3 s^3 + s^5 T(s^2), s = (m - 1) / (m + 1)."""
    e, m = split_any_number(f, x)
    s, s_low = _quotient_in_two(f, m)
    z, z_low = two_product(f, s, s)
    z_low = f.multiply_add(f.fadd(s, s), s_low, z_low)
    third, third_low = table.TWO_THIRDS["double"]
    series = f.fmul(z, polynomial(f, z, table.ATANH_TAIL["double"]))
    c, c_low = fast_two_sum(f, third, series)
    w, w_low = _product_in_two(f, (z, z_low), (c, f.fadd(c_low, third_low)))
    b, b_low = fast_two_sum(f, 2.0, w)
    part, part_low = _product_in_two(f, (s, s_low), (b, f.fadd(b_low, w_low)))
    ln2, ln2_low = table.LN2["double"]
    high, low = fast_two_sum(f, f.fmul(e, ln2), part)
    low = f.fadd(low, f.multiply_add(e, ln2_low, part_low))
    return fast_two_sum(f, high, low)


def _quotient_in_two(f: FunctionText, m: IRValue) -> tuple[IRValue, IRValue]:
    """Return (m - 1) / (m + 1) as a sum of two doubles."""
    top = f.fsub(m, 1.0)
    bottom = f.fadd(m, 1.0)
    bottom_low = f.fsub(m, f.fsub(bottom, 1.0))
    inverse = f.fdiv(1.0, bottom)
    s = f.fmul(top, inverse)
    rest = fma(f, f.fneg(s), bottom, top)
    return s, f.fmul(f.multiply_add(f.fneg(s), bottom_low, rest), inverse)


def _product_in_two(
    f: FunctionText, a: tuple[IRValue, IRValue], b: tuple[IRValue, IRValue]
) -> tuple[IRValue, IRValue]:
    product, lost = two_product(f, a[0], b[0])
    return product, f.multiply_add(a[0], b[1], f.multiply_add(a[1], b[0], lost))


def _exp_of_two(f: FunctionText, high: IRValue, low: IRValue) -> IRValue:
    """Return exp(high + low), nearly correctly rounded, so that exact powers come out exact."""
    ln2, ln2_low = table.LN2["double"]
    sum = f.multiply_add(high, LOG2_E, DOUBLE.rounding)
    n = f.fsub(sum, DOUBLE.rounding)
    r, r_low = fast_two_sum(f, f.multiply_add(n, -ln2, high), f.multiply_add(n, -ln2_low, low))
    total, lost = fast_two_sum(f, 1.0, r)
    tail = f.multiply_add(f.fmul(r, r), polynomial(f, r, table.EXP["double"]), r_low)
    return scale(f, f.fadd(total, f.fadd(lost, tail)), f.as_integer(sum))


def hypot(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    """Return sqrt(x^2 + y^2) without overflow on the way; infinite if either operand is."""
    if scalar_of(x.type) == "float":
        a, b = f.fpext(x, "double"), f.fpext(y, "double")
        root = f.fptrunc(f.sqrt(f.multiply_add(a, a, f.fmul(b, b))), "float")
    else:
        root = _scaled_root(f, f.fabs(x), f.fabs(y))
    infinite = f.or_(f.fcmp("oeq", f.fabs(x), inf), f.fcmp("oeq", f.fabs(y), inf))
    return f.select(infinite, f.constant(x.type, inf), root)


def _scaled_root(f: FunctionText, a: IRValue, b: IRValue) -> IRValue:
    """Return sqrt(a^2 + b^2) of doubles scaled by a power of two to safe squares."""
    larger = f.maximum(a, b)
    up = f.fcmp("olt", larger, 2.0**-450)
    down = f.fcmp("ogt", larger, 2.0**450)
    factor = number_where(f, a.type, [(up, 2.0**600), (down, 2.0**-600)], 1.0)
    back = number_where(f, a.type, [(up, 2.0**-600), (down, 2.0**600)], 1.0)
    a, b = f.fmul(a, factor), f.fmul(b, factor)
    return f.fmul(f.sqrt(f.multiply_add(a, a, f.fmul(b, b))), back)
