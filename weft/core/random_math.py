"""Elementary functions for random variates, the same bits on every machine.

``np.log`` and its kin differ between builds and between SIMD widths. These use only operations that
IEEE 754 rounds exactly (+ - * / sqrt, rounding to integer, conversions) and integer operations, in
a fixed order, so that a compiled kernel which repeats them without contracting a multiplication and
an addition into an FMA reproduces every bit.

``exact_log``, ``exact_exp`` and ``normal_magnitude`` take float32 or float64 arrays as documented
and return arrays of the same dtype; the error of the first two is below one unit in the last place.
"""

import math
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .normal_quantile import PPND7, PPND16, Coefficients, QuantileTable, Rational

__all__ = [
    "exact_exp",
    "exact_log",
    "log_of_normal",
    "normal_cdf",
    "normal_magnitude",
    "normal_quantile",
    "polynomial",
]

Array: TypeAlias = NDArray[Any]


class _LogTable(NamedTuple):
    """Constants of the logarithm for one binary format."""

    integer: Any
    mantissa_bits: int
    sqrt_half_bits: int
    ln2_high: float  # few enough bits that a product with any exponent is exact
    ln2_low: float
    series: Coefficients


# ``series`` interpolates 2/3 + 2/5 z + 2/7 z**2 + ..., the tail of 2 artanh(s) = 2s + s z (series)
# with z = s**2, at Chebyshev nodes of [0, ((sqrt 2 - 1) / (sqrt 2 + 1))**2].
LOG_TABLES: Final = {
    np.dtype(np.float64): _LogTable(
        integer=np.int64,
        mantissa_bits=52,
        sqrt_half_bits=0x3FE6A09E667F3BCD,
        ln2_high=float.fromhex("0x1.62e42fefa3p-1"),
        ln2_low=float.fromhex("0x1.3de6af278ece6p-42"),
        series=(
            0.666666666666667,
            0.39999999999899444,
            0.2857142862600327,
            0.22222211130259878,
            0.18182889455674947,
            0.15331710618210773,
            0.14616585424888623,
        ),
    ),
    np.dtype(np.float32): _LogTable(
        integer=np.int32,
        mantissa_bits=23,
        sqrt_half_bits=0x3F3504F3,
        ln2_high=float.fromhex("0x1.62e4p-1"),
        ln2_low=float.fromhex("0x1.7f7d1cp-20"),
        series=(0.6666666655445165, 0.40000121876972, 0.2855081659971155, 0.23330581938241896),
    ),
}

# Interpolates (e**r - 1 - r) / r**2 at Chebyshev nodes of |r| <= ln(2) / 2.
_EXP_SERIES: Final = (
    0.5,
    0.1666666666666667,
    0.04166666666666667,
    0.008333333333326136,
    0.0013888888888883748,
    0.00019841269874820627,
    2.4801587325547743e-05,
    2.7557255400206422e-06,
    2.75572736431103e-07,
    2.5105217004720745e-08,
    2.0914686968086876e-09,
)
_EXP_RANGE: Final = (-746.0, 710.0)  # beyond it e**x is 0 or inf in float64


QUANTILE_TABLES: Final = {np.dtype(np.float64): PPND16, np.dtype(np.float32): PPND7}


def _quotient(x: Array, rational: Rational) -> Array:
    quotient = polynomial(x, rational.numerator)
    quotient /= polynomial(x, rational.denominator)
    return quotient


def polynomial(x: Array, coefficients: Coefficients) -> Array:
    """Evaluate a polynomial (lowest power first, at least two terms) by Horner's rule."""
    last, *others, first = _operands(coefficients[::-1], x.dtype)
    total: Array = x * last
    for coefficient in others:
        total += coefficient
        total *= x
    total += first
    return total


@cache
def _operands(coefficients: Coefficients, dtype: np.dtype[Any]) -> list[Array]:
    """Return 0-d arrays, which NumPy takes in half the time that Python floats need."""
    return [np.array(coefficient, dtype) for coefficient in coefficients]


def exact_log(x: ArrayLike) -> Array:
    """Return the natural logarithm, special values as IEEE 754; in float64 unless x is float32."""
    x = np.asarray(x)
    if x.dtype not in LOG_TABLES:
        x = x.astype(np.float64)
    flat = x.reshape(-1)
    tiny = np.finfo(x.dtype).tiny
    if flat.size == 0 or (flat.min() >= tiny and flat.max() < np.inf):
        return log_of_normal(flat).reshape(x.shape)
    ordinary = (flat > 0) & (flat < np.inf)
    subnormal = ordinary & (flat < tiny)
    scaled = np.where(ordinary, flat, x.dtype.type(1))
    scaled[subnormal] *= 2.0**54
    y = log_of_normal(scaled, subnormal * 54)
    y[flat == 0] = -np.inf
    y[flat == np.inf] = np.inf
    y[(flat < 0) | np.isnan(flat)] = np.nan
    return y.reshape(x.shape)


