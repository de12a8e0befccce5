"""Functions that kernels call: what is too long, or too seldom needed, to be written in place."""

from __future__ import annotations

from ...core.rng import KEY_STEPS, MULTIPLIERS, ROUNDS
from ..cpu.codegen.mathematics.coefficients import TWO_OVER_PI

# The layouts of floats: bits of a mantissa, the exponent's bias.
_FORMATS = {"f32": (32, 23, 127), "f64": (64, 52, 1023)}
_DIGITS = 11  # how many bits a 53-bit remainder can be shifted up within 64


def philox() -> dict[str, str]:
    """Return the function that gives a word of the random generator's block (core/rng.py)."""
    first, second = (f"(u64){factor:#x}" for factor in MULTIPLIERS)
    lines = [
        "FUNCTION u64 weft_philox(u64 k0, u64 k1, u64 counter, i64 word) {",
        "  u64 c0 = counter, c1 = 0, c2 = 0, c3 = 0;",
        f"  for (i32 round = 0; round < {ROUNDS}; ++round) {{",
        f"    const u64 high0 = UPPER(c0, {first}), low0 = c0 * {first};",
        f"    const u64 high1 = UPPER(c2, {second}), low1 = c2 * {second};",
        "    c0 = high1 ^ c1 ^ k0; c1 = low1;",
        "    c2 = high0 ^ c3 ^ k1; c3 = low0;",
        f"    k0 += (u64){KEY_STEPS[0]:#x}; k1 += (u64){KEY_STEPS[1]:#x};",
        "  }",
        "  return word == 0 ? c0 : word == 1 ? c1 : word == 2 ? c2 : c3;",
        "}",
    ]
    return {"weft_philox": "\n".join(lines)}


def long_division(type: str) -> dict[str, str]:
    """Return fmod of finite positive numbers, as a long division of their integers."""
    bits, mantissa, _ = _FORMATS[type]
    unit = 1 << mantissa
    name = f"weft_rest_{type}"
    lines = [
        f"FUNCTION {type} {name}({type} a, {type} b) {{",
        f"  const u64 x = BITS{bits}(a), y = BITS{bits}(b);",
        f"  const u64 fx = x >> {mantissa}, fy = y >> {mantissa};",
        f"  const u64 mx = (x & (u64){unit - 1:#x}) | (fx ? (u64){unit:#x} : 0);",
        f"  u64 my = (y & (u64){unit - 1:#x}) | (fy ? (u64){unit:#x} : 0);",
        "  my = my ? my : 1;",
        "  const i64 ex = fx ? (i64)fx - 1 : 0, ey = fy ? (i64)fy - 1 : 0;",
        "  u64 rest = mx % my;",
        "  for (i64 left = ex - ey; left > 0;) {",
        f"    const i64 shift = left < {_DIGITS} ? left : {_DIGITS};",
        "    rest = (rest << shift) % my;",
        "    left -= shift;",
        "  }",
        f"  const {type} power = F{bits}((u{bits})(ey + 1) << {mantissa});",
        f"  return ({type})rest * ({type})F{bits}({_power_of_two(type, -mantissa):#x}) * power;",
        "}",
    ]
    return {name: "\n".join(lines)}


def huge_angle(type: str) -> dict[str, str]:
    """Return the reduction of huge angles modulo pi/2 (see mathematics/huge_angle.py)."""
    words = ", ".join(f"{word:#x}" for word in (w & (2**64 - 1) for w in TWO_OVER_PI))
    table = f"CONSTANT u64 weft_two_over_pi[{len(TWO_OVER_PI)}] = {{{words}}};"
    bits, mantissa, bias = _FORMATS[type]
    name, last = f"weft_angle_{type}", 64 * (len(TWO_OVER_PI) - 4)
    unit, lift, more = 1 << mantissa, 52 - mantissa, 1023 - bias
    low = f" + ({type})flo * {_spelled(type, -128)}" if type == "f64" else ""
    lines = [
        f"FUNCTION u64 {name}({type} x, {type} *r) {{",
        f"  const u64 all = BITS{bits}(x);",
        f"  const i64 field = (i64)((all >> {mantissa}) & {2 * bias + 1}) + {more};",
        f"  const u64 m = ((all & (u64){unit - 1:#x}) | (u64){unit:#x}) << {lift};",
        f"  i64 first = field - {1023 + 52 - 62};",
        f"  first = first >= 0 && first < {last} ? first : 0;",
        "  const i64 word = first >> 6, shift = first & 63;",
        "  u64 w[3];",
        "  for (i32 k = 0; k < 3; ++k) {",
        "    const u64 a = weft_two_over_pi[word + k], b = weft_two_over_pi[word + k + 1];",
        "    w[k] = shift ? (a << shift) | (b >> (64 - shift)) : a;",
        "  }",
        "  const u64 lo = m * w[1] + UPPER(m, w[2]);",
        "  const u64 hi = m * w[0] + UPPER(m, w[1]) + (lo < m * w[1]);",
        "  const u64 n = (hi + ((u64)1 << 61)) >> 62;",
        "  u64 fhi = (hi << 2) | (lo >> 62), flo = lo << 2;",
        "  const i32 below = (i32)(fhi >> 63), negative = (i32)(all >> " + f"{bits - 1});",
        "  if (below) { flo = ~flo + 1; fhi = ~fhi + (flo == 0); }",
        f"  {type} y = (({type})fhi * {_spelled(type, -64)}{low}) * {_half_pi(type)};",
        "  y = below ? -y : y;",
        "  *r = negative ? -y : y;",
        "  return negative ? ~n + 1 : n;",
        "}",
    ]
    return {"weft_two_over_pi": table, name: "\n".join(lines)}


def _power_of_two(type: str, exponent: int) -> int:
    _, mantissa, bias = _FORMATS[type]
    return (exponent + bias) << mantissa


def _spelled(type: str, exponent: int) -> str:
    bits = _FORMATS[type][0]
    if exponent + _FORMATS[type][2] <= 0:
        raise ValueError(f"{type} has no 2^{exponent} of full precision")
    return f"F{bits}({_power_of_two(type, exponent):#x})"


def _half_pi(type: str) -> str:
    return "1.5707963267948966f" if type == "f32" else "1.5707963267948966"
