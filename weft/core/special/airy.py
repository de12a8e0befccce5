"""Airy's function Ai and its derivative.

Polynomials from y'' = x y (`taylor.py`) for |x| < 12, beyond that the expansions in
zeta = 2/3 |x|**(3/2), DLMF 9.7.5 to 9.7.10. The exponential and the phase would turn the rounding
error of zeta, half an ulp of some hundreds, into a relative one: it is computed and put back.

Largest errors measured against 40-digit references, in float64 ulp: 4.4 for x > -2; below, where
both functions have zeros, 2.8 ulp of their waves' height, |x|**(-1/4) and |x|**(1/4) over sqrt(pi).
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from ._kernel import Array, Block, evaluate, horner, piecewise
from .taylor import Pieces, sum_of_powers

_FAR = 12.0
_TERMS = 20
_EXACT_TERMS = 400
_EXPANSION_TERMS = 24
_AT_ZERO = "0.3550280538878172392600631860041831763979791741991772405833265103"
_SLOPE_AT_ZERO = "-0.2588194037928067984051835601892039634790911383549345822100018139"


def airy_ai(x: npt.ArrayLike) -> Array:
    """Return Airy's function Ai.

    >>> round(float(airy_ai(0.0)), 6)
    0.355028
    """
    return evaluate("airy_ai", x, _ai)


def airy_ai_slope(x: npt.ArrayLike) -> Array:
    """Return the derivative of Airy's function Ai."""
    return evaluate("airy_ai_slope", x, _ai_slope)


def _ai(x: Block) -> Block:
    return piecewise(x, (-_FAR, _FAR), (_ai_waves, _PIECES.value, _ai_tail))


def _ai_slope(x: Block) -> Block:
    return piecewise(x, (-_FAR, _FAR), (_slope_waves, _PIECES.slope, _slope_tail))


# -- tables ---------------------------------------------------------------------------------------


@cache
def _at_zero() -> tuple[Decimal, ...]:
    found = [Decimal(_AT_ZERO), Decimal(_SLOPE_AT_ZERO), Decimal(0)]
    for k in range(_EXACT_TERMS - 3):
        found.append(found[k] / ((k + 3) * (k + 2)))
    return tuple(found)


def _expand(middle: Decimal, terms: int) -> list[Decimal]:
    series = _at_zero()
    slopes = [k * c for k, c in enumerate(series)][1:]
    found = [sum_of_powers(middle, series), sum_of_powers(middle, slopes)]
    for k in range(terms - 2):
        before = found[k - 1] if k else Decimal(0)
        found.append((middle * found[k] + before) / ((k + 2) * (k + 1)))
    return found


_PIECES = Pieces(-_FAR, _FAR, _TERMS, _expand)


# -- expansions -----------------------------------------------------------------------------------


@cache
def _coefficients(slope: bool) -> tuple[float, ...]:
    """Return u_k, or for the derivative v_k, of DLMF 9.7.2."""
    u = [Fraction(1)]
    for k in range(1, _EXPANSION_TERMS + 1):
        u.append(u[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)))
    if not slope:
        return tuple(map(float, u))
    return tuple(float(-c * Fraction(6 * k + 1, 6 * k - 1)) for k, c in enumerate(u))


def _zeta(x: Block) -> tuple[Block, Block]:
    """Return 2/3 x**(3/2) for x > 0 in two parts."""
    root = np.sqrt(x)
    lost = _excess(root, root, x) / (2 * root)  # of the root
    product = x * root
    rest = -_excess(x, root, product) + x * lost
    third = product / 3
    rest = rest / 3 + ((product - 2 * third) - third) / 3
    return 2 * third, 2 * rest


def _excess(a: Block, b: Block, product: Block) -> Block:
    """Return product - a b exactly (Dekker 1971)."""
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return ((product - a1 * b1) - a1 * b2 - a2 * b1) - a2 * b2


def _halves(a: Block) -> tuple[Block, Block]:
    scaled = a * 134217729.0  # 2**27 + 1
    head = scaled - (scaled - a)
    return head, a - head


def _tail(x: Block, slope: bool) -> Block:
    inside = np.minimum(x, 200.0)  # zeta is 1885 there, and exp(-zeta) is 0 long before
    zeta, rest = _zeta(inside)
    signs = [c * (-1) ** k for k, c in enumerate(_coefficients(slope))]
    series = horner(1.0 / zeta, signs) * (np.exp(-zeta) * (1.0 - rest)) / (2 * math.sqrt(math.pi))
    fourth = np.sqrt(np.sqrt(inside))
    y = -series * fourth if slope else series / fourth
    return np.where(np.isnan(x), np.nan, y)


def _ai_tail(x: Block) -> Block:
    return _tail(x, False)


def _slope_tail(x: Block) -> Block:
    return _tail(x, True)


def _waves(x: Block, slope: bool) -> Block:
    zeta, rest = _zeta(-x)
    c = _coefficients(slope)
    w = 1.0 / zeta
    even = horner(w * w, [a * (-1) ** k for k, a in enumerate(c[::2])])
    odd = w * horner(w * w, [a * (-1) ** k for k, a in enumerate(c[1::2])])
    zeta = np.where(np.isfinite(zeta), zeta, 0.0)
    cosine, sine = np.cos(zeta), np.sin(zeta)
    rest = np.where(np.isfinite(rest), rest, 0.0)
    cosine, sine = cosine - rest * sine, sine + rest * cosine
    fourth = np.sqrt(np.sqrt(-x))
    total, apart = (cosine + sine) / math.sqrt(2), (sine - cosine) / math.sqrt(2)
    if slope:
        return fourth / math.sqrt(math.pi) * (apart * even - total * odd)
    return (total * even + apart * odd) / (fourth * math.sqrt(math.pi))


def _ai_waves(x: Block) -> Block:
    y = _waves(x, False)
    return np.where(x == -np.inf, 0.0, y)


def _slope_waves(x: Block) -> Block:
    y = _waves(x, True)
    return np.where(x == -np.inf, np.nan, y)  # ever higher waves
