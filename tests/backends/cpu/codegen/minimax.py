"""Derive the coefficients of weft/backends/cpu/codegen/mathematics/coefficients.py.

Run as a script to print the tables. Each polynomial minimises the largest weighted error over its
interval (Remez's exchange algorithm on a dense grid, in decimals of 60 digits), and is then rounded
to the precision it is used in.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, getcontext

D = Decimal
getcontext().prec = 60
_TINY = D(10) ** -58

Function = Callable[[D], D]


def remez(g: Function, weight: Function, low: D, high: D, count: int) -> tuple[list[D], D]:
    """Return `count` coefficients and the largest |weight * (polynomial - g)| on [low, high]."""
    points = _chebyshev(low, high, 24 * (count + 1))
    values = [(x, g(x), weight(x)) for x in points]
    chosen = [round(k * (len(points) - 1) / count) for k in range(count + 1)]
    coefficients: list[D] = []
    for _ in range(40):
        coefficients, level = _solve_alternation([values[k] for k in chosen])
        errors = [w * (evaluate(coefficients, x) - y) for x, y, w in values]
        worst = max(abs(e) for e in errors)
        if worst <= abs(level) * D("1.0001"):
            break
        chosen = _exchange(errors, count + 1)
    return coefficients, worst


def evaluate(coefficients: list[D], x: D) -> D:
    total = D(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def _chebyshev(low: D, high: D, count: int) -> list[D]:
    """Return Chebyshev's points, which crowd at the ends where minimax errors peak."""
    centre, half = (low + high) / 2, (high - low) / 2
    return [centre - half * D(math.cos(math.pi * (k + 0.5) / count)) for k in range(count)]


def _solve_alternation(points: list[tuple[D, D, D]]) -> tuple[list[D], D]:
    """Find the polynomial whose weighted errors at the points are equal with alternating signs."""
    rows = []
    for k, (x, y, w) in enumerate(points):
        powers = [x**j for j in range(len(points) - 1)]
        rows.append([*powers, (-1) ** k / w, y])
    *coefficients, level = _solve(rows)
    return coefficients, level


def _solve(rows: list[list[D]]) -> list[D]:
    n = len(rows)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    answer = [D(0)] * n
    for k in reversed(range(n)):
        known = sum((rows[k][j] * answer[j] for j in range(k + 1, n)), D(0))
        answer[k] = (rows[k][n] - known) / rows[k][k]
    return answer


def _exchange(errors: list[D], count: int) -> list[int]:
    """Pick one extremum of each run of equal signs, then drop the least until `count` remain."""
    peaks: list[int] = []
    for k, e in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[peaks[-1]]):
                peaks[-1] = k
        else:
            peaks.append(k)
    while len(peaks) > count:
        # Alternation survives only if an end goes, or two neighbours together.
        if len(peaks) == count + 1:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        else:
            least = min(range(len(peaks)), key=lambda i: abs(errors[peaks[i]]))
            del peaks[max(0, least - 1) : max(0, least - 1) + 2]
    return peaks


# Functions in decimals. Decimal offers exp and ln; the others are summed here.


def series(first: D, ratio: Callable[[int], D]) -> D:
    """Sum first * (1 + ratio(1) + ratio(1) ratio(2) + ...)."""
    total, term, k = first, first, 1
    while abs(term) > _TINY * abs(total) and k < 2000:
        term *= ratio(k)
        total += term
        k += 1
    return total


def sin(x: D) -> D:
    return series(x, lambda k: -x * x / (2 * k * (2 * k + 1)))


def cos(x: D) -> D:
    return series(D(1), lambda k: -x * x / (2 * k * (2 * k - 1)))


def sinh(x: D) -> D:
    return series(x, lambda k: x * x / (2 * k * (2 * k + 1)))


def cosh(x: D) -> D:
    return series(D(1), lambda k: x * x / (2 * k * (2 * k - 1)))


def atanh(x: D) -> D:
    return ((1 + x) / (1 - x)).ln() / 2


def atan(x: D) -> D:
    """Use Euler's series, which converges for every x."""
    y = x * x / (1 + x * x)
    return series(x / (1 + x * x), lambda k: y * 2 * k / (2 * k + 1))


def asin(x: D) -> D:
    return atan(x / (1 - x * x).sqrt())


PI = 4 * (4 * atan(D(1) / 5) - atan(D(1) / 239))


def erf(x: D) -> D:
    """Use the series with positive terms only, so that nothing cancels."""
    total = series(x, lambda k: 2 * x * x / (2 * k + 1))
    return 2 / PI.sqrt() * (-x * x).exp() * total


def erfcx(x: D) -> D:
    """Return exp(x^2) erfc(x): by erf at first, then by Laplace's continued fraction."""
    if x < 4:
        return (x * x).exp() * (1 - erf(x))
    tail = x
    for k in range(600, 0, -1):
        tail = x + D(k) / 2 / tail
    return 1 / (tail * PI.sqrt())


