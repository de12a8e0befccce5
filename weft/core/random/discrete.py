"""Discrete distributions: integers, coin flips, categories and permutations.

Each is a pure function of ``(key, counter)`` and its parameters. Except for ``categorical`` the
blocks consumed are ``blocks_for(shape, dtype)``.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dtype import DType, as_dtype, is_integer
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ordering import first_places, sorting_places
from ..rng import Words, multiply_high, philox_bits
from ..scalar.arrays import on_arrays
from ..shape import Shape, as_int, as_shape, size_of
from . import formulas
from .exact import exact_exp, exact_log, log_of_normal
from .lanes import (
    Array,
    blocks_for,
    closed_unit,
    fill,
    flat_parameter,
    lane_bits,
    open_unit,
)

__all__ = ["bernoulli", "categorical", "categorical_blocks", "permutation", "randint"]

_bernoulli = on_arrays(formulas.bernoulli)
_MASK64: Final = (1 << 64) - 1
_WORD: Final = np.dtype(np.uint64)
_SEARCH_BY_ROW: Final = 64  # samples per row from which a search per row beats one over all rows


def randint(
    key: int, counter: int, shape: Any, *, low: int = 0, high: int, dtype: Any = "int64"
) -> Array:
    """Draw integers from [low, high): ``low`` plus the upper 64 bits of ``word * (high - low)``.

    No probability is off by more than 2**-64; ``high`` may be one above the largest value.
    """
    dtype, shape = as_dtype(dtype), as_shape(shape)
    low, high = as_int(low, "low"), as_int(high, "high")
    _check_integer_range(low, high, dtype)
    span, offset = high - low, np.uint64(low & _MASK64)

    def transform(words: Words, _: slice) -> Array:
        drawn = multiply_high(words, span) if span <= _MASK64 else words
        result: Array = drawn + offset  # modulo 2**64, and 2**bits when cast: two's complement
        return result.astype(dtype)

    return fill(key, counter, shape, dtype, 64, transform)


def bernoulli(key: int, counter: int, shape: Any, *, p: ArrayLike) -> NDArray[np.bool]:
    """Draw True with probability ``p`` (broadcast to ``shape``): a uniform of [0, 1) is below it.

    Probabilities of float32 or narrower are resolved to 2**-32, float64 (and Python floats) to
    2**-53.
    """
    shape, given = as_shape(shape), np.asarray(p)
    bits = lane_bits(given.dtype)
    probabilities = given.astype(np.float64)
    if not np.all((probabilities >= 0) & (probabilities <= 1)):
        raise ArgumentError(f"bernoulli: p must lie in [0, 1]. Received: {given}")
    flat = flat_parameter(probabilities, shape, "bernoulli: p")

    def transform(lanes: Array, part: slice) -> Any:
        return _bernoulli(lanes, flat[part])

    return fill(key, counter, shape, np.dtype(np.bool), bits, transform)


def permutation(key: int, counter: int, n: int) -> NDArray[np.int64]:
    """Draw a random order of 0 ... n-1: the stable sorting order of n words."""
    (n,) = as_shape(as_int(n, "n"), "n")
    return sorting_places(philox_bits(key, counter, n), 0, False)


def categorical_blocks(shape: Any, num_samples: int, *, replacement: bool = True) -> int:
    """Return how many Philox blocks ``categorical`` consumes for weights of ``shape`` (..., K)."""
    shape = as_shape(shape)
    return blocks_for((*shape[:-1], num_samples) if replacement else shape, _WORD)


def categorical(
    key: int,
    counter: int,
    *,
    probabilities: ArrayLike | None = None,
    logits: ArrayLike | None = None,
    num_samples: int = 1,
    replacement: bool = True,
) -> NDArray[np.int64]:
    """Draw category indices, shape (..., num_samples), from weights or logits of shape (..., K).

    Weights need not sum to one. With replacement by inversion of their running sum; without, the
    categories that ring first among exponential clocks, in the order in which they ring.
    """
    weights, is_log = _checked_weights(probabilities, logits)
    (num_samples,) = as_shape(as_int(num_samples, "num_samples"), "num_samples")
    rows = weights.reshape(-1, weights.shape[-1])
    if replacement:
        drawn = _with_replacement(key, counter, _scaled(rows, is_log), num_samples)
    else:
        log_weights = rows if is_log else exact_log(rows)
        drawn = _without_replacement(key, counter, log_weights, num_samples)
    return drawn.reshape(*weights.shape[:-1], num_samples)


def _check_integer_range(low: int, high: int, dtype: DType) -> None:
    if not is_integer(dtype):
        raise DTypeError(f"randint draws integers; give a dtype such as int64. Received: {dtype}")
    limits = np.iinfo(dtype)
    if not limits.min <= low < high <= limits.max + 1:
        raise ArgumentError(
            f"randint: need {limits.min} <= low < high <= {limits.max + 1} for {dtype}. "
            f"Received: low={low}, high={high}"
        )


def _checked_weights(
    probabilities: ArrayLike | None, logits: ArrayLike | None
) -> tuple[Array, bool]:
    """Return the weights in float64 and whether they are logarithms."""
    if (probabilities is None) == (logits is None):
        raise ArgumentError("categorical: give either probabilities or logits, not both or neither")
    is_log = probabilities is None
    weights = np.asarray(logits if is_log else probabilities, np.float64)
    if weights.ndim == 0 or weights.shape[-1] == 0:
        raise ShapeError(
            f"categorical: weights must have shape (..., K) with K >= 1. Received: {weights.shape}"
        )
    _check_weight_values(weights, is_log)
    return weights, is_log


def _check_weight_values(weights: Array, is_log: bool) -> None:
    name, zero = ("logits", -np.inf) if is_log else ("probabilities", 0.0)
    if not np.all((weights >= zero) & (weights < np.inf)):
        wanted = "below inf and not NaN" if is_log else "finite and not negative"
        raise ArgumentError(f"categorical: {name} must be {wanted}. Received: {weights}")
    if not np.all(np.any(weights > zero, axis=-1)):
        raise ArgumentError(f"categorical: each row of {name} must allow at least one category")


def _scaled(rows: Array, is_log: bool) -> Array:
    """Return weights whose largest in each row is 1: no running sum overflows or vanishes."""
    largest = rows.max(axis=1, keepdims=True)
    return exact_exp(rows - largest) if is_log else rows / largest


def _with_replacement(key: int, counter: int, rows: Array, num_samples: int) -> Array:
    shape: Shape = (rows.shape[0], num_samples)
    cumulative = np.add.accumulate(rows, axis=1)  # from left to right, unlike a pairwise sum
    u = closed_unit(philox_bits(key, counter, size_of(shape))).reshape(shape)
    targets = u * cumulative[:, -1:]
    if num_samples < _SEARCH_BY_ROW:
        return _bisect(cumulative, targets)
    searched = [
        np.searchsorted(row, target, side="right")
        for row, target in zip(cumulative, targets, strict=True)
    ]
    return np.array(searched, np.int64).reshape(shape)


def _bisect(cumulative: Array, targets: Array) -> NDArray[np.int64]:
    """Return the first index in each row whose running sum exceeds the target."""
    low = np.zeros(targets.shape, np.int64)
    high = np.full(targets.shape, cumulative.shape[1] - 1)
    for _ in range((cumulative.shape[1] - 1).bit_length()):
        middle = (low + high) >> 1
        beyond = np.take_along_axis(cumulative, middle, axis=1) <= targets
        low = np.where(beyond, middle + 1, low)
        high = np.where(beyond, high, middle)
    return low


def _without_replacement(key: int, counter: int, log_weights: Array, num_samples: int) -> Array:
    """Sort clocks that ring after an Exponential(weight) time, compared by their logarithms.

    Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006); the same as taking
    the largest logit + Gumbel noise.
    """
    possible = np.count_nonzero(log_weights > -np.inf, axis=1).min(initial=log_weights.shape[1])
    if num_samples > possible:
        raise ArgumentError(
            f"categorical: cannot draw {num_samples} different categories: a row has only "
            f"{possible} of non-zero weight; use replacement=True",
            wanted=num_samples,
            categories=log_weights.shape[1],
        )
    u = open_unit(philox_bits(key, counter, log_weights.size)).reshape(log_weights.shape)
    times = exact_log(-log_of_normal(u)) - log_weights
    return first_places(times, num_samples, False)
