"""Continuous distributions of one lane per element: uniform, normal, truncated normal, exponential.

Each is a pure function of ``(key, counter)`` and its parameters; ``blocks_for(shape, dtype)`` is
what it consumes. float16 and bfloat16 are computed in float32 (float64 where noted) and rounded.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..dtype import DType, as_dtype
from ..errors import ArgumentError
from ..scalar.arrays import on_arrays
from ..shape import as_shape
from . import formulas
from .exact import normal_cdf
from .lanes import (
    Array,
    closed_unit,
    fill,
    flat_parameter,
    lane_bits,
    standard_normal,
)

__all__ = ["exponential", "normal", "truncated_normal", "uniform"]

_uniform = on_arrays(formulas.uniform)
_normal = on_arrays(formulas.normal)
_truncated_normal = on_arrays(formulas.truncated_normal)
_exponential = on_arrays(formulas.exponential)


def uniform(
    key: int,
    counter: int,
    shape: Any,
    *,
    low: float = 0.0,
    high: float = 1.0,
    dtype: Any = "float32",
) -> Array:
    """Draw from [low, high), the bounds as rounded to ``dtype``; ``high`` itself never occurs.

    The value is ``low + (high - low) * u`` with u of 24 random bits (53 in float64), at most the
    float before ``high``.
    """
    dtype, shape = as_dtype(dtype), as_shape(shape)
    bits = lane_bits(dtype)
    if (low, high) == (0, 1) and dtype.itemsize * 8 == bits:
        return fill(key, counter, shape, dtype, bits, lambda lanes, _: closed_unit(lanes))
    bounds = interval(low, high, dtype)
    return fill(key, counter, shape, dtype, bits, lambda lanes, _: _uniform(lanes, *bounds))


def normal(
    key: int,
    counter: int,
    shape: Any,
    *,
    mean: float = 0.0,
    std: float = 1.0,
    dtype: Any = "float32",
) -> Array:
    """Draw ``mean + std * z`` with z standard normal, by inversion (AS 241).

    float32 and narrower compute in float32 throughout, float64 in float64.
    """
    dtype, shape = as_dtype(dtype), as_shape(shape)

    def transform(lanes: Array, _: slice) -> Any:
        standard = (mean, std) == (0.0, 1.0)
        return standard_normal(lanes) if standard else _normal(lanes, mean, std)

    return fill(key, counter, shape, dtype, lane_bits(dtype), transform)


def truncated_normal(
    key: int,
    counter: int,
    shape: Any,
    *,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    dtype: Any = "float32",
) -> Array:
    """Draw from the normal distribution of ``mean`` and ``std`` restricted to [a, b].

    By inversion in float64, then rounded within the interval; ``a`` and ``b`` may be infinite.
    """
    dtype, shape = as_dtype(dtype), as_shape(shape)
    start, mass, sign = truncation(mean, std, a, b)
    numbers = (start, mass, sign * std, mean, *bounds_inside(a, b, dtype))

    def transform(lanes: Array, _: slice) -> Any:
        return _truncated_normal(lanes, *numbers)

    return fill(key, counter, shape, dtype, lane_bits(dtype), transform)


def exponential(
    key: int, counter: int, shape: Any, *, rate: ArrayLike = 1.0, dtype: Any = "float32"
) -> Array:
    """Draw ``-log(u) / rate`` with u in (0, 1), in float64; ``rate`` broadcasts to ``shape``."""
    dtype, shape = as_dtype(dtype), as_shape(shape)
    rates = np.asarray(rate, np.float64)
    if not np.all((rates > 0) & (rates < np.inf)):
        raise ArgumentError(f"exponential: rate must be positive and finite. Received: {rates}")
    flat = flat_parameter(rates, shape, "exponential: rate")

    def transform(lanes: Array, part: slice) -> Any:
        return _exponential(lanes, -flat[part])

    return fill(key, counter, shape, dtype, lane_bits(dtype), transform)


@lru_cache
def interval(low: float, high: float, dtype: DType) -> tuple[float, float, float]:
    """Return ``low``, ``high - low`` and the last float before ``high``, all within ``dtype``."""
    real = np.float64 if lane_bits(dtype) == 64 else np.float32
    with np.errstate(over="ignore"):
        below = np.asarray(low).astype(dtype)
        above = np.asarray(high).astype(dtype)
        span = real(above) - real(below)
    if not (below < above and np.isfinite(span)):
        raise ArgumentError(
            f"uniform: low must be less than high, and both and their difference must be finite in "
            f"{dtype}. Received: low={low}, high={high}"
        )
    last = np.nextafter(above, np.asarray(-np.inf, dtype))
    return float(below), float(span), float(last)


def truncation(mean: float, std: float, a: float, b: float) -> tuple[float, float, float]:
    """Return the probability below the interval, that inside it, and the sign of z.

    An interval above the mean is reflected: the lower tail has the finer floats.
    """
    low, high, sign = (a - mean) / std, (b - mean) / std, 1.0
    if low > 0:
        low, high, sign = -high, -low, -1.0
    start = normal_cdf(low)
    mass = normal_cdf(high) - start
    if not mass > 0:
        raise ArgumentError(
            f"truncated_normal: [{a}, {b}] holds no probability that float64 can represent for "
            f"mean={mean}, std={std}; widen it, or draw from uniform"
        )
    return start, mass, sign


def bounds_inside(a: float, b: float, dtype: DType) -> tuple[float, float]:
    """Return the least and the greatest value of ``dtype`` in [a, b]."""
    with np.errstate(over="ignore"):
        least, greatest = np.asarray(a).astype(dtype), np.asarray(b).astype(dtype)
    if float(least) < a:  # as floats: NumPy would round the bound to the narrow dtype first
        least = np.nextafter(least, np.asarray(np.inf, dtype))
    if float(greatest) > b:
        greatest = np.nextafter(greatest, np.asarray(-np.inf, dtype))
    if least > greatest:
        raise ArgumentError(f"truncated_normal: no {dtype} lies in [{a}, {b}]; use a wider dtype")
    return float(least), float(greatest)