def erfc(x: D) -> D:
    return (-x * x).exp() * erfcx(x)


def one(_: D) -> D:
    return D(1)


@dataclass(frozen=True)
class Fit:
    """One table: what is fitted, on which interval, with how many coefficients per precision."""

    name: str
    what: str
    g: Function
    weight: Function
    low: D
    high: D
    counts: dict[str, int]


HALF_LN2 = D(2).ln() / 2 * D("1.003")  # the reduced argument may pass the half by a rounding
QUARTER_PI = PI / 4 * D("1.003")
ATANH_END = ((D(2).sqrt() - 1) / (D(2).sqrt() + 1)) ** 2 * D("1.003")
ATAN_END = (D(2).sqrt() - 1) ** 2 * D("1.003")
LOG_LOW, LOG_HIGH = D("0.5").sqrt() - 1, D(2).sqrt() - 1
ZERO = D("1e-20")


def _root(f: Callable[[D, D], D]) -> Function:
    return lambda z: f(z.sqrt(), z)


FITS = [
    Fit(
        "EXP",
        "(exp(r) - 1 - r) / r^2, |r| <= ln(2) / 2",
        lambda r: (r.exp() - 1 - r) / (r * r),
        lambda r: r * r / r.exp(),
        -HALF_LN2,
        HALF_LN2,
        {"float": 5, "double": 10, "double for float": 7},
    ),
    Fit(
        "LOG1P",
        "(log(1 + f) - f + f^2 / 2) / f^3, sqrt(1/2) <= 1 + f <= sqrt(2)",
        lambda f: ((1 + f).ln() - f + f * f / 2) / f**3,
        lambda f: abs(f**3 / (1 + f).ln()),
        LOG_LOW * D("1.0001"),
        LOG_HIGH * D("1.0001"),
        {"float": 8},
    ),
    Fit(
        "ATANH",
        "(2 atanh(s) - 2 s) / s^3 of z = s^2, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1)",
        _root(lambda s, z: (2 * atanh(s) - 2 * s) / (s * z)),
        lambda z: z,
        ZERO,
        ATANH_END,
        {"double": 7, "double for float": 5},
    ),
    Fit(
        "ATANH_TAIL",
        "(2 atanh(s) - 2 s - 2/3 s^3) / s^5 of z = s^2, the same interval",
        _root(lambda s, z: (2 * atanh(s) - 2 * s - 2 * s * z / 3) / (s * z * z)),
        lambda z: z * z,
        ZERO,
        ATANH_END,
        {"double": 8},
    ),
    Fit(
        "SINH",
        "(sinh(r) - r) / r^3 of z = r^2, |r| <= ln(2) / 2",
        _root(lambda r, z: (sinh(r) - r) / (r * z)),
        lambda z: z,
        ZERO,
        HALF_LN2**2,
        {"float": 3, "double": 5},
    ),
    Fit(
        "COSH",
        "(cosh(r) - 1) / r^2 of z = r^2, |r| <= ln(2) / 2",
        _root(lambda r, z: (cosh(r) - 1) / z),
        lambda z: z,
        ZERO,
        HALF_LN2**2,
        {"float": 3, "double": 6},
    ),
    Fit(
        "TANH",
        "(tanh(x) - x) / x^3 of z = x^2, |x| <= 0.55",
        _root(lambda x, z: (sinh(x) / cosh(x) - x) / (x * z)),
        lambda z: z,
        ZERO,
        D("0.3026"),
        {"float": 5},
    ),
    Fit(
        "SIN",
        "(sin(r) - r) / r^3 of z = r^2, |r| <= pi / 4",
        _root(lambda r, z: (sin(r) - r) / (r * z)),
        lambda z: z,
        ZERO,
        QUARTER_PI**2,
        {"float": 3, "double": 6},
    ),
    Fit(
        "COS",
        "(cos(r) - 1 + r^2 / 2) / r^4 of z = r^2, |r| <= pi / 4",
        _root(lambda r, z: (cos(r) - 1 + z / 2) / (z * z)),
        lambda z: z * z,
        ZERO,
        QUARTER_PI**2,
        {"float": 3, "double": 6},
    ),
    Fit(
        "ATAN",
        "(atan(t) - t) / t^3 of z = t^2, |t| <= tan(pi / 8)",
        _root(lambda t, z: (atan(t) - t) / (t * z)),
        lambda z: z,
        ZERO,
        ATAN_END,
        {"float": 5, "double": 11},
    ),
    Fit(
        "ASIN",
        "(asin(t) - t) / t^3 of z = t^2, |t| <= 1/2",
        _root(lambda t, z: (asin(t) - t) / (t * z)),
        lambda z: z,
        ZERO,
        D("0.2501"),
        {"float": 5, "double": 12},
    ),
    Fit(
        "ERF",
        "erf(x) / x - 1 of z = x^2, |x| <= 1",
        _root(lambda x, z: erf(x) / x - 1),
        one,
        ZERO,
        D(1),
        {"float": 6, "double": 13},
    ),
    Fit(
        "ERFC_ROOT",
        "(erfc(x)^(1/4) - 257/256) / x, 1 <= x <= 3.94; the best constant term is close to 257/256",
        lambda x: ((erfc(x).ln() / 4).exp() - D(257) / 256) / x,
        lambda x: 4 * x * (erfc(x).ln() * D("0.75")).exp(),
        D(1),
        D("3.94"),
        {"float": 7},
    ),
    Fit(
        "ERFCX",
        "(1 + 2 x) exp(x^2) erfc(x) of t = (x - 4) / (x + 4), 0 <= x",
        lambda t: (1 + 8 * (1 + t) / (1 - t)) * erfcx(4 * (1 + t) / (1 - t)),
        one,
        D(-1),
        D("0.76"),
        {"float": 13, "double": 23},
    ),
]


