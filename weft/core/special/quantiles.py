"""Draws from uniform numbers: quantiles of distributions without a formula for them.

Poisson's and the binomial distribution put their values in an order that begins at the mode and
goes up and down in turns (Kemp 1981): the uniform number is used up by one probability after the
other, which takes as many steps as a standard deviation has values. Von Mises's density is
integrated by Gauss's rule, and the quantile found by Newton's method inside an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ._gamma import lgamma
from ._kernel import Array, Block, as_float_array, evaluate_pair
from .incomplete import gauss_rule

_NEWTON_STEPS = 24


def poisson_draw(rate: npt.ArrayLike, u: npt.ArrayLike) -> Array:
    """Return Poisson numbers of a rate from uniform numbers in [0, 1).

    >>> float(poisson_draw(3.0, 0.1))  # P(3) = 0.224 comes first
    3.0
    """
    return evaluate_pair("poisson_draw", rate, u, _poisson)


def _poisson(rate: Block, u: Block) -> Block:
    valid = (rate > 0.0) & (rate < 1e15)
    rate = np.where(valid | (rate == 0.0), rate, np.nan)
    safe = np.where(valid, rate, 1.0)
    mode = np.floor(safe)
    first = np.exp(mode * np.log(safe) - safe - lgamma(mode + 1.0))
    found = _from_mode(
        u, mode, first, lambda k, at: safe[at] / k, lambda k, at: (k + 1.0) / safe[at]
    )
    return np.where(valid, found, np.where(rate == 0.0, 0.0, np.nan))


def binomial_draw(count: npt.ArrayLike, p: npt.ArrayLike, u: npt.ArrayLike) -> Array:
    """Return how many of `count` trials of probability p succeed, from uniform numbers.

    >>> float(binomial_draw(4.0, 1.0, 0.3))
    4.0
    """
    arrays = np.broadcast_arrays(*(as_float_array("binomial_draw", a) for a in (count, p, u)))
    shape, dtype = arrays[0].shape, np.result_type(*arrays)
    with np.errstate(all="ignore"):
        found = _binomial(*(a.reshape(-1).astype(np.float64) for a in arrays))
    return found.astype(dtype).reshape(shape)


def _binomial(n: Block, p: Block, u: Block) -> Block:
    inside = (p > 0.0) & (p < 1.0) & (n > 0.0) & (n < 1e15)
    count, q = np.where(inside, n, 1.0), np.where(inside, p, 0.5)
    mode = np.minimum(np.floor((count + 1.0) * q), count)
    ways = lgamma(count + 1.0) - lgamma(mode + 1.0) - lgamma(count - mode + 1.0)
    first = np.exp(ways + mode * np.log(q) + (count - mode) * np.log1p(-q))
    odds = q / (1.0 - q)

    def up(k: Block, at: Array) -> Block:
        return odds[at] * (count[at] - k + 1.0) / k

    def down(k: Block, at: Array) -> Block:
        return (k + 1.0) / (odds[at] * (count[at] - k))

    found = _from_mode(u, mode, first, up, down, count)
    certain = np.where((p == 1.0) & (n >= 0.0), n, np.where((p == 0.0) | (n == 0.0), 0.0, np.nan))
    return np.where(inside, found, certain)


def _from_mode(
    u: Block,
    mode: Block,
    first: Block,
    up: Callable[[Block, Array], Block],
    down: Callable[[Block, Array], Block],
    last: Block | None = None,
) -> Block:
    """Return the value at which the probabilities from the mode on have used up u.

    up, down   P(k) over P(k - 1), and P(k) over P(k + 1), at some of the elements
    """
    out, rest = mode.copy(), u - first
    at = np.flatnonzero(rest >= 0.0)
    high, low = first[at].copy(), first[at].copy()
    step = 0
    while at.size:
        step += 1
        k = mode[at] + step
        beyond = np.zeros(at.size, bool) if last is None else k > last[at]
        high = np.where(beyond, 0.0, high * up(k, at))
        below = mode[at] - step
        low = np.where(below < 0.0, 0.0, low * down(below, at))
        left = rest[at] - high
        took_high = left < 0.0
        left_low = left - low
        # Rounding may leave a little that no probability takes: the search ends there.
        done = took_high | (left_low < 0.0) | ((high < 1e-25) & (low < 1e-25))
        out[at[done]] = np.where(took_high | (below < 0.0), np.where(beyond, mode[at], k), below)[
            done
        ]
        rest[at] = left_low
        keep = ~done
        at, high, low = at[keep], high[keep], low[keep]
    return out


# -- von Mises ------------------------------------------------------------------------------------


def von_mises_draw(concentration: npt.ArrayLike, u: npt.ArrayLike) -> Array:
    """Return angles in [-pi, pi] around 0 from uniform numbers.

    >>> float(von_mises_draw(2.0, 0.5))
    0.0
    """
    return evaluate_pair("von_mises_draw", concentration, u, _von_mises)


def _von_mises(kappa: Block, u: Block) -> Block:
    valid = (kappa >= 0.0) & (kappa < np.inf)
    k = np.where(valid, kappa, 0.0)
    end = np.minimum(math.pi, 13.0 / np.sqrt(np.maximum(k, 1e-6)))  # beyond, it has fallen to 0
    target = np.abs(2.0 * u - 1.0) * _area(k, end)
    low, high, x = np.zeros_like(k), end.copy(), end * np.abs(u - 0.5)
    for _ in range(_NEWTON_STEPS):
        excess = _area(k, x) - target
        low, high = np.where(excess < 0.0, x, low), np.where(excess >= 0.0, x, high)
        moved = x - excess / _density(k, x)
        inside = (moved > low) & (moved < high)
        after = np.where(inside, moved, (low + high) / 2.0)
        if np.all(np.abs(after - x) <= 1e-14 * np.abs(x)):
            break
        x = after
    return np.where(valid, np.copysign(x, u - 0.5) * (u != 0.5), np.nan)


def _density(k: Block, x: Block) -> Block:
    half = np.sin(x / 2.0)
    y: Block = np.exp(-2.0 * k * half * half)
    return y


def _area(k: Block, x: Block) -> Block:
    total = np.zeros_like(x)
    for node, weight in zip(*gauss_rule(), strict=True):
        total += weight * _density(k, x * node)
    return total * x
