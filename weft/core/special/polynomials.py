"""Orthogonal polynomials and their derivatives, by their recurrences.

A family says p[0] = 1, p[1] = a x + b and, for all k >= 1, how p[k+1] follows from p[k] and p[k-1]:
p[k+1] = (A x + B) p[k] - C p[k-1]. Derivatives of any order follow the differentiated recurrence,
so they have no poles at the ends of the interval. Fractions of degrees are cut off; degrees below 0
give 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ._kernel import Array, Block, evaluate_pair

MAX_DEGREE = 10_000


class Family(NamedTuple):
    """The recurrence of a family of polynomials; `step(k)` gives A, B and C for p[k+1]."""

    first: tuple[float, float]
    step: Callable[[int], tuple[float, float, float]]
    shifted: bool = False  # of 2 x - 1


def _chebyshev(k: int) -> tuple[float, float, float]:
    return 2.0, 0.0, 1.0


FAMILIES = {
    "chebyshev_t": Family((1.0, 0.0), _chebyshev),
    "chebyshev_u": Family((2.0, 0.0), _chebyshev),
    "chebyshev_v": Family((2.0, -1.0), _chebyshev),
    "chebyshev_w": Family((2.0, 1.0), _chebyshev),
    "shifted_chebyshev_t": Family((1.0, 0.0), _chebyshev, True),
    "shifted_chebyshev_u": Family((2.0, 0.0), _chebyshev, True),
    "shifted_chebyshev_v": Family((2.0, -1.0), _chebyshev, True),
    "shifted_chebyshev_w": Family((2.0, 1.0), _chebyshev, True),
    "hermite_h": Family((2.0, 0.0), lambda k: (2.0, 0.0, 2.0 * k)),
    "hermite_he": Family((1.0, 0.0), lambda k: (1.0, 0.0, float(k))),
    "laguerre_l": Family((-1.0, 1.0), lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))),
    "legendre_p": Family((1.0, 0.0), lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1))),
}


def polynomial(x: npt.ArrayLike, n: npt.ArrayLike, family: str, order: int = 0) -> Array:
    """Return the order-th derivative of the polynomials of degree n at x.

    >>> float(polynomial(0.5, 2.0, "chebyshev_t"))
    -0.5
    """
    record = FAMILIES[family]
    return evaluate_pair(family, x, n, lambda x, n: _evaluated(record, x, n, order))


def _evaluated(family: Family, x: Block, n: Block, order: int) -> Block:
    z = 2.0 * x - 1.0 if family.shifted else x
    degree = np.where(n > -1.0, np.trunc(n), -1.0)
    out = np.where(np.isnan(n), np.nan, np.zeros_like(z))
    before = [np.zeros_like(z) for _ in range(order + 1)]
    now = [np.ones_like(z), *before[1:]]
    top = min(int(degree.max(initial=-1.0)), MAX_DEGREE)
    for k in range(top + 1):
        out = np.where(degree == k, now[order], out)
        a, b, c = family.step(k) if k else (*family.first, 0.0)
        now, before = _next(z, now, before, a, b, c), now
    out = np.where(degree > MAX_DEGREE, np.nan, out)
    return out * 2.0**order if family.shifted else out


def _next(
    z: Block, now: list[Block], before: list[Block], a: float, b: float, c: float
) -> list[Block]:
    factor = a * z + b
    found = [factor * p - c * q for p, q in zip(now, before, strict=True)]
    for m in range(1, len(now)):
        found[m] = found[m] + m * a * now[m - 1]
    return found
