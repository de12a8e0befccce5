"""Reduce huge angles modulo pi/2 (Payne and Hanek 1983).

x = m 2^e with a 53-bit integer m. Of 2/pi only the bits that matter are used: those worth less
than 4 / 2^e, since the others contribute whole turns, and 192 of them, since x may come as near as
2^-61 to a multiple of pi/2. Their product with m, modulo 2^192, is x 2/pi modulo 4 in fixed point.
"""

from __future__ import annotations

from itertools import pairwise
from math import nan

from ..text import FunctionText, table_text
from ..values import IRValue, lanes_of, scalar_of
from .coefficients import TWO_OVER_PI
from .formats import DOUBLE, format_of

_COLD = "nounwind cold noinline"
_SCALAR = "weft.reduce.scalar"
_TABLE = "weft.two_over_pi"
_HALF_PI = 1.5707963267948966


def vector_reduction(parent: FunctionText, name: str, type: str) -> FunctionText:
    """Return a helper from x to {r, n}, x = n pi/2 + r modulo 2 pi, for each lane."""
    integers = type.replace(scalar_of(type), f"i{format_of(IRValue('', type)).width}")
    pair = f"{{ {type}, {integers} }}"
    f = FunctionText(parent.target, name, [type], pair, _COLD, linkage="internal")
    f.adopt(_scalar_reduction(parent))
    rs, quadrants = IRValue("poison", type), IRValue("poison", integers)
    for lane in range(lanes_of(type)):
        x = f.float_cast(f.extract(f.parameters[0], lane), "double")
        both = f.call(_SCALAR, "{ double, i64 }", x)
        r = f.float_cast(f.define("double", f"extractvalue {both.typed}, 0"), scalar_of(type))
        n = f.integer_cast(f.define("i64", f"extractvalue {both.typed}, 1"), scalar_of(integers))
        single = lanes_of(type) == 1
        rs = r if single else f.insert(rs, r, lane)
        quadrants = n if single else f.insert(quadrants, n, lane)
    half = f.define(pair, f"insertvalue {pair} poison, {rs.typed}, 0")
    f.ret(f.define(pair, f"insertvalue {half.typed}, {quadrants.typed}, 1"))
    return f


def _scalar_reduction(parent: FunctionText) -> FunctionText:
    pair = "{ double, i64 }"
    f = FunctionText(parent.target, _SCALAR, ["double"], pair, _COLD, linkage="internal")
    f.helpers[_TABLE] = table_text(_TABLE, "i64", TWO_OVER_PI)
    (x,) = f.parameters
    quadrant, fraction = _fixed_point(f, x)
    negative = f.icmp("slt", f.as_integer(x), 0)
    size = _signed_fraction(f, fraction)
    r = f.fmul(size, _HALF_PI)
    r = f.select(negative, f.fneg(r), r)
    n = f.select(negative, f.sub(0, quadrant), quadrant)
    r = f.select(f.fcmp("one", f.fabs(x), float("inf")), r, f.constant("double", nan))
    half = f.define(pair, f"insertvalue {pair} poison, {r.typed}, 0")
    f.ret(f.define(pair, f"insertvalue {half.typed}, {n.typed}, 1"))
    return f


def _fixed_point(f: FunctionText, x: IRValue) -> tuple[IRValue, IRValue]:
    """Return |x| 2/pi modulo 4: the nearest integer, and the rest in units of 2^-128 (signed)."""
    bits = f.as_integer(x)
    field = f.and_(f.lshr(bits, DOUBLE.mantissa), 2 * DOUBLE.bias + 1)
    m = f.or_(f.and_(bits, (1 << DOUBLE.mantissa) - 1), 1 << DOUBLE.mantissa)
    # Bit i of the table is worth 2^(63 - i), x is m 2^(field - 1075): the first bit that matters
    # is worth 2^(1 - e). Lanes that are not huge (or not finite) read anywhere within the table.
    first = f.sub(field, DOUBLE.bias + DOUBLE.mantissa - 62)
    last = 64 * (len(TWO_OVER_PI) - 4)
    first = f.select(f.icmp("ult", first, last), first, 0)
    high, middle, low = _window(f, first)
    wide = f.zext(m, "i128")
    lower = f.add(f.mul(wide, middle), f.lshr(f.mul(wide, low), 64))
    total = f.add(f.shl(f.mul(wide, high), 64), lower)
    rounded = f.add(total, 1 << 125)
    return f.trunc(f.lshr(rounded, 126), "i64"), f.shl(total, 2)


def _window(f: FunctionText, first: IRValue) -> tuple[IRValue, IRValue, IRValue]:
    """Return 192 bits of 2/pi from a bit on, as three words in i128."""
    table = IRValue(f"@{_TABLE}", "ptr")
    word, shift = f.lshr(first, 6), f.and_(first, 63)
    words = [f.load("i64", f.gep(table, f.add(word, k), "i64")) for k in range(4)]
    shifted = [f.intrinsic("fshl", "i64", a, b, shift) for a, b in pairwise(words)]
    high, middle, low = (f.zext(w, "i128") for w in shifted)
    return high, middle, low


def _signed_fraction(f: FunctionText, fraction: IRValue) -> IRValue:
    """Return a signed 128-bit fraction as a double, accurate however many leading bits are 0."""
    negative = f.icmp("slt", fraction, 0)
    size = f.select(negative, f.sub(0, fraction), fraction)
    high = f.uitofp(f.trunc(f.lshr(size, 64), "i64"), "double")
    low = f.uitofp(f.trunc(size, "i64"), "double")
    y = f.fadd(f.fmul(high, 2.0**-64), f.fmul(low, 2.0**-128))
    return f.select(negative, f.fneg(y), y)
