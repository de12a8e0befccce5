"""The formulas of random numbers, each written once: for machine code and for arrays.

They take a builder of scalar code and the random bits of an element. ``np.log`` and its kin differ
between builds and between SIMD widths; these use only operations that IEEE 754 rounds exactly
(+ - * / sqrt, conversions) and integer operations, in a fixed order, and no multiplication is
contracted with an addition: the same bits on every machine, in every mode.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from ..dtype import float32, float64
from ..normal_quantile import PPND7, PPND16, Coefficients, Rational

SMALLEST_NORMAL: Final = 2.0**-1022
BELOW_ONE: Final = 1.0 - 2.0**-53


class LogConstants(NamedTuple):
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
    np.dtype(np.float64): LogConstants(
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
    np.dtype(np.float32): LogConstants(
        integer=np.int32,
        mantissa_bits=23,
        sqrt_half_bits=0x3F3504F3,
        ln2_high=float.fromhex("0x1.62e4p-1"),
        ln2_low=float.fromhex("0x1.7f7d1cp-20"),
        series=(0.6666666655445165, 0.40000121876972, 0.2855081659971155, 0.23330581938241896),
    ),
}


QUANTILE_TABLES: Final = {float64: PPND16, float32: PPND7}


# -- distributions ---------------------------------------------------------------------------------


def uniform(b: Any, drawn: Any, first: Any, span: Any, last: Any) -> Any:
    """Return ``first + span * u`` with u in [0, 1), at most ``last``."""
    return b.minimum(closed_unit(b, drawn) * span + first, last)


def normal(b: Any, drawn: Any, mean: Any, std: Any) -> Any:
    """Return ``mean + std * z`` with z standard normal."""
    return standard_normal(b, drawn) * std + mean


def truncated_normal(
    b: Any, drawn: Any, start: Any, mass: Any, scale: Any, mean: Any, low: Any, high: Any
) -> Any:
    """Return ``mean + scale * z`` within [low, high], z of the quantile start + mass * u."""
    p = open_unit(b, drawn) * mass + start
    p = b.minimum(b.maximum(p, SMALLEST_NORMAL), BELOW_ONE)
    return b.minimum(b.maximum(normal_quantile(b, p) * scale + mean, low), high)


def exponential(b: Any, drawn: Any, minus_rate: Any) -> Any:
    """Return ``-log(u) / rate`` with u in (0, 1), in float64."""
    return log_of_normal(b, open_unit(b, drawn)) / minus_rate


def bernoulli(b: Any, drawn: Any, probability: Any) -> Any:
    """Tell whether a uniform number in [0, 1), of 32 or 53 bits, is below a probability."""
    narrow = drawn.dtype.itemsize == 4
    u = b.cast(drawn, float64) * 2.0**-32 if narrow else closed_unit(b, drawn)
    return u < probability


# -- lanes -----------------------------------------------------------------------------------------


def closed_unit(b: Any, drawn: Any) -> Any:
    """Return a uniform number in [0, 1) in the float dtype of the bits' width: 24 or 53 of them."""
    if drawn.dtype.itemsize == 4:
        return b.cast(b.bits(b.shift_right(drawn, 8), np.int32), float32) * 2.0**-24
    return b.cast(b.bits(b.shift_right(drawn, 11), np.int64), float64) * 2.0**-53


def open_unit(b: Any, drawn: Any) -> Any:
    """Return a uniform float64 in (0, 1): the middle of a cell of a grid of 2**32 or 2**52."""
    if drawn.dtype.itemsize == 4:
        return (b.cast(drawn, float64) + 0.5) * 2.0**-32
    return (b.cast(b.bits(b.shift_right(drawn, 12), np.int64), float64) + 0.5) * 2.0**-52


def standard_normal(b: Any, drawn: Any) -> Any:
    """Return a normal number by inversion, float32 from 32 bits and float64 from 64.

    The top bit is the sign. The other bits ``m`` are the distance from the median and their
    complement the distance from the end, so that both have full relative precision: the tail
    reaches |z| = 6.3 in float32 and 9.1 in float64.
    """
    bits = 8 * drawn.dtype.itemsize
    integer, real = (np.int32, float32) if bits == 32 else (np.int64, float64)
    signed = b.bits(drawn, integer)
    magnitude = signed ^ b.shift_right(signed, bits - 1)
    complement = ((1 << (bits - 1)) - 1) - magnitude
    cell = 2.0**-bits
    centred = (b.cast(magnitude, real) + 0.5) * cell
    tail = (b.cast(complement, real) + 0.5) * cell
    return b.copysign(normal_magnitude(b, centred, tail), b.cast(signed, real))


def normal_quantile(b: Any, p: Any) -> Any:
    """Return z with Phi(z) = p for float64 p strictly between 0 and 1."""
    q = p - 0.5
    return b.copysign(normal_magnitude(b, b.abs(q), b.minimum(p, 1.0 - p)), q)


def normal_magnitude(b: Any, centred: Any, tail: Any) -> Any:
    """Return |z| for p given twice, as ``centred`` = |p - 1/2| and ``tail`` = min(p, 1 - p).

    Both are asked for because each is precise where the other is not; ``tail`` must be a positive
    normal number. Relative error about 1e-7 in float32 and 1e-15 in float64.
    """
    table = QUANTILE_TABLES[centred.dtype]
    inner = _quotient(0.180625 - centred * centred, table.centre) * centred
    return b.rare(centred > 0.425, _tail_magnitude, [tail], inner)


def _tail_magnitude(b: Any, tail: Any) -> Any:
    r = b.sqrt(-log_of_normal(b, tail))
    near = _quotient(r - 1.6, QUANTILE_TABLES[tail.dtype].tail)
    return b.rare(r > 5.0, _far_magnitude, [r], near)


def _far_magnitude(b: Any, r: Any) -> Any:
    return _quotient(r - 5.0, QUANTILE_TABLES[r.dtype].far_tail)


def log_of_normal(b: Any, x: Any, shift: Any = None) -> Any:
    """Return ``log(x * 2**-shift)`` for a positive, finite x that is not subnormal.

    With ``x = 2**k (1 + f)``, ``1 + f`` in [sqrt 1/2, sqrt 2) and ``s = f / (2 + f)``,
    ``log(1 + f) = 2 artanh(s) = f - f**2/2 + s (f**2/2 + R(s**2))``: the leading term is exact, so
    rounding errors enter only through the small rest.
    """
    table = LOG_TABLES[x.dtype]
    bits = b.bits(x, table.integer)
    exponent = b.shift_right(bits - table.sqrt_half_bits, table.mantissa_bits)
    f = b.bits(bits - b.shift_left(exponent, table.mantissa_bits), x.dtype) - 1.0
    k = b.cast(exponent if shift is None else exponent - shift, x.dtype)
    return k * table.ln2_high - (_log1p_correction(f, k, table) - f)


def _log1p_correction(f: Any, k: Any, table: LogConstants) -> Any:
    """Return ``f - log(1 + f) - k * ln2_low``."""
    s = f / (f + 2.0)
    z = s * s
    half_square = (f * 0.5) * f
    rest = (polynomial(z, table.series) * z + half_square) * s + k * table.ln2_low
    return half_square - rest


def _quotient(x: Any, rational: Rational) -> Any:
    return polynomial(x, rational.numerator) / polynomial(x, rational.denominator)


def polynomial(x: Any, coefficients: Coefficients) -> Any:
    """Return a polynomial (lowest power first, at least two terms) by Horner's rule."""
    last, *others, first = coefficients[::-1]
    total = x * last
    for coefficient in others:
        total = (total + coefficient) * x
    return total + first
