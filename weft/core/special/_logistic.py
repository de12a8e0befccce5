"""The logistic sigmoid, its logarithm, and the softplus function."""

import math
from functools import partial

import numpy as np
import numpy.typing as npt

from weft.core.special._kernel import Array, Block, evaluate, piecewise, rational

# log(1 + t) = t R(t) for 0 <= t <= 1, interpolated at Chebyshev points, relative error 2e-17.
_LOG1P_P = (
    1.0,
    2.884078160196529,
    3.1680934221171193,
    1.6571027366632078,
    0.42092963983886095,
    0.04687709431590254,
    0.001677636219269941,
    3.908068902991731e-06,
)
_LOG1P_Q = (
    1.0,
    3.384078160196529,
    4.5267991688820555,
    3.042476267705238,
    1.0792542574492547,
    0.19389629395780558,
    0.015289481254987738,
    0.00036165134876472283,
)
# The same for float32, relative error 8e-12.
_LOG1P_NARROW_P = (
    0.9999999999922403,
    1.5141475936054918,
    0.6543426937940741,
    0.07607301068413988,
    0.0005831377518488031,
)
_LOG1P_NARROW_Q = (
    1.0,
    2.014147592328884,
    1.3280831933448822,
    0.31873164277061106,
    0.02079424148119179,
)
_EXP_OVERFLOW = 709.0  # exp stays finite up to 709.78


def sigmoid(x: npt.ArrayLike) -> Array:
    """Return 1 / (1 + exp(-x)), without overflow on either side.

    >>> float(sigmoid(0.0))
    0.5
    """
    return evaluate("sigmoid", x, _sigmoid)


def log_sigmoid(x: npt.ArrayLike) -> Array:
    """Return log(sigmoid(x)), also where the sigmoid itself underflows or rounds to 1.

    >>> float(log_sigmoid(-1000.0))
    -1000.0
    """
    return evaluate("log_sigmoid", x, _log_sigmoid, narrow=_log_sigmoid_narrow)


def softplus(x: npt.ArrayLike, beta: float = 1.0, threshold: float | None = None) -> Array:
    """Return log(1 + exp(beta * x)) / beta, stable for every x.

    Nothing overflows, so no threshold is needed; one that is given returns x itself wherever
    beta * x exceeds it, as some frameworks do.

    >>> float(softplus(1000.0))
    1000.0
    """
    beta = float(beta)
    if beta == 0.0 or not math.isfinite(beta):
        raise ValueError(f"softplus: beta must be finite and not zero; received {beta}.")
    wide = partial(_softplus, beta, threshold)
    narrow = partial(_softplus_narrow, beta, threshold)
    return evaluate("softplus", x, wide, narrow=narrow)


def _sigmoid(x: Block) -> Block:
    return piecewise(x, (-_EXP_OVERFLOW,), (np.exp, _sigmoid_bulk))


def _sigmoid_bulk(x: Block) -> Block:
    y = np.exp(-x)
    y += 1.0
    return np.divide(1.0, y, out=y)


def _log_sigmoid(x: Block) -> Block:
    return np.minimum(x, 0.0) - _log1p_exp(x)


def _log_sigmoid_narrow(x: Block) -> Block:
    return np.minimum(x, 0.0) - _log1p_exp_narrow(x)


def _softplus(beta: float, threshold: float | None, x: Block) -> Block:
    z = beta * x
    return _softplus_tail(x, z, beta, threshold, _log1p_exp(z))


def _softplus_narrow(beta: float, threshold: float | None, x: Block) -> Block:
    z = beta * x
    return _softplus_tail(x, z, beta, threshold, _log1p_exp_narrow(z))


def _softplus_tail(
    x: Block, z: Block, beta: float, threshold: float | None, correction: Block
) -> Block:
    """Return (max(z, 0) + correction) / beta, or x beyond the threshold."""
    # max(beta x, 0)/beta is taken from x, because beta x may overflow and need not divide back.
    positive = np.maximum(x, 0.0) if beta > 0.0 else np.minimum(x, 0.0)
    value = positive + correction / beta
    return value if threshold is None else np.where(z > threshold, x, value)


def _log1p_exp(x: Block) -> Block:
    """Return log(1 + exp(-|x|)), the part of softplus that is not max(x, 0)."""
    t = np.exp(-np.abs(x))
    return t * rational(t, _LOG1P_P, _LOG1P_Q)


def _log1p_exp_narrow(x: Block) -> Block:
    t = np.exp(-np.abs(x))
    return t * rational(t, _LOG1P_NARROW_P, _LOG1P_NARROW_Q)
