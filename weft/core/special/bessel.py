"""The Bessel functions of order 0 and 1: J and Y, the modified I and K, and these scaled.

Three ranges. Up to 1 the power series, DLMF 10.2.2, 10.8.2, 10.25.2 and 10.31.2. From
25 on Hankel's expansions, DLMF 10.17.3 and 10.40.1: their smallest term is exp(-50). Between them
polynomials from the differential equation (`taylor.py`).

Largest errors measured against 40-digit references, in float64 ulp: I 2.4; K 3.5; J and
Y, which have zeros, 2.3 ulp of sqrt(2 / (pi x)), the height of their waves, or of their values
where these are larger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from ._kernel import Array, Block, Kernel, evaluate, horner, piecewise
from .taylor import Pieces, sum_of_powers

Parts = Sequence[Kernel]  # near, between and far

_NEAR, _FAR = 1.0, 25.0
_SERIES_TERMS = 14  # enough up to 1
_EXACT_TERMS = 140  # enough up to 25 for as many digits as a table is computed with
_HANKEL_TERMS = 24
_EULER = "0.5772156649015328606065120900824024310421593359399235988057672349"
_PI = "3.141592653589793238462643383279502884197169399375105820974944592"


# -- what is computed -----------------------------------------------------------------------------


def j0(x: npt.ArrayLike) -> Array:
    """Return the Bessel function of the first kind of order 0.

    >>> float(j0(0.0))
    1.0
    """
    return evaluate("bessel_j0", x, lambda block: _by_range(np.abs(block), _j0_parts))


def j1(x: npt.ArrayLike) -> Array:
    """Return the Bessel function of the first kind of order 1, which is odd."""
    return evaluate(
        "bessel_j1",
        x,
        lambda block: np.copysign(1.0, block) * _by_range(np.abs(block), _j1_parts),
    )


def y0(x: npt.ArrayLike) -> Array:
    """Return the Bessel function of the second kind of order 0: NaN below 0, -inf at 0."""
    return evaluate("bessel_y0", x, lambda block: _positive(block, _y0_parts, -np.inf))


def y1(x: npt.ArrayLike) -> Array:
    """Return the Bessel function of the second kind of order 1: NaN below 0, -inf at 0."""
    return evaluate("bessel_y1", x, lambda block: _positive(block, _y1_parts, -np.inf))


def i0(x: npt.ArrayLike) -> Array:
    """Return the modified Bessel function of the first kind of order 0.

    >>> float(i0(0.0))
    1.0
    """
    return evaluate("i0", x, lambda block: _grown(np.abs(block), 0))


def i0e(x: npt.ArrayLike) -> Array:
    """Return i0(x) exp(-|x|)."""
    return evaluate("i0e", x, lambda block: _fallen(np.abs(block), 0))


def i1(x: npt.ArrayLike) -> Array:
    """Return the modified Bessel function of the first kind of order 1, which is odd."""
    return evaluate("i1", x, lambda block: np.copysign(_grown(np.abs(block), 1), block))


def i1e(x: npt.ArrayLike) -> Array:
    """Return i1(x) exp(-|x|)."""
    return evaluate("i1e", x, lambda block: np.copysign(_fallen(np.abs(block), 1), block))


def k0(x: npt.ArrayLike) -> Array:
    """Return the modified Bessel function of the second kind of order 0: NaN below 0."""
    return evaluate("k0", x, lambda block: _positive(block, _k_parts(0, False), np.inf))


def k1(x: npt.ArrayLike) -> Array:
    """Return the modified Bessel function of the second kind of order 1: NaN below 0."""
    return evaluate("k1", x, lambda block: _positive(block, _k_parts(1, False), np.inf))


def k0e(x: npt.ArrayLike) -> Array:
    """Return k0(x) exp(x)."""
    return evaluate("k0e", x, lambda block: _positive(block, _k_parts(0, True), np.inf))


def k1e(x: npt.ArrayLike) -> Array:
    """Return k1(x) exp(x)."""
    return evaluate("k1e", x, lambda block: _positive(block, _k_parts(1, True), np.inf))


# -- ranges ---------------------------------------------------------------------------------------


def _by_range(x: Block, parts: Parts) -> Block:
    return piecewise(x, (_NEAR, _FAR), parts)


def _positive(x: Block, parts: Parts, at_zero: float) -> Block:
    y = _by_range(np.maximum(x, 0.0), parts)
    return np.where(x > 0.0, y, np.where(x == 0.0, at_zero, np.nan))


def _grown(x: Block, order: int) -> Block:
    def far(x: Block) -> Block:
        half = np.exp(x / 2)  # its square may overflow where the result does not
        return np.where(x == np.inf, np.inf, half * _scaled_far(x, order, -1.0) * half)

    return _by_range(x, (lambda x: _first_kind(x, order), _i_pieces(order), far))


def _fallen(x: Block, order: int) -> Block:
    def near(x: Block) -> Block:
        return _first_kind(x, order) * np.exp(-x)

    def between(x: Block) -> Block:
        return _i_pieces(order)(x) * np.exp(-x)

    return _by_range(x, (near, between, lambda x: _scaled_far(x, order, -1.0)))


def _i_pieces(order: int) -> Kernel:
    return _I_PIECES.slope if order else _I_PIECES.value


def _k_parts(order: int, scaled: bool) -> Parts:
    between = _K_PIECES.value if order == 0 else (lambda x: -_K_PIECES.slope(x))

    def rising(part: Kernel) -> Kernel:
        return (lambda x: part(x) * np.exp(x)) if scaled else part

    def far(x: Block) -> Block:
        y = _scaled_far(x, order, 1.0) * math.pi
        return y if scaled else np.where(x == np.inf, 0.0, y * np.exp(-x))

    def near(x: Block) -> Block:
        value, slope = _second_kind(x, 1)
        return -value if order == 0 else slope

    return rising(near), rising(between), far


# -- power series ---------------------------------------------------------------------------------


@cache
def _coefficients(sign: int, harmonic: bool, terms: int) -> tuple[Fraction, ...]:
    """Return sign**k / (k!)**2, times the harmonic number of k if asked for."""
    found, factor, total = [], Fraction(1), Fraction(0)
    for k in range(terms):
        found.append(factor * (total if harmonic else 1))
        factor = factor * sign / (k + 1) ** 2
        total += Fraction(1, k + 1)
    return tuple(found)


def _slopes(coefficients: Sequence[Fraction]) -> tuple[Fraction, ...]:
    return tuple(k * c for k, c in enumerate(coefficients))[1:]


@cache
def _floats(sign: int, harmonic: bool, slopes: bool) -> tuple[float, ...]:
    coefficients = _coefficients(sign, harmonic, _SERIES_TERMS)
    return tuple(float(c) for c in (_slopes(coefficients) if slopes else coefficients))


def _first_kind(x: Block, order: int, sign: int = 1) -> Block:
    """Return I (or with sign -1: J of order 0, and the negative of J of order 1) by its series."""
    y = horner(x * x / 4, _floats(sign, False, order == 1))
    return y * (x / 2) if order == 1 else y


def _second_kind(x: Block, sign: int) -> tuple[Block, Block]:
    """Return (log(x/2) + euler) B - L and its derivative, B being J or I of order 0."""
    q, half = x * x / 4, x / 2
    logarithm = np.log(half) + float(_EULER)
    b = horner(q, _floats(sign, False, False))
    b_slope = half * horner(q, _floats(sign, False, True))
    rest = horner(q, _floats(sign, True, False))
    rest_slope = half * horner(q, _floats(sign, True, True))
    return logarithm * b - rest, b / x + logarithm * b_slope - rest_slope


# -- tables ---------------------------------------------------------------------------------------


def _continued(
    middle: Decimal, value: Decimal, slope: Decimal, sign: int, terms: int
) -> list[Decimal]:
    """Return the Taylor coefficients of a solution of x y'' + y' = sign x y."""
    found = [value, slope]
    for k in range(terms - 2):
        before = found[k - 1] if k else Decimal(0)
        rest = sign * (middle * found[k] + before) - (k + 1) ** 2 * found[k + 1]
        found.append(rest / (middle * (k + 2) * (k + 1)))
    return found


