"""The logarithm of the gamma function, and its derivative the digamma function.

Both use the same cut of the axis: reflection below -1/2, one recurrence step around 0, rational
fits that carry the positive zeros as exact factors up to 8, and Stirling's series from there. The
factored forms, with most of the cofactor in a constant, follow Maddock et al. (Boost.Math) and keep
full relative precision at those zeros. The coefficients interpolate the 60-digit function at
Chebyshev points; their relative error is below 4e-17.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ._kernel import Array, Block, evaluate, horner, piecewise, rational

if TYPE_CHECKING:  # slow to import
    import numpy.typing as npt


class _Fit(NamedTuple):
    """An approximation offset + P(x)/Q(x), coefficients from the constant term up.

    The offset is exact and carries most of the value, so the rounding errors of P/Q, four ulp if
    it stood alone, shrink to about one.
    """

    offset: float
    numerator: tuple[float, ...]
    denominator: tuple[float, ...]

    def __call__(self, x: Block) -> Block:
        """Return the approximation at each element of `x`."""
        y = rational(x, self.numerator, self.denominator)
        y += self.offset
        return y


# log(gamma(x)) = (x - 1)(x - 2) R(x) on [0.5, 1.5].
_LGAMMA_ONE = _Fit(
    0.4375,
    (
        2.3879688362324343,
        104.16038746573545,
        932.3935087108418,
        2535.947714457672,
        1974.2399950578647,
        -312.9038274183045,
        -627.3221829897469,
        -126.1623613974094,
        -4.92277569885945,
    ),
    (
        1.0,
        79.35321849277952,
        1205.5924041267524,
        5991.979793766048,
        11700.274702028324,
        9515.149114471487,
        3163.710539828391,
        380.8830309053541,
        11.565962487009191,
    ),
)
# The same on [1.5, 3].
_LGAMMA_TWO = _Fit(
    0.34375,
    (
        1.956847194431547,
        25.198595384717574,
        62.159401630804744,
        37.4794947506031,
        -2.012855264437366,
        -4.183422176057777,
        -0.5155309306601144,
        -0.011739635916528894,
    ),
    (
        1.0,
        27.205034183966337,
        134.90558125732588,
        206.50359132285743,
        117.30872371641625,
        25.433501591021322,
        1.9061364203623499,
        0.03485938974763185,
    ),
)
# The same on [3, 8].
_LGAMMA_FIVE = _Fit(
    0.1875,
    (
        1.7863080178716035,
        11.541404956148993,
        15.345150993366309,
        5.6374124969935515,
        0.37207831531879754,
        -0.06534383864045226,
        -0.006132049892622239,
        -9.803638009862188e-05,
    ),
    (
        1.0,
        14.033806841856878,
        35.6397972781959,
        28.448128293204164,
        8.612283935727882,
        1.0306238499316778,
        0.045205026593265335,
        0.0005393115841352392,
        -4.27611114313483e-08,
    ),
)
# digamma(x) = (x - root) R(x) on [0.5, 3]; the root is given in two parts.
_DIGAMMA_ROOT = 1.4616321449683622
_DIGAMMA_ROOT_REST = 9.549995429965697e-17
_DIGAMMA_ONE = _Fit(
    0.5,
    (
        530814787188.7335,
        1464001544035.6543,
        1152804216700.9717,
        275238293502.41144,
        -32130356499.49271,
        -21825383490.07554,
        -2851217786.7061267,
        -125544502.91492663,
        -1410145.130984501,
    ),
    (
        1.0,
        775855955962.8094,
        1728188721055.3909,
        1374728562141.6162,
        506690923527.17175,
        91946178545.0206,
        7930632314.685172,
        282547069.23767394,
        2844977.234391187,
    ),
)
# The same on [3, 8].
_DIGAMMA_FIVE = _Fit(
    0.28125,
    (
        30593.71962213909,
        82972.13061829904,
        58346.53075130935,
        12681.79994280007,
        176.53667701535971,
        -156.99561763065526,
        -10.155136577081725,
        -0.13547759859410297,
    ),
    (
        1.0,
        44710.53539658113,
        83273.0086777973,
        49406.36651327513,
        11857.683332318526,
        1188.9716462474573,
        45.58169834369572,
        0.491041214542833,
        -2.2203165531901822e-05,
    ),
)
# The Bernoulli numbers B(2), B(4), ... B(24).
BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
    854513 / 138,
    -236364091 / 2730,
)
# From x = 8 on, ten terms leave less than 1e-17 (DLMF 5.11.1 and 5.11.2).
_STIRLING_TERMS = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI[:10], start=1))
_DIGAMMA_TERMS = tuple(b / (2 * k) for k, b in enumerate(BERNOULLI[:10], start=1))
# log(gamma(x)) = (x - 1/2)(log(x) - 1) + (log(2 pi) - 1)/2 + ...: unlike the textbook grouping,
# no two large terms of opposite sign meet.
_STIRLING_CONSTANT = (math.log(2.0 * math.pi) - 1.0) / 2.0


def lgamma(x: npt.ArrayLike) -> Array:
    """Return log(abs(gamma(x))): infinite at 0, at the negative integers and at both infinities.

    >>> round(float(lgamma(5.0)), 14) == round(math.log(24.0), 14)
    True
    """
    return evaluate("lgamma", x, _lgamma)


def digamma(x: npt.ArrayLike) -> Array:
    """Return the derivative of log(gamma(x)).

    The pole at zero has the sign of its side: digamma(0.0) is -inf, digamma(-0.0) is +inf. The
    poles at the negative integers have no side to come from and give NaN, as does -inf.

    >>> float(digamma(1.0))  # minus Euler's constant
    -0.5772156649015329
    """
    return evaluate("digamma", x, digamma_kernel)


def distance_to_integer(x: Block) -> Block:
    """Return x minus the nearest integer, exactly; NaN for infinite x."""
    return x - np.rint(x)


def cotangent_pi(r: Block) -> Block:
    """Return cot(pi r) for |r| <= 1/2, to full relative precision at its zeros too."""
    from_zero = np.copysign(np.tan(math.pi * (0.5 - np.abs(r))), r)
    return np.where(np.abs(r) > 0.25, from_zero, 1.0 / np.tan(math.pi * r))


def _lgamma(x: Block) -> Block:
    branches = (_lgamma_reflected, _lgamma_zero, *_LGAMMA_POSITIVE)
    return piecewise(x, (-0.5, 0.5, *_LGAMMA_EDGES), branches)


def _lgamma_reflected(x: Block) -> Block:
    # |gamma(x) gamma(-x)| = pi / |x sin(pi x)|, DLMF 5.5.3.
    y = -x
    r = distance_to_integer(y)
    cosecant = np.log(math.pi / (y * np.abs(np.sin(math.pi * r))))
    value = cosecant - piecewise(y, _LGAMMA_EDGES, _LGAMMA_POSITIVE)
    return np.where((r == 0.0) | np.isinf(y), np.inf, value)


def _lgamma_zero(x: Block) -> Block:
    shifted = x * (x - 1.0) * _LGAMMA_ONE(1.0 + x)
    return shifted - np.log(np.abs(x))


def _lgamma_one(x: Block) -> Block:
    return (x - 1.0) * (x - 2.0) * _LGAMMA_ONE(x)


def _lgamma_two(x: Block) -> Block:
    return (x - 1.0) * (x - 2.0) * _LGAMMA_TWO(x)


def _lgamma_five(x: Block) -> Block:
    return (x - 1.0) * (x - 2.0) * _LGAMMA_FIVE(x)


def _lgamma_stirling(x: Block) -> Block:
    u = 1.0 / x
    small = _STIRLING_CONSTANT + u * horner(u * u, _STIRLING_TERMS)
    return (x - 0.5) * (np.log(x) - 1.0) + small


_LGAMMA_EDGES = (1.5, 3.0, 8.0)
_LGAMMA_POSITIVE = (_lgamma_one, _lgamma_two, _lgamma_five, _lgamma_stirling)


def digamma_kernel(x: Block) -> Block:
    """Return the digamma function of a block."""
    branches = (_digamma_reflected, _digamma_zero, *_DIGAMMA_POSITIVE)
    return piecewise(x, (-0.5, 0.5, *_DIGAMMA_EDGES), branches)


def _digamma_reflected(x: Block) -> Block:
    # digamma(1 - x) - digamma(x) = pi cot(pi x), DLMF 5.5.4, with digamma(1 + y) split so that no
    # digit of y is lost in the sum 1 + y.
    y = -x
    r = distance_to_integer(y)
    value = piecewise(y, _DIGAMMA_EDGES, _DIGAMMA_POSITIVE) + 1.0 / y
    value += math.pi * cotangent_pi(r)
    return np.where(r == 0.0, np.nan, value)


def _digamma_zero(x: Block) -> Block:
    from_root = (x - (_DIGAMMA_ROOT - 1.0)) - _DIGAMMA_ROOT_REST
    return from_root * _DIGAMMA_ONE(1.0 + x) - 1.0 / x


def _digamma_one(x: Block) -> Block:
    from_root = (x - _DIGAMMA_ROOT) - _DIGAMMA_ROOT_REST
    return from_root * _DIGAMMA_ONE(x)


def _digamma_five(x: Block) -> Block:
    return (x - _DIGAMMA_ROOT) * _DIGAMMA_FIVE(x)


def _digamma_asymptotic(x: Block) -> Block:
    u = 1.0 / x
    return np.log(x) - u * (0.5 + u * horner(u * u, _DIGAMMA_TERMS))


_DIGAMMA_EDGES = (3.0, 8.0)
_DIGAMMA_POSITIVE = (_digamma_one, _digamma_five, _digamma_asymptotic)
