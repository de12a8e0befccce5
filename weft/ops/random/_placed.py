"""Random draws in compiled loops: the transforms of core/random_lanes.py, one element at a time.

Only operations that IEEE 754 rounds exactly are used, in the order of core/random_math.py, so that
the numbers are the same bits as those of the reference kernels.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from ...core.dtype import DType, float32, float64, int64, uint32, uint64
from ...core.normal_quantile import Rational
from ...core.random_lanes import lane_bits
from ...core.random_math import LOG_TABLES, QUANTILE_TABLES


def lanes(b: Any, state: Any, bits: int) -> Any:
    """Return the random bits of the element."""
    words = tuple(state.at(i) for i in range(3))
    return b.random(words, b.flat.expr, uint32 if bits == 32 else uint64)


def lanes_for(b: Any, state: Any, dtype: DType) -> Any:
    """Return the random bits of an element of a dtype."""
    return lanes(b, state, lane_bits(dtype))


def is_below(b: Any, drawn: Any, probability: float) -> Any:
    """Tell whether the uniform number that lanes of 32 bits stand for is below a constant."""
    limit = ceil(probability * 2**32)  # exact: a power of two only moves the exponent
    if limit >= 2**32:
        return b.eq(drawn, drawn)
    return drawn < limit


def closed_unit(b: Any, drawn: Any) -> Any:
    """Return a uniform number in [0, 1)."""
    if drawn.dtype.itemsize == 4:
        return b.cast(b.bits(b.shift_right(drawn, 8), np.int32), float32) * 2.0**-24
    return b.cast(b.bits(b.shift_right(drawn, 11), np.int64), float64) * 2.0**-53


def open_unit(b: Any, drawn: Any) -> Any:
    """Return a uniform float64 in (0, 1)."""
    if drawn.dtype.itemsize == 4:
        return (b.cast(drawn, float64) + 0.5) * 2.0**-32
    return (b.cast(b.bits(b.shift_right(drawn, 12), np.int64), float64) + 0.5) * 2.0**-52


def standard_normal(b: Any, drawn: Any) -> Any:
    """Return a normal number by inversion."""
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
    """Return |z| for p given as its distance from 1/2 and from the nearer end."""
    table = QUANTILE_TABLES[centred.dtype]
    inner = _quotient(0.180625 - centred * centred, table.centre) * centred
    r = b.sqrt(-log_of_normal(b, tail))
    near, far = _quotient(r - 1.6, table.tail), _quotient(r - 5.0, table.far_tail)
    return b.select(centred > 0.425, b.select(r > 5.0, far, near), inner)


def log_of_normal(b: Any, x: Any) -> Any:
    """Return the logarithm of a positive, finite number that is not subnormal."""
    table = LOG_TABLES[x.dtype]
    bits = b.bits(x, table.integer)
    exponent = b.shift_right(bits - table.sqrt_half_bits, table.mantissa_bits)
    f = b.bits(bits - b.shift_left(exponent, table.mantissa_bits), x.dtype) - 1.0
    k = b.cast(exponent, x.dtype)
    return k * table.ln2_high - (_log1p_correction(f, k, table) - f)


def _log1p_correction(f: Any, k: Any, table: Any) -> Any:
    s = f / (f + 2.0)
    z = s * s
    half_square = (f * 0.5) * f
    rest = (_polynomial(z, table.series) * z + half_square) * s + k * table.ln2_low
    return half_square - rest


def _quotient(x: Any, rational: Rational) -> Any:
    return _polynomial(x, rational.numerator) / _polynomial(x, rational.denominator)


def _polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    last, *others, first = coefficients[::-1]
    total = x * last
    for coefficient in others:
        total = (total + coefficient) * x
    return total + first


def required(b: Any, condition: Any) -> Any:
    """Return what is true, or give the run up: the reference kernel then says why."""
    wrong = b.select(condition, b.constant(0, int64), b.constant(1, int64))
    return b.eq(b.index(wrong, 1, wraps=False), 0)