def _exactly(x: Decimal, sign: int) -> tuple[Decimal, Decimal, Decimal, Decimal]:
    """Return B, its slope, the second solution of `_second_kind` and its slope, in decimals."""
    q, half = x * x / 4, x / 2

    def series(harmonic: bool, slopes: bool) -> Decimal:
        coefficients = _coefficients(sign, harmonic, _EXACT_TERMS)
        chosen = _slopes(coefficients) if slopes else coefficients
        return sum_of_powers(q, [Decimal(c.numerator) / Decimal(c.denominator) for c in chosen])

    logarithm = half.ln() + Decimal(_EULER)
    b, b_slope = series(False, False), half * series(False, True)
    second = logarithm * b - series(True, False)
    second_slope = b / x + logarithm * b_slope - half * series(True, True)
    return b, b_slope, second, second_slope


def _expand_j(middle: Decimal, terms: int) -> list[Decimal]:
    b, slope, _, _ = _exactly(middle, -1)
    return _continued(middle, b, slope, -1, terms)


def _expand_i(middle: Decimal, terms: int) -> list[Decimal]:
    b, slope, _, _ = _exactly(middle, 1)
    return _continued(middle, b, slope, 1, terms)


def _expand_y(middle: Decimal, terms: int) -> list[Decimal]:
    _, _, value, slope = _exactly(middle, -1)
    factor = 2 / Decimal(_PI)
    return _continued(middle, factor * value, factor * slope, -1, terms)


