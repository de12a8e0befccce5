"""The gamma distribution, by rejection that stays a pure function of the element's position.

Block ``counter + i`` of round ``k`` (the second word of the Philox counter) belongs to element
``i`` alone. An element that is rejected goes on to its own next round, whatever happens to others:
results depend neither on chunking nor on the number of threads.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dtype import DType, as_dtype
from ..errors import ArgumentError
from ..rng import WORDS_PER_BLOCK, Words, philox_bits, philox_blocks
from ..shape import as_shape, size_of
from .exact import exact_exp, exact_log, log_of_normal
from .lanes import (
    CHUNK,
    Array,
    flat_parameter,
    open_unit,
    scattered_words,
    standard_normal,
)

__all__ = ["gamma", "gamma_blocks"]

_FEW: Final = 32  # below this many blocks, moving the bit generator to each is cheaper


def gamma_blocks(shape: Any) -> int:
    """Return how many Philox blocks ``gamma`` consumes: one per element."""
    return size_of(as_shape(shape))


def gamma(key: int, counter: int, shape: Any, *, alpha: ArrayLike, dtype: Any = "float32") -> Array:
    """Draw gamma variates of shape parameter ``alpha`` (broadcast) and scale 1, in float64.

    Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000). The
    result is at least the smallest normal number of ``dtype``, so its logarithm is finite.
    """
    dtype, shape = as_dtype(dtype), as_shape(shape)
    alphas = np.asarray(alpha, np.float64)
    if not np.all((alphas > 0) & (alphas < np.inf)):
        raise ArgumentError(f"gamma: alpha must be positive and finite. Received: {alphas}")
    if counter + size_of(shape) > 1 << 64:  # the next counter word counts rounds
        raise ArgumentError(f"gamma: counter must stay below 2**64. Received: {counter}")
    flat = flat_parameter(alphas, shape, "gamma: alpha")
    with np.errstate(over="ignore", under="ignore"):
        values = _rejection_rounds(key, counter, flat)
        return _at_least_tiny(values, dtype).astype(dtype, copy=False).reshape(shape)


def _rejection_rounds(key: int, counter: int, alphas: Array) -> Array:
    values = np.empty(alphas.size)
    pending = _first_round(key, counter, alphas, values)
    domain = 1
    while pending.size:
        words = _round_words(key, counter, pending, domain)
        drawn, accepted = _attempt(words, alphas[pending])
        values[pending[accepted]] = drawn[accepted]
        pending = pending[~accepted]
        domain += 1
    return values


def _first_round(key: int, counter: int, alphas: Array, values: Array) -> NDArray[np.intp]:
    """Fill ``values`` with the first attempts and return the positions that were rejected."""
    rejected = [np.empty(0, np.intp)]
    for start in range(0, alphas.size, CHUNK):
        part = slice(start, min(start + CHUNK, alphas.size))
        words = philox_bits(key, counter + start, WORDS_PER_BLOCK * (part.stop - start))
        values[part], accepted = _attempt(words.reshape(-1, WORDS_PER_BLOCK), alphas[part])
        rejected.append(start + np.flatnonzero(~accepted))
    return np.concatenate(rejected)


def _round_words(key: int, counter: int, positions: NDArray[np.intp], domain: int) -> Words:
    if positions.size > _FEW:
        counters = positions.astype(np.uint64) + np.uint64(counter)
        return philox_blocks(key, counters, domain=domain)
    base = counter + (domain << 64)
    return np.stack([philox_bits(key, base + i, WORDS_PER_BLOCK) for i in positions.tolist()])


def _attempt(words: Words, alpha: Array) -> tuple[Array, NDArray[np.bool]]:
    """Return one proposal per block and whether it is accepted (Marsaglia and Tsang, section 2)."""
    d = np.where(alpha < 1, alpha + 1, alpha) - 1 / 3
    x = standard_normal(scattered_words(words, 0))
    u = open_unit(scattered_words(words, 1))
    root = 1 + x / np.sqrt(9 * d)
    v = root * root * root
    positive = v > 0
    bound = 0.5 * x * x + (d - d * v + d * exact_log(np.where(positive, v, 1.0)))
    return _boosted(d * v, alpha, words), positive & (log_of_normal(u) < bound)


def _boosted(values: Array, alpha: Array, words: Words) -> Array:
    """Turn variates of alpha + 1 into those of alpha < 1 with a factor U**(1/alpha) (section 6)."""
    small = np.flatnonzero(alpha < 1)
    if small.size:
        log_u = log_of_normal(open_unit(scattered_words(words[small], 2)))
        values[small] *= exact_exp(log_u / alpha[small])
    return values


def _at_least_tiny(values: Array, dtype: DType) -> Array:
    # bfloat16, which NumPy's finfo does not know, has the exponents of float32
    tiny = np.finfo(dtype if dtype.kind == "f" else np.float32).tiny
    return np.maximum(values, float(tiny))
