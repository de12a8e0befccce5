"""From Philox words to the uniform and normal lanes that every distribution is made of.

A *lane* is the share of random bits of one element: a 32-bit half of a word (low half first) for
floats of at most 32 bits, a whole 64-bit word for every other dtype. Element ``i`` of a draw reads
lane ``i`` and nothing else, so a longer draw begins with the shorter one.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..dtype import DType, as_dtype, is_float
from ..errors import ShapeError
from ..rng import WORDS_PER_BLOCK, Words, philox_bits
from ..scalar.arrays import on_arrays
from ..shape import Shape, as_shape, broadcast, size_of
from . import formulas

__all__ = [
    "blocks_for",
    "closed_unit",
    "fill",
    "flat_parameter",
    "lane_bits",
    "open_unit",
    "scattered_words",
    "standard_normal",
]

Array: TypeAlias = NDArray[Any]
Transform: TypeAlias = Callable[[Array, slice], Array]

# Elements worked on at once: their temporaries stay in the second-level cache. A whole number of
# blocks of either lane width.
CHUNK: Final = 8192

closed_unit = on_arrays(formulas.closed_unit)
open_unit = on_arrays(formulas.open_unit)
standard_normal = on_arrays(formulas.standard_normal)


def blocks_for(shape: Any, dtype: Any) -> int:
    """Return how many Philox blocks a draw of ``shape`` consumes.

    Holds for every distribution of one lane per element; ``gamma_blocks`` and
    ``categorical_blocks`` speak for the two others. ``dtype`` is that of the result, for
    ``bernoulli`` that of the probabilities.
    """
    lanes_per_block = WORDS_PER_BLOCK * 64 // lane_bits(as_dtype(dtype))
    return -(-size_of(as_shape(shape)) // lanes_per_block)


def lane_bits(dtype: DType) -> int:
    """Return the number of random bits an element of ``dtype`` is made from, 32 or 64."""
    return 32 if is_float(dtype) and dtype.itemsize <= 4 else 64


def fill(
    key: int, counter: int, shape: Shape, dtype: DType, bits: int, transform: Transform
) -> Array:
    """Return the array of ``transform(lanes, positions)``, made in chunks and cast to ``dtype``."""
    out = np.empty(size_of(shape), dtype)
    lanes_per_block = WORDS_PER_BLOCK * 64 // bits
    with np.errstate(over="ignore", under="ignore"):  # what leaves the range becomes inf or 0
        for start in range(0, out.size, CHUNK):
            part = slice(start, min(start + CHUNK, out.size))
            words_from = counter + start // lanes_per_block
            out[part] = transform(_lanes(key, words_from, part.stop - start, bits), part)
    return out.reshape(shape)


def _lanes(key: int, counter: int, n: int, bits: int) -> Array:
    if bits == 64:
        return philox_bits(key, counter, n)
    words = philox_bits(key, counter, (n + 1) >> 1)
    return words.astype("<u8", copy=False).view("<u4")[:n]


def flat_parameter(values: Array, shape: Shape, what: str) -> Array:
    """Return ``values`` broadcast to ``shape`` and flattened, not copied if it is one number."""
    if broadcast(values.shape, shape) != shape:
        raise ShapeError(
            f"{what} of shape {values.shape} does not broadcast to the shape of the draw, {shape}"
        )
    if values.size == 1:
        return np.broadcast_to(values.reshape(()), (size_of(shape),))
    return np.broadcast_to(values, shape).reshape(-1)


def scattered_words(words: Words, column: int) -> Words:
    """Return one word of each block, contiguous."""
    return np.ascontiguousarray(words[:, column])
