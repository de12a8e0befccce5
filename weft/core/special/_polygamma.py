"""The derivatives of the digamma function, through the Hurwitz zeta function."""

from __future__ import annotations

import math
import operator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from ._gamma import BERNOULLI, cotangent_pi, digamma, distance_to_integer
from ._kernel import Array, Block, evaluate, horner, piecewise

if TYPE_CHECKING:  # slow to import
    import numpy.typing as npt

_DIRECT_TERMS = 10  # summed one by one before Euler-Maclaurin takes over
_MAX_ORDER = 500  # beyond it pi**(n + 1) nears the end of float64 on the negative axis
_MAX_EXPONENT = 1e6  # beyond about 1e13 the Euler-Maclaurin coefficients overflow


def polygamma(n: SupportsIndex, x: npt.ArrayLike) -> Array:
    """Return the n-th derivative of the digamma function, for 0 <= n <= 500.

    Poles (0, -1, -2, ...) give +inf for odd n and -inf for even n > 0; minus infinity gives NaN.

    >>> float(polygamma(1, 1.0))  # pi**2 / 6
    1.6449340668482264
    """
    order = _check_order(n)
    if order == 0:
        return digamma(x)
    return evaluate("polygamma", x, partial(_polygamma, order))


def zeta(s: float, q: npt.ArrayLike) -> Array:
    """Return the Hurwitz zeta function, the sum of (q + k)**-s over k >= 0, 1 < s <= 1e6.

    It is infinite where a term is (q = 0, -1, -2, ...) and NaN at the other negative q.

    >>> float(zeta(2.0, 1.0))  # pi**2 / 6
    1.6449340668482264
    """
    s = float(s)
    if not 1.0 < s <= _MAX_EXPONENT:
        raise ValueError(f"zeta: s must be above 1 and at most {_MAX_EXPONENT:g}; received {s}.")
    return evaluate("zeta", q, partial(_zeta, s))


def _check_order(n: SupportsIndex) -> int:
    try:
        order = operator.index(n)
    except TypeError:
        kind = type(n).__name__
        raise TypeError(f"polygamma: n must be an integer; received {n!r} ({kind}).") from None
    if not 0 <= order <= _MAX_ORDER:
        raise ValueError(f"polygamma: n must be from 0 to {_MAX_ORDER}; received {order}.")
    return order


def _polygamma(n: int, x: Block) -> Block:
    return piecewise(x, (0.0,), (partial(_reflected, n), partial(_positive, n)))


def _positive(n: int, x: Block) -> Block:
    sign = 1.0 if n % 2 else -1.0
    return sign * _factorial_zeta(n, x)


def _reflected(n: int, x: Block) -> Block:
    # DLMF 5.15.6 at -y: polygamma(n, -y) = -pi**(n+1) cot^(n)(-pi y) - n! zeta(n+1, 1+y).
    r = distance_to_integer(x)
    value = -_cotangent_derivative(n, r) - _factorial_zeta(n, 1.0 - x)
    return np.where(r == 0.0, np.inf if n % 2 else -np.inf, value)


def _cotangent_derivative(n: int, r: Block) -> Block:
    """Return the n-th derivative of pi cot(pi r).

    It is a polynomial in the cotangent, even or odd, whose coefficients share one sign.
    """
    coefficients, exponent = _cotangent_polynomial(n)
    c = cotangent_pi(r)
    value = horner(c * c, coefficients)
    if n % 2 == 0:
        value *= c
    return np.ldexp(value * math.pi ** (n + 1), exponent)


@lru_cache(maxsize=128)
def _cotangent_polynomial(n: int) -> tuple[tuple[float, ...], int]:
    """Return the non-zero coefficients of the n-th derivative of cot in cot, over 2**exponent.

    They come from cot' = -(1 + cot**2), in exact integers because they soon pass 2**1024.
    """
    powers = [0, 1]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(powers)][1:]
        low, high = [*slope, 0, 0], [0, 0, *slope]
        powers = [-(a + b) for a, b in zip(low, high, strict=True)]
    exponent = max(abs(c) for c in powers).bit_length()
    return tuple(c / (1 << exponent) for c in powers[(n + 1) % 2 :: 2]), exponent


def _factorial_zeta(n: int, q: Block) -> Block:
    """Return n! zeta(n + 1, q) for q > 0.

    The factorial overflows and the sum underflows long before their product does either, so q is
    scaled by the power of two that brings both near 1.
    """
    s = n + 1
    shift = round(math.log2(math.factorial(n)) / s)
    factor = math.factorial(n) / (1 << (shift * s))
    return factor * _scaled_zeta(float(s), math.ldexp(1.0, -shift), q)


def _zeta(s: float, q: Block) -> Block:
    value = _scaled_zeta(s, 1.0, np.maximum(q, 0.0))
    negative_pole = distance_to_integer(q) == 0.0
    return np.where(q < 0.0, np.where(negative_pole, np.inf, np.nan), value)


def _scaled_zeta(s: float, scale: float, q: Block) -> Block:
    """Return the sum of (scale (q + k))**-s over k >= 0, for q >= 0 and s > 1.

    Euler-Maclaurin, DLMF 25.11.5, is at full precision from q = s + 10 on; below that, what the
    direct terms leave for the remainder to give is small, or q + 10 is large enough.
    """
    far = partial(_euler_maclaurin, s, scale)
    return piecewise(q, (s + _DIRECT_TERMS,), (partial(_summed, s, scale), far))


def _summed(s: float, scale: float, q: Block) -> Block:
    total = _euler_maclaurin(s, scale, q + _DIRECT_TERMS)
    for k in reversed(range(_DIRECT_TERMS)):  # the smallest terms first
        total += _inverse_power(scale * (q + k), s)
    return total


def _euler_maclaurin(s: float, scale: float, w: Block) -> Block:
    u = 1.0 / w
    bracket = 1.0 / (s - 1.0) + u * (0.5 + u * horner(u * u, _remainder_terms(s)))
    return _inverse_power(scale * w, s - 1.0) * (bracket / scale)


@lru_cache(maxsize=128)
def _remainder_terms(s: float) -> tuple[float, ...]:
    """Return B(2j)/(2j)! times the rising factorial s (s+1) ... (s+2j-2), for j = 1, 2, ..."""
    terms = []
    rising = s / 2.0  # the rising factorial over (2j)!, kept as one number to stay in range
    for j, b in enumerate(BERNOULLI, start=1):
        terms.append(b * rising)
        rising *= (s + 2 * j - 1) * (s + 2 * j) / ((2 * j + 1) * (2 * j + 2))
    return tuple(terms)


def _inverse_power(x: Block, exponent: float) -> Block:
    """Return x**-exponent, by products where they are both exact enough and much faster."""
    if exponent not in (1.0, 2.0, 3.0, 4.0):
        return np.power(x, -exponent)
    u = 1.0 / x
    y = u.copy()
    for _ in range(int(exponent) - 1):
        y *= u
    return y
