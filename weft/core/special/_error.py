"""The error function, its complement and its inverse."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..normal_quantile import PPND16
from ._kernel import Array, Block, evaluate, piecewise, rational

if TYPE_CHECKING:  # slow to import
    import numpy.typing as npt

# erf(x) = x R(x**2) for |x| <= 1: the form of Cody's first interval ("Rational Chebyshev
# approximations for the error function", Math. Comp. 23, 1969) on a wider range, so that the
# exponential is needed less often. Relative error 1.5e-17.
_ERF_P = (
    1.1283791670955126,
    0.14365581715028763,
    0.0455033341653278,
    0.0018829155471563983,
    0.00019709588069752516,
    8.625602445726376e-08,
)
_ERF_Q = (
    1.0,
    0.46064498648983654,
    0.0938746087651241,
    0.010705251871973175,
    0.0006937362332349159,
    2.0866484101019162e-05,
)
# The same form up to |x| = 3.93, beyond which float32 knows only 1. Relative error 1.7e-9, that is
# 0.03 ulp of float32; it needs no exponential and no branch.
_ERF_NARROW_LIMIT = 3.93
_ERF_NARROW_P = (
    1.1283791651921506,
    0.22984854912970173,
    0.06308264292871567,
    0.006438842675641148,
    0.0006236378774990405,
    3.3791699196336085e-05,
    9.965765530605625e-07,
    3.1379484620673143e-09,
)
_ERF_NARROW_Q = (
    1.0,
    0.5370312563625689,
    0.13491621774228588,
    0.020784168561996344,
    0.0021466584264533332,
    0.00015013136385631958,
    6.827451835578119e-06,
    8.516877491215536e-08,
)
# Cody 1969, second interval: erfc(x) = exp(-x**2) R(x) for 0.46875 <= x <= 4.
_ERFC_MIDDLE_P = (
    1.23033935479799725e03,
    2.05107837782607147e03,
    1.71204761263407058e03,
    8.81952221241769090e02,
    2.98635138197400131e02,
    6.61191906371416295e01,
    8.88314979438837594e00,
    5.64188496988670089e-01,
    2.15311535474403846e-08,
)
_ERFC_MIDDLE_Q = (
    1.23033935480374942e03,
    3.43936767414372164e03,
    4.36261909014324716e03,
    3.29079923573345963e03,
    1.62138957456669019e03,
    5.37181101862009858e02,
    1.17693950891312499e02,
    1.57449261107098347e01,
    1.0,
)
# Cody 1969, third interval: erfc(x) = exp(-x**2)/x (1/sqrt(pi) - R(1/x**2)/x**2) for x >= 4.
_ERFC_FAR_P = (
    6.58749161529837803e-04,
    1.60837851487422766e-02,
    1.25781726111229246e-01,
    3.60344899949804439e-01,
    3.05326634961232344e-01,
    1.63153871373020978e-02,
)
_ERFC_FAR_Q = (
    2.33520497626869185e-03,
    6.05183413124413191e-02,
    5.27905102951428412e-01,
    1.87295284992346725e00,
    2.56852019228982242e00,
    1.0,
)
_ERFC_UNDERFLOW = 28.0  # erfc(27.3) is already below the smallest subnormal

# With p = (1 + x)/2 the normal quantile is sqrt(2) erfinv(x).
_CENTRE_EDGE = 0.85
_FAR_EDGE = 1.0 - 2.0 * math.exp(-25.0)  # where sqrt(-log p), p = (1 - |x|)/2, passes 5


def erf(x: npt.ArrayLike) -> Array:
    """Return the error function 2/sqrt(pi) * integral of exp(-t**2) from 0 to each element.

    >>> float(erf(0.5))
    0.5204998778130465
    """
    return evaluate("erf", x, _erf, narrow=_erf_narrow)


def erfc(x: npt.ArrayLike) -> Array:
    """Return 1 - erf(x), without cancellation where erf(x) is near 1.

    >>> float(erfc(float("inf")))
    0.0
    """
    return evaluate("erfc", x, erfc_block)


def erfinv(x: npt.ArrayLike) -> Array:
    """Return the inverse error function: infinite at -1 and 1, NaN outside [-1, 1].

    >>> float(erfinv(1.0))
    inf
    """
    return evaluate("erfinv", x, _erfinv)


def _erf(x: Block) -> Block:
    return piecewise(x, (1.0,), (_erf_small, _erf_large), key=np.abs(x))


def _erf_small(x: Block) -> Block:
    return x * rational(x * x, _ERF_P, _ERF_Q)


def _erf_large(x: Block) -> Block:
    # erf(6) rounds to 1, and below it the error of erfc is too small beside 1 to need a third
    # interval or the compensated square.
    a = np.minimum(np.abs(x), 6.0)
    tail = np.exp(-a * a) * rational(a, _ERFC_MIDDLE_P, _ERFC_MIDDLE_Q)
    y: Block = np.copysign(1.0 - tail, x)
    return y


def _erf_narrow(x: Block) -> Block:
    x = np.clip(x, -_ERF_NARROW_LIMIT, _ERF_NARROW_LIMIT)
    return x * rational(x * x, _ERF_NARROW_P, _ERF_NARROW_Q)


def erfc_block(x: Block) -> Block:
    return piecewise(x, (0.5, 4.0), (_erfc_from_erf, _erfc_middle, _erfc_far))


def _erfc_from_erf(x: Block) -> Block:
    return 1.0 - _erf(x)


def _erfc_middle(x: Block) -> Block:
    return _exp_minus_square(x) * _scaled_middle(x)


def _erfc_far(x: Block) -> Block:
    x = np.minimum(x, _ERFC_UNDERFLOW)
    return _exp_minus_square(x) * _scaled_far(x)


def scaled_erfc_block(x: Block) -> Block:
    """Return exp(x**2) erfc(x) for x >= 0."""
    return piecewise(x, (0.5, 4.0), (_scaled_near, _scaled_middle, _scaled_far))


def _scaled_near(x: Block) -> Block:
    return np.exp(x * x) * _erfc_from_erf(x)


def _scaled_middle(x: Block) -> Block:
    return rational(x, _ERFC_MIDDLE_P, _ERFC_MIDDLE_Q)


def _scaled_far(x: Block) -> Block:
    w = 1.0 / (x * x)
    return (1.0 / math.sqrt(math.pi) - w * rational(w, _ERFC_FAR_P, _ERFC_FAR_Q)) / x


def _exp_minus_square(x: Block) -> Block:
    """Return exp(-x**2) with the rounding error of the square put back."""
    square, lost = square_parts(x)
    y = np.exp(-square)
    return y - y * lost


def square_parts(x: Block) -> tuple[Block, Block]:
    """Return x**2, and what rounding lost of it.

    Half an ulp of x**2 = 700 is 6e-14, and an exponential turns it into that relative error. The
    head of x has 24 bits, so its square and its product with the 29-bit tail are exact (Dekker).
    """
    square = x * x
    head = x.astype(np.float32).astype(np.float64)
    tail = x - head
    lost = (head * head - square) + 2.0 * head * tail + tail * tail
    return square, lost


def _erfinv(x: Block) -> Block:
    branches = (_erfinv_centre, _erfinv_middle, _erfinv_far)
    return piecewise(x, (_CENTRE_EDGE, _FAR_EDGE), branches, key=np.abs(x))


def _erfinv_centre(x: Block) -> Block:
    r = 0.180625 - 0.25 * (x * x)
    return x * (rational(r, *PPND16.centre) * math.sqrt(0.125))


def _erfinv_middle(x: Block) -> Block:
    r = _tail_radius(x) - 1.6
    quantile = rational(r, *PPND16.tail)
    return np.copysign(quantile * math.sqrt(0.5), x)


def _erfinv_far(x: Block) -> Block:
    r = _tail_radius(x) - 5.0
    quantile = rational(r, *PPND16.far_tail) * math.sqrt(0.5)
    return np.copysign(np.where(np.abs(x) == 1.0, np.inf, quantile), x)


def _tail_radius(x: Block) -> Block:
    """Return sqrt(-log p) for the tail probability p = (1 - |x|)/2, which is exact here."""
    return np.sqrt(-np.log(0.5 - 0.5 * np.abs(x)))
