"""Elementary functions of all numbers, special ones included, by the means of formulas.py.

The error of ``exact_log`` and ``exact_exp`` is below one unit in the last place.
"""

import math
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..scalar.arrays import on_arrays
from . import formulas
from .formulas import LOG_TABLES, polynomial

__all__ = ["exact_exp", "exact_log", "log_of_normal", "normal_cdf"]

Array: TypeAlias = NDArray[Any]

log_of_normal = on_arrays(formulas.log_of_normal)

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


def exact_log(x: ArrayLike) -> Array:
    """Return the natural logarithm, special values as IEEE 754; in float64 unless x is float32."""
    x = np.asarray(x)
    if x.dtype not in LOG_TABLES:
        x = x.astype(np.float64)
    flat = x.reshape(-1)
    tiny = np.finfo(x.dtype).tiny
    if flat.size == 0 or (flat.min() >= tiny and flat.max() < np.inf):
        return np.reshape(log_of_normal(flat), x.shape)
    ordinary = (flat > 0) & (flat < np.inf)
    subnormal = ordinary & (flat < tiny)
    scaled = np.where(ordinary, flat, x.dtype.type(1))
    scaled[subnormal] *= 2.0**54
    y: Array = log_of_normal(scaled, (subnormal * 54).astype(LOG_TABLES[x.dtype].integer))
    y[flat == 0] = -np.inf
    y[flat == np.inf] = np.inf
    y[(flat < 0) | np.isnan(flat)] = np.nan
    return y.reshape(x.shape)


def exact_exp(x: ArrayLike) -> NDArray[np.float64]:
    """Return e**x in float64, with 0 and inf beyond the range and NaN for NaN."""
    x = np.asarray(x, np.float64)
    flat = x.reshape(-1)
    nan = np.isnan(flat)
    bounded = np.clip(np.where(nan, 0.0, flat), *_EXP_RANGE)
    table = LOG_TABLES[np.dtype(np.float64)]
    k = np.rint(bounded * (1.0 / math.log(2.0)))
    r = (bounded - k * table.ln2_high) - k * table.ln2_low
    y: Array = polynomial(r, _EXP_SERIES)
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
