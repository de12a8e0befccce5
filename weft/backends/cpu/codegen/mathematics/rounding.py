"""Rounding, signs and remainders."""

from __future__ import annotations

from math import inf, nan

from ..text import FunctionText
from ..values import IRValue, lanes_of, scalar_of, suffix_of
from .exact import fma
from .formats import DOUBLE, format_of

_DIGITS = 11  # how many bits a 53-bit remainder can be shifted up within 64


def floor(f: FunctionText, x: IRValue) -> IRValue:
    """Return the largest integer not above x."""
    if f.target.has_rounding:
        return f.intrinsic("floor", x.type, x)
    whole = round(f, x)
    lower = f.select(f.fcmp("ogt", whole, x), f.fsub(whole, 1.0), whole)
    return f.copysign(lower, x)


def ceil(f: FunctionText, x: IRValue) -> IRValue:
    """Return the smallest integer not below x."""
    if f.target.has_rounding:
        return f.intrinsic("ceil", x.type, x)
    whole = round(f, x)
    higher = f.select(f.fcmp("olt", whole, x), f.fadd(whole, 1.0), whole)
    return f.copysign(higher, x)


def trunc(f: FunctionText, x: IRValue) -> IRValue:
    """Return x without its fraction."""
    if f.target.has_rounding:
        return f.intrinsic("trunc", x.type, x)
    return f.copysign(floor(f, f.fabs(x)), x)


def round(f: FunctionText, x: IRValue) -> IRValue:
    """Return the nearest integer, the even one of two."""
    if f.target.has_rounding:
        return f.intrinsic("rint", x.type, x)
    # Numbers from 2^mantissa on have no fraction: the sum with it has none, and is rounded.
    anchor = 2.0 ** format_of(x).mantissa
    size = f.fabs(x)
    near = f.fsub(f.fadd(size, anchor), anchor)
    return f.copysign(f.select(f.fcmp("olt", size, anchor), near, x), x)


def sign(f: FunctionText, x: IRValue) -> IRValue:
    """Return -1, 0 or 1, or NaN, as np.sign does."""
    one = f.copysign(1.0, x)
    zero = f.select(f.fcmp("oeq", x, 0.0), f.constant(x.type, 0.0), x)
    return f.select(f.fcmp("one", x, 0.0), one, zero)


