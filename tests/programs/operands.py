"""Random arrays: every dtype, sizes around the widths of vectors, empty ones, any layout."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft as wf

Array = np.ndarray[Any, Any]

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
HALVES = ("float16", "bfloat16")
FLOATS = (*HALVES, "float32", "float64")
INTEGERS = (*SIGNED, *UNSIGNED)
DTYPES = ("bool", *INTEGERS, *FLOATS)

SMALL = (1, 1, 2, 3, 4, 5, 7, 8, 9)
ODD = (15, 17, 31, 33, 63, 65, 127, 129, 130)
MOST_ELEMENTS = 12_000
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0)


def dtype_named(name: str) -> np.dtype[Any]:
    """Return a dtype by name, bfloat16 too."""
    return wf.bfloat16 if name == "bfloat16" else np.dtype(name)


def is_float(dtype: Any) -> bool:
    """Tell whether a dtype holds floating-point numbers."""
    return np.dtype(dtype).name in FLOATS


def lay_out(array: Array, way: int) -> Array:
    """Return an array in Fortran's order (0), with gaps (1), backwards (2), or as it is."""
    if way == 0:
        return array.copy(order="F")
    if way == 1 and array.ndim:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if way == 2 and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    return array


class Draw:
    """A seeded source of sizes, shapes and arrays."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def choose(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def size(self) -> int:
        if self.chance(0.05):
            return 0
        return int(self.rng.integers(1, 131)) if self.chance(0.2) else self.choose((*SMALL, *ODD))

    def shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        """Return a shape of not too many elements."""
        ndim = int(self.rng.integers(least, most + 1))
        while True:
            shape = tuple(self.size() for _ in range(ndim))
            if np.prod(shape, dtype=np.int64) <= MOST_ELEMENTS:
                return shape

    def array(self, shape: Any, dtype: Any, low: float = -6.0, high: float = 6.0) -> Array:
        """Return numbers from a range: whole ones of integers, and truth values of bool."""
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            values = self.rng.random(shape) < 0.5
        elif is_float(dtype):
            values = self.rng.uniform(low, high, shape)
        else:
            values = self.rng.integers(0 if dtype.kind == "u" else int(low), int(high) + 1, shape)
        return self.laid_out(np.asarray(values).astype(dtype))

    def special(self, array: Array) -> Array:
        """Return floats of which some are NaN, infinite or zeros of either sign."""
        some = self.rng.choice(SPECIAL, array.shape).astype(array.dtype)
        return self.laid_out(np.where(self.rng.random(array.shape) < 0.2, some, array))

    def whole(self, shape: Any, dtype: Any, largest: int = 4) -> Array:
        """Return small whole numbers in any dtype: their sums and products are exact."""
        dtype = np.dtype(dtype)
        low = 0 if dtype.kind in "ub" else -largest
        values = self.rng.integers(low, largest + 1, shape)
        return self.laid_out(np.asarray(values % 2 if dtype.kind == "b" else values).astype(dtype))

    def laid_out(self, array: Array) -> Array:
        """Return an array in C order, in Fortran's, with gaps, backwards, or one row repeated."""
        array = np.asarray(array)  # of no dimensions NumPy makes scalars
        way = int(self.rng.integers(8)) if array.ndim else 7
        if way == 3 and array.ndim > 1:
            return np.broadcast_to(array[:1], array.shape)
        if way == 4 and array.ndim > 1:
            return np.ascontiguousarray(np.moveaxis(array, 0, -1)).transpose(
                -1, *range(array.ndim - 1)
            )
        return lay_out(array, way)

    def axis(self, ndim: int) -> Any:
        """Return None, an axis from either end, or two of them."""
        if not ndim or self.chance(0.2):
            return None
        if ndim > 1 and self.chance(0.3):
            return tuple(self.rng.choice(ndim, 2, replace=False).tolist())
        return int(self.rng.integers(-ndim, ndim))

    def one_axis(self, ndim: int) -> int:
        return int(self.rng.integers(-ndim, ndim))

    def broadcastable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape that meets another one by broadcasting."""
        kept = tuple(1 if self.chance(0.2) else n for n in shape)
        return kept[int(self.rng.integers(len(kept) + 1)) :] if self.chance(0.3) else kept
