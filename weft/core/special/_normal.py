"""The distribution function of the normal distribution.

Phi(-a) = exp(-a**2 / 2) t P(1 - t) with t = 1 / (1 + TAIL_SLOPE a) for a >= 0: what the exponential
leaves, Mills' ratio, falls as 1 / a and is smooth in t. P was fitted on 0 <= a <= 14, by least
squares reweighted until the largest relative error, 4e-9, was as small as it gets; P(0) is exactly
1/2. Beyond 14 the result is below float32's range. Nothing cancels for any a. In float32 the
rounding of a**2 dominates: the relative error is below (6 + 1.5 a**2) 2**-24.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ._error import erfc_block
from ._kernel import Array, Block, evaluate, horner

if TYPE_CHECKING:  # slow to import
    import numpy.typing as npt

TAIL_SLOPE = 0.3
TAIL = (
    *(0.5, -0.829807307173, 0.618147887959, -0.0810460514079, -0.139594336137),
    *(0.0229357529051, 0.0109208416758, 0.0702714942871, -0.0726220164579, 0.0204801545915),
)


def normal_cdf(x: npt.ArrayLike) -> Array:
    """Return the probability that a standard normal variable is at most x.

    >>> float(normal_cdf(0.0))
    0.5
    """
    return evaluate("normal_cdf", x, _cdf, narrow=_cdf_narrow)


def _cdf(x: Block) -> Block:
    return 0.5 * erfc_block(x * -math.sqrt(0.5))


def _cdf_narrow(x: Block) -> Block:
    t = 1.0 / (1.0 + TAIL_SLOPE * np.abs(x))
    tail = np.exp(x * x * -0.5) * (t * horner(1.0 - t, TAIL))
    return np.where(x < 0.0, tail, 1.0 - tail)