def pieces(x: D, widths: list[int]) -> list[float]:
    """Split a number into parts of so many bits, whose sum is the number to all those bits."""
    parts = []
    for width in widths:
        exponent = math.frexp(float(x))[1]
        unit = D(2) ** (exponent - width)
        part = (x / unit).to_integral_value() * unit
        parts.append(float(part))
        x -= part
    return parts


# With few enough bits, a part times a small integer is exact even without fused multiply-add.
SPLITS = {
    "LN2": (D(2).ln(), {"float": [10, 24], "double": [33, 53]}),
    "LOG10_2": (D(2).log10(), {"float": [10, 24], "double": [33, 53]}),
    "LOG2_E": (1 / D(2).ln(), {"float": [24, 24], "double": [53, 53]}),
    "LOG10_E": (1 / D(10).ln(), {"float": [24, 24], "double": [53, 53]}),
    "PI": (PI, {"float": [24, 24], "double": [53, 53]}),
    "HALF_PI": (PI / 2, {"float": [11, 11, 11, 24], "double": [33, 33, 33, 53]}),
    "HALF_PI_FUSED": (PI / 2, {"float": [24, 24, 24], "double": [53, 53, 53]}),
    "TWO_THIRDS": (D(2) / 3, {"double": [53, 53]}),
}

TWO_OVER_PI_WORDS = 21


def two_over_pi() -> list[int]:
    """Return 2 / pi as a fraction of 64-bit words, after a word of zeros."""
    bits = 64 * (TWO_OVER_PI_WORDS - 1)
    getcontext().prec = 420
    value = int(2 / (4 * (4 * atan_long(5) - atan_long(239))) * D(2) ** bits)
    getcontext().prec = 60
    words = [value >> (bits - 64 * k) & (2**64 - 1) for k in range(1, TWO_OVER_PI_WORDS)]
    return [0, *words]


def atan_long(n: int) -> D:
    """Return atan(1 / n) to the precision of the context."""
    total, power, k = D(0), D(1) / n, 0
    while power > D(10) ** -getcontext().prec:
        total += (-1) ** k * power / (2 * k + 1)
        power /= n * n
        k += 1
    return total


HEADER = '''"""Numbers of the vector mathematics: coefficients of polynomials, constants in parts.

Made by tests/backends/cpu/codegen/minimax.py, which documents the method; do not edit by hand.
Polynomials are minimax fits, lowest order first, by the precision they are evaluated in; the
comment gives the largest weighted error. Constants are sums of parts, largest first.
"""

from __future__ import annotations

Table = dict[str, tuple[float, ...]]
'''


def tables() -> str:
    """Return the text of the module of coefficients."""
    lines = [HEADER]
    for fit in FITS:
        lines.append(f"# {fit.what}")
        lines.append(f"{fit.name}: Table = {{")
        for precision, count in fit.counts.items():
            coefficients, error = remez(fit.g, fit.weight, fit.low, fit.high, count)
            lines.append(f"    # error 2^{math.log2(error):.1f}")
            lines.append(f"    {precision!r}: {tuple(float(c) for c in coefficients)},")
        lines.append("}\n")
    lines.append("# Constants in parts, of fewer bits where products with integers must be exact")
    for name, (value, widths) in SPLITS.items():
        parts = {precision: tuple(pieces(value, bits)) for precision, bits in widths.items()}
        lines.append(f"{name}: Table = {parts}")
    lines.append("\n# 2 / pi in words of 64 bits, the first being the bits before the point")
    words = ", ".join(f"0x{word:016X}" for word in two_over_pi())
    lines.append(f"TWO_OVER_PI = ({words})")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(tables(), end="")