def log_of_normal(x: Array, exponent_shift: Array | int = 0) -> Array:
    """Return ``log(x * 2**-exponent_shift)`` for positive, finite, not subnormal ``x``.

    With ``x = 2**k (1 + f)``, ``1 + f`` in [sqrt 1/2, sqrt 2) and ``s = f / (2 + f)``,
    ``log(1 + f) = 2 artanh(s) = f - f**2/2 + s (f**2/2 + R(s**2))``: the leading term is exact, so
    rounding errors enter only through the small rest.
    """
    table = LOG_TABLES[x.dtype]
    bits = x.view(table.integer)
    exponent = (bits - table.integer(table.sqrt_half_bits)) >> table.mantissa_bits
    f = (bits - (exponent << table.mantissa_bits)).view(x.dtype)
    f -= 1.0
    k = (exponent - exponent_shift).astype(x.dtype)
    y: Array = k * table.ln2_high - (_log1p_correction(f, k, table) - f)
    return y


def _log1p_correction(f: Array, k: Array, table: _LogTable) -> Array:
    """Return ``f - log(1 + f) - k * ln2_low``."""
    s = f / (f + 2.0)
    z = s * s
    rest = polynomial(z, table.series)
    rest *= z
    half_square = 0.5 * f
    half_square *= f
    rest += half_square
    rest *= s
    rest += k * table.ln2_low
    half_square -= rest
    return half_square


def exact_exp(x: ArrayLike) -> NDArray[np.float64]:
    """Return e**x in float64, with 0 and inf beyond the range and NaN for NaN."""
    x = np.asarray(x, np.float64)
    flat = x.reshape(-1)
    nan = np.isnan(flat)
    bounded = np.clip(np.where(nan, 0.0, flat), *_EXP_RANGE)
    table = LOG_TABLES[np.dtype(np.float64)]
    k = np.rint(bounded * (1.0 / math.log(2.0)))
    r = (bounded - k * table.ln2_high) - k * table.ln2_low
    y = polynomial(r, _EXP_SERIES)
    y *= r
    y *= r
    y += r
    y += 1.0
    y = _scaled_by_power(y, k.astype(np.int64))
    y[nan] = np.nan
    return y.reshape(x.shape)


def _scaled_by_power(y: Array, k: NDArray[np.int64]) -> Array:
    """Return ``y * 2**k``; in two factors, as 2**k alone may leave the range of float64."""
    half = k >> 1
    with np.errstate(over="ignore", under="ignore"):
        for part in (half, k - half):
            y = y * ((part + 1023) << 52).view(np.float64)
    return y


def normal_quantile(p: Array) -> Array:
    """Return z with Phi(z) = p for float64 ``p`` strictly between 0 and 1."""
    q = p - 0.5
    return np.copysign(normal_magnitude(np.abs(q), np.minimum(p, 1.0 - p)), q)


def normal_magnitude(centred: Array, tail: Array) -> Array:
    """Return |z| for p given twice, as ``centred`` = |p - 1/2| and ``tail`` = min(p, 1 - p).

    Both are asked for because each is precise where the other is not. 1-D float32 or float64;
    ``tail`` must be a positive normal number. Relative error about 1e-7 and 1e-15.
    """
    table = QUANTILE_TABLES[centred.dtype]
    z = _quotient(0.180625 - centred * centred, table.centre)
    z *= centred
    outer = np.flatnonzero(centred > 0.425)
    if outer.size:
        z[outer] = _tail_magnitude(tail[outer], table)
    return z


def _tail_magnitude(tail: Array, table: QuantileTable) -> Array:
    r = np.sqrt(-log_of_normal(tail))
    z = _quotient(r - 1.6, table.tail)
    far = np.flatnonzero(r > 5.0)
    if far.size:
        z[far] = _quotient(r[far] - 5.0, table.far_tail)
    return z


def normal_cdf(x: float) -> float:
    """Return Phi(x) of one float; the lower tail keeps its relative precision until underflow."""
    if math.isnan(x):
        return x
    if x > 0:
        return 1.0 - normal_cdf(-x)
    if x < -39.0:  # below half the smallest subnormal
        return 0.0
    return _density(x) * (_mills_ratio(-x) if x < -2.5 else _central_area_ratio(x))


def _density(x: float) -> float:
    """Return the normal density, squaring ``x`` in two exact parts as Cody (1969) does."""
    coarse = math.trunc(x * 16.0) / 16.0
    rest = (x - coarse) * (x + coarse)
    exponentials = exact_exp([-0.5 * coarse * coarse, -0.5 * rest])
    return float(exponentials[0] * exponentials[1]) / math.sqrt(2.0 * math.pi)


def _mills_ratio(x: float) -> float:
    """Return (1 - Phi(x)) / density(x) for x >= 2.5 by Laplace's continued fraction."""
    value = x
    for k in range(200, 0, -1):
        value = x + k / value
    return 1.0 / value


def _central_area_ratio(x: float) -> float:
    """Return Phi(x) / density(x) for -2.5 <= x <= 0.

    By Phi = 1/2 + density * (x + x**3/3 + x**5/(3*5) + ...): Marsaglia, "Evaluating the normal
    distribution", J. Stat. Software 11 (2004).
    """
    term = total = x
    k = 1
    while abs(term) > 1e-18:
        k += 2
        term *= x * x / k
        total += term
    return 0.5 / _density(x) + total