def _expand_k(middle: Decimal, terms: int) -> list[Decimal]:
    _, _, value, slope = _exactly(middle, 1)
    return _continued(middle, -value, -slope, 1, terms)


_J_PIECES = Pieces(_NEAR, _FAR, 16, _expand_j)
_I_PIECES = Pieces(_NEAR, _FAR, 16, _expand_i)
_Y_PIECES = Pieces(_NEAR, _FAR, 27, _expand_y)
_K_PIECES = Pieces(_NEAR, _FAR, 27, _expand_k)


# -- Hankel's expansions --------------------------------------------------------------------------


@cache
def _hankel(order: int) -> tuple[Fraction, ...]:
    """Return a_k of DLMF 10.17.1."""
    found = [Fraction(1)]
    for k in range(1, _HANKEL_TERMS + 1):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return tuple(found)


def _scaled_far(x: Block, order: int, sign: float) -> Block:
    """Return I exp(-x), or with sign 1: K exp(x) / pi."""
    series = horner(1.0 / x, tuple(float(a) * sign**k for k, a in enumerate(_hankel(order))))
    return series / np.sqrt((2 * math.pi) * x)


def _wave(x: Block, order: int) -> tuple[Block, Block]:
    """Return the real and imaginary part of H1 without its phase, times sqrt(pi x)."""
    a, w = _hankel(order), 1.0 / x
    even = tuple(float(c) * (-1) ** k for k, c in enumerate(a[::2]))
    odd = tuple(float(c) * (-1) ** k for k, c in enumerate(a[1::2]))
    height = 1.0 / np.sqrt(math.pi * x)
    return height * horner(w * w, even), height * w * horner(w * w, odd)


def _phase(x: Block) -> tuple[Block, Block]:
    """Return cos + sin and sin - cos of x: what x - pi/4 would lose digits in."""
    x = np.where(np.isinf(x), 0.0, x)
    cosine, sine = np.cos(x), np.sin(x)
    return cosine + sine, sine - cosine


def _j0_far(x: Block) -> Block:
    (p, q), (total, apart) = _wave(x, 0), _phase(x)
    return p * total - q * apart


def _y0_far(x: Block) -> Block:
    (p, q), (total, apart) = _wave(x, 0), _phase(x)
    return p * apart + q * total


def _j1_far(x: Block) -> Block:
    (p, q), (total, apart) = _wave(x, 1), _phase(x)
    return p * apart + q * total


def _y1_far(x: Block) -> Block:
    (p, q), (total, apart) = _wave(x, 1), _phase(x)
    return q * apart - p * total


_j0_parts = (lambda x: _first_kind(x, 0, -1), _J_PIECES.value, _j0_far)
_j1_parts = (
    lambda x: -_first_kind(x, 1, -1),
    lambda x: -_J_PIECES.slope(x),
    _j1_far,
)
_y0_parts = (lambda x: _second_kind(x, -1)[0] * (2 / math.pi), _Y_PIECES.value, _y0_far)
_y1_parts = (
    lambda x: _second_kind(x, -1)[1] * (-2 / math.pi),
    lambda x: -_Y_PIECES.slope(x),
    _y1_far,
)