def fmod(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    """Return the remainder of a quotient cut towards zero, with the sign of x: exact, as in C."""
    a, b = f.fabs(x), f.fabs(y)
    quotient = f.fdiv(a, b)
    rest = fma(f, f.fneg(trunc(f, quotient)), b, a)
    # A quotient rounded up to an integer makes the rest negative by less than b.
    rest = f.select(f.fcmp("olt", rest, 0.0), f.fadd(rest, b), rest)
    rest = f.select(f.fcmp("oeq", b, inf), a, rest)
    rest = _or_long_division(f, quotient, a, b, rest)
    bad = f.or_(f.fcmp("oeq", a, inf), f.fcmp("oeq", b, 0.0))
    rest = f.select(bad, f.constant(x.type, nan), rest)
    # C's rule for NaN: it goes through, whatever the other operand.
    return f.select(f.fcmp("uno", x, y), f.fadd(x, y), f.copysign(rest, x))


def remainder(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    """Return the remainder of a floored quotient, with the sign of y, as np.remainder does."""
    return _floored(f, y, fmod(f, x, y))


def _floored(f: FunctionText, y: IRValue, rest: IRValue) -> IRValue:
    zero = f.constant(y.type, 0.0)
    differ = f.xor(f.fcmp("olt", y, 0.0), f.fcmp("olt", rest, 0.0))
    shifted = f.select(differ, f.fadd(rest, y), rest)
    return f.select(f.fcmp("oeq", rest, 0.0), f.copysign(zero, y), shifted)


def floor_divide(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    """Return the floored quotient, by np.floor_divide's steps: consistent with `remainder`."""
    rest = fmod(f, x, y)
    quotient = f.fdiv(f.fsub(x, rest), y)
    differ = f.xor(f.fcmp("olt", y, 0.0), f.fcmp("olt", rest, 0.0))
    below = f.and_(differ, f.fcmp("one", rest, 0.0))
    quotient = f.select(below, f.fsub(quotient, 1.0), quotient)
    whole = floor(f, quotient)
    whole = f.select(f.fcmp("ogt", f.fsub(quotient, whole), 0.5), f.fadd(whole, 1.0), whole)
    plain = f.fdiv(x, y)
    whole = f.select(f.fcmp("oeq", quotient, 0.0), f.copysign(0.0, plain), whole)
    return f.select(f.fcmp("oeq", y, 0.0), plain, whole)


def _or_long_division(
    f: FunctionText, q: IRValue, a: IRValue, b: IRValue, rest: IRValue
) -> IRValue:
    """Return `rest`, but the long division's where the quotient has more bits than a mantissa."""
    long = f.fcmp("oge", q, 2.0 ** format_of(a).mantissa)
    long = f.and_(long, f.and_(f.fcmp("olt", a, inf), f.fcmp("ogt", b, 0.0)))
    if not f.has_blocks:
        return f.long_division(long, a, b, rest)
    before, divide, done = f.current, f.label("divide"), f.label("divided")
    f.branch_if(f.any_lane(long), divide, done)
    f.block(divide)
    name = f"weft.fmod.{suffix_of(a.type)}"
    f.adopt(_vector_division(f, name, a.type))
    exact = f.select(long, f.call(name, a.type, a, b), rest)
    f.branch(done)
    f.block(done)
    return f.phi(a.type, (rest, before), (exact, divide))


def _vector_division(parent: FunctionText, name: str, type: str) -> FunctionText:
    """Return a helper that divides lane by lane, out of the hot path, in float64 (exact)."""
    f = FunctionText(
        parent.target, name, [type, type], type, "nounwind cold noinline", linkage="internal"
    )
    a, b = f.parameters
    scalar = _scalar_division(parent)
    f.adopt(scalar)
    result = a
    for lane in range(lanes_of(type)):
        operands = [f.float_cast(f.extract(x, lane), "double") for x in (a, b)]
        rest = f.float_cast(f.call(scalar.name, "double", *operands), scalar_of(type))
        result = f.insert(result, rest, lane) if lanes_of(type) > 1 else rest
    f.ret(result)
    return f


def _scalar_division(parent: FunctionText) -> FunctionText:
    """Return fmod of finite positive doubles as long division of their integers by 2^11 digits."""
    f = FunctionText(
        parent.target,
        "weft.fmod.digits",
        ["double", "double"],
        "double",
        "nounwind cold noinline",
        linkage="internal",
    )
    a, b = f.parameters
    (ea, ma), (eb, mb) = _integer_parts(f, a), _integer_parts(f, b)
    mb = f.select(f.icmp("eq", mb, 0), 1, mb)  # lanes whose result is not wanted must not trap
    first = f.urem(ma, mb)
    with f.loop(0, f.sub(ea, eb), _DIGITS, carry=[first]) as i:
        left = f.sub(f.sub(ea, eb), i)
        shift = f.select(f.icmp("slt", left, _DIGITS), left, _DIGITS)
        i.next(f.urem(f.shl(i.carried[0], shift), mb))
    (rest,) = i.results
    f.ret(_times_power(f, f.uitofp(rest, "double"), eb))
    return f


def _integer_parts(f: FunctionText, x: IRValue) -> tuple[IRValue, IRValue]:
    """Return (e, m): x = m 2^(e - 1074) with an integer m; subnormal numbers have e = 0."""
    bits = f.as_integer(x)
    field = f.lshr(bits, DOUBLE.mantissa)
    mantissa = f.and_(bits, (1 << DOUBLE.mantissa) - 1)
    normal = f.icmp("ne", field, 0)
    whole = f.select(normal, f.or_(mantissa, 1 << DOUBLE.mantissa), mantissa)
    return f.select(normal, f.sub(field, 1), 0), whole


def _times_power(f: FunctionText, x: IRValue, e: IRValue) -> IRValue:
    """Return x 2^(e - 1074), exactly representable, in two exact steps."""
    power = f.as_float(f.shl(f.add(e, 1), DOUBLE.mantissa))
    return f.fmul(f.fmul(x, 2.0**-52), power)
