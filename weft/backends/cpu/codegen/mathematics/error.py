"""The error function and its complement.

erfc(a) = exp(-a^2) erfcx(a) for a >= 0, where (1 + 2 a) erfcx(a) is smooth on the whole half line
and so a polynomial in t = (a - 4) / (a + 4) (Schonfelder 1978; Shepherd and Laframboise 1981).
"""

from __future__ import annotations

from ..text import FunctionText
from ..values import IRValue
from . import coefficients as table
from .exact import fast_two_sum, fma, quotient, two_product
from .exponential import exp_reduced, reduce_by_ln2, scale
from .formats import at_most, format_of, polynomial, with_sign_of

_ROOT_AT_ZERO = 257 / 256  # of the polynomial for the fourth root of erfc
# erf is 1 after rounding to float32, and so is 1 - q^4, which it is not yet at the end of the fit
_ONE_AFTER = 4.18
_ZERO_AFTER = {"float": 10.5, "double": 27.5}  # erfc is 0 after rounding


def erf(f: FunctionText, x: IRValue) -> IRValue:
    """Return the error function."""
    element = format_of(x).element
    a = f.fabs(x)
    inner = _erf_near_zero(f, x)
    short = element == "float"
    size = _outer_erf_of_float(f, a) if short else f.fsub(1.0, _erfc_of_size(f, a))
    outer = with_sign_of(f, size, x)
    return f.select(f.fcmp("ult", a, 1.0), inner, outer)  # NaN too


def erfc(f: FunctionText, x: IRValue) -> IRValue:
    """Return 1 - erf(x), relatively accurate in the tail at the right."""
    a = f.fabs(x)
    outer = _erfc_of_size(f, a)
    outer = f.select(f.fcmp("olt", x, 0.0), f.fsub(2.0, outer), outer)
    inner = f.fsub(1.0, _erf_near_zero(f, x))
    return f.select(f.fcmp("olt", a, 0.5), inner, outer)


def _erf_near_zero(f: FunctionText, x: IRValue) -> IRValue:
    """Return erf(x) for |x| <= 1."""
    series = polynomial(f, f.fmul(x, x), table.ERF[format_of(x).element])
    return f.multiply_add(x, series, x)


def _outer_erf_of_float(f: FunctionText, a: IRValue) -> IRValue:
    """Return erf(a), a >= 1, in float32: 1 - q^4, where q is a polynomial.

    A root of erfc needs few coefficients, and no exponential. The power multiplies the error of q
    by 4 q^3, which is 1 at first and falls steeply.
    """
    terms = (_ROOT_AT_ZERO, *table.ERFC_ROOT["float"])
    q = polynomial(f, at_most(f, a, _ONE_AFTER), terms)
    square = f.fmul(q, q)
    return f.multiply_add(f.fneg(square), square, 1.0)


def _erfc_of_size(f: FunctionText, a: IRValue) -> IRValue:
    """Return erfc(a) for a >= 0."""
    element = format_of(a).element
    held = at_most(f, a, _ZERO_AFTER[element])
    square, lost = two_product(f, held, held)
    r, k = reduce_by_ln2(f, f.fneg(square))
    power = exp_reduced(f, f.fsub(r, lost))
    t = _moved_to_unit(f, held)
    top = f.fmul(power, polynomial(f, t, table.ERFCX[element]))
    bottom, lost = fast_two_sum(f, f.fadd(held, held), f.constant(a.type, 1.0))
    return scale(f, quotient(f, top, bottom, lost), k)


def _moved_to_unit(f: FunctionText, a: IRValue) -> IRValue:
    """Return (a - 4) / (a + 4), the roundings of both sums made good."""
    top, bottom = f.fsub(a, 4.0), f.fadd(a, 4.0)
    inverse = f.fdiv(1.0, bottom)
    t = f.fmul(top, inverse)
    top_lost = f.fsub(a, f.fadd(top, 4.0))
    bottom_lost = f.fsub(a, f.fsub(bottom, 4.0))
    rest = f.fadd(fma(f, f.fneg(t), bottom, top), top_lost)
    return f.multiply_add(f.multiply_add(f.fneg(t), bottom_lost, rest), inverse, t)
