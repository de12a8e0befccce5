"""Sine, cosine and tangent.

x = n pi/2 + r with |r| <= pi/4, and polynomials in r. Small arguments are reduced by subtracting
n times the parts of pi/2 (Cody and Waite); the others, in a branch that is rarely taken, by the
helper of `huge_angle`. A lane's result never depends on its neighbours.
"""

from __future__ import annotations

from ..text import FunctionText
from ..values import IRValue, suffix_of, with_element
from . import coefficients as table
from .formats import format_of, keep_zero, polynomial
from .huge_angle import vector_reduction

_TWO_OVER_PI = 0.6366197723675814
# Up to here the subtraction is accurate to the last bit of r, however near to a multiple of pi/2.
_FUSED_LIMIT = {"float": 2.0**15, "double": 2.0**26}
_PLAIN_LIMIT = {"float": 2.0**12, "double": 2.0**19}


def sin(f: FunctionText, x: IRValue) -> IRValue:
    """Return the sine; NaN of infinities."""
    r, quadrant = _reduce(f, x)
    return keep_zero(f, x, _sine_or_cosine(f, r, quadrant))


def cos(f: FunctionText, x: IRValue) -> IRValue:
    """Return the cosine; NaN of infinities."""
    r, quadrant = _reduce(f, x)
    return _sine_or_cosine(f, r, f.add(quadrant, 1))


def tan(f: FunctionText, x: IRValue) -> IRValue:
    """Return the tangent; NaN of infinities."""
    r, quadrant = _reduce(f, x)
    sine, cosine = _sine(f, r), _cosine(f, r)
    odd = _is_odd(f, quadrant)
    top = f.select(odd, f.fneg(cosine), sine)
    return keep_zero(f, x, f.fdiv(top, f.select(odd, sine, cosine)))


def _sine_or_cosine(f: FunctionText, r: IRValue, quadrant: IRValue) -> IRValue:
    """Return the sine of r + quadrant pi/2."""
    y = f.select(_is_odd(f, quadrant), _cosine(f, r), _sine(f, r))
    sign = f.shl(f.and_(quadrant, 2), format_of(r).width - 2)
    return f.as_float(f.xor(f.as_integer(y), sign))


def _is_odd(f: FunctionText, n: IRValue) -> IRValue:
    return f.icmp("ne", f.and_(n, 1), 0)


def _sine(f: FunctionText, r: IRValue) -> IRValue:
    z = f.fmul(r, r)
    return f.multiply_add(f.fmul(r, z), polynomial(f, z, table.SIN[format_of(r).element]), r)


def _cosine(f: FunctionText, r: IRValue) -> IRValue:
    """Return 1 - z/2 + z^2 Q(z), with what 1 - z/2 loses in rounding given back."""
    z = f.fmul(r, r)
    half = f.fmul(z, 0.5)
    first = f.fsub(1.0, half)
    lost = f.fsub(f.fsub(1.0, first), half)
    tail = polynomial(f, z, table.COS[format_of(r).element])
    return f.fadd(first, f.multiply_add(f.fmul(z, z), tail, lost))


def _reduce(f: FunctionText, x: IRValue) -> tuple[IRValue, IRValue]:
    """Return (r, k): x = n pi/2 + r, and an integer k equal to n in its last two bits."""
    fused = f.target.has_fma
    element = format_of(x).element
    rounding = format_of(x).rounding
    sum = f.multiply_add(x, _TWO_OVER_PI, rounding)
    n = f.fsub(sum, rounding)
    r = x
    for part in (table.HALF_PI_FUSED if fused else table.HALF_PI)[element]:
        r = f.multiply_add(n, -part, r)
    limit = (_FUSED_LIMIT if fused else _PLAIN_LIMIT)[element]
    huge = f.fcmp("ogt", f.fabs(x), limit)
    return _or_huge(f, x, huge, r, f.as_integer(sum))


def _or_huge(
    f: FunctionText, x: IRValue, huge: IRValue, r: IRValue, quadrant: IRValue
) -> tuple[IRValue, IRValue]:
    """Return the reduction given, replaced where x is huge."""
    if not f.has_blocks:
        return f.huge_angle(x, huge, r, quadrant)
    before, reduce, done = f.current, f.label("huge"), f.label("reduced")
    f.branch_if(f.any_lane(huge), reduce, done)
    f.block(reduce)
    name = f"weft.reduce.{suffix_of(x.type)}"
    f.adopt(vector_reduction(f, name, x.type))
    integers = with_element(x.type, f"i{format_of(x).width}")
    pair = f.call(name, f"{{ {x.type}, {integers} }}", x)
    slow_r = f.select(huge, f.define(x.type, f"extractvalue {pair.typed}, 0"), r)
    slow_quadrant = f.select(huge, f.define(integers, f"extractvalue {pair.typed}, 1"), quadrant)
    f.branch(done)
    f.block(done)
    return (
        f.phi(x.type, (r, before), (slow_r, reduce)),
        f.phi(integers, (quadrant, before), (slow_quadrant, reduce)),
    )
