"""Initializers: objects that fill an array with the values a parameter begins with.

They draw from NumPy's random numbers, as Chainer does, so that `numpy.random.seed` fixes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .configuration import config, get_dtype

Array = np.ndarray[Any, Any]


class Initializer:
    """Base of initializers: called with an array, they fill it."""

    def __init__(self, dtype: Any = None) -> None:
        self.dtype = None if dtype is None else np.dtype(dtype)

    def __call__(self, array: Array) -> None:
        """Fill an array."""
        raise NotImplementedError("an initializer defines __call__(array)")


class Constant(Initializer):
    """Fill with one value, or with those of an array."""

    def __init__(self, fill_value: Any, dtype: Any = None) -> None:
        super().__init__(dtype)
        self.fill_value = fill_value

    def __call__(self, array: Array) -> None:
        """Fill an array."""
        array[...] = np.asarray(self.fill_value)


def Zero(dtype: Any = None) -> Constant:  # noqa: N802  (Chainer's name)
    """Fill with zeros."""
    return Constant(0.0, dtype)


def One(dtype: Any = None) -> Constant:  # noqa: N802  (Chainer's name)
    """Fill with ones."""
    return Constant(1.0, dtype)


def NaN(dtype: Any = None) -> Constant:  # noqa: N802  (Chainer's name)
    """Fill with NaN, for parameters that must be set before they are used."""
    return Constant(np.nan, dtype)


class Identity(Initializer):
    """Fill a square matrix with a multiple of the identity."""

    def __init__(self, scale: float = 1.0, dtype: Any = None) -> None:
        super().__init__(dtype)
        self.scale = scale

    def __call__(self, array: Array) -> None:
        """Fill an array."""
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            raise ValueError(f"Identity needs a square matrix. Received: shape {array.shape}")
        array[...] = np.identity(len(array)) * self.scale


class Normal(Initializer):
    """Draw from a normal distribution."""

    def __init__(self, scale: float = 0.05, dtype: Any = None, rng: Any = None) -> None:
        super().__init__(dtype)
        self.scale, self.rng = scale, rng

    def __call__(self, array: Array) -> None:
        """Fill an array."""
        array[...] = (self.rng or np.random).normal(0.0, self._deviation(array), array.shape)

    def _deviation(self, array: Array) -> float:
        return self.scale


class Uniform(Initializer):
    """Draw evenly between -scale and scale."""

    def __init__(self, scale: float = 0.05, dtype: Any = None, rng: Any = None) -> None:
        super().__init__(dtype)
        self.scale, self.rng = scale, rng

    def __call__(self, array: Array) -> None:
        """Fill an array."""
        reach = self._reach(array)
        array[...] = (self.rng or np.random).uniform(-reach, reach, array.shape)

    def _reach(self, array: Array) -> float:
        return self.scale


class LeCunNormal(Normal):
    """Normal with a deviation of scale * sqrt(1 / fan_in)."""

    def __init__(self, scale: float = 1.0, dtype: Any = None, rng: Any = None) -> None:
        super().__init__(scale, dtype, rng)

    def _deviation(self, array: Array) -> float:
        return float(self.scale * np.sqrt(1.0 / get_fans(array.shape)[0]))


class GlorotNormal(LeCunNormal):
    """Normal with a deviation of scale * sqrt(2 / (fan_in + fan_out))."""

    def _deviation(self, array: Array) -> float:
        return float(self.scale * np.sqrt(2.0 / sum(get_fans(array.shape))))


class HeNormal(LeCunNormal):
    """Normal with a deviation of scale * sqrt(2 / fan_in), or fan_out."""

    def __init__(
        self, scale: float = 1.0, dtype: Any = None, fan_option: str = "fan_in", rng: Any = None
    ) -> None:
        super().__init__(scale, dtype, rng)
        self.fan_option = _checked_fan(fan_option)

    def _deviation(self, array: Array) -> float:
        fan = get_fans(array.shape)[self.fan_option == "fan_out"]
        return float(self.scale * np.sqrt(2.0 / fan))


class LeCunUniform(Uniform):
    """Even with a reach of scale * sqrt(3 / fan_in)."""

    def __init__(self, scale: float = 1.0, dtype: Any = None, rng: Any = None) -> None:
        super().__init__(scale, dtype, rng)

    def _reach(self, array: Array) -> float:
        return float(self.scale * np.sqrt(3.0 / get_fans(array.shape)[0]))


class GlorotUniform(LeCunUniform):
    """Even with a reach of scale * sqrt(6 / (fan_in + fan_out))."""

    def _reach(self, array: Array) -> float:
        return float(self.scale * np.sqrt(6.0 / sum(get_fans(array.shape))))


class HeUniform(LeCunUniform):
    """Even with a reach of scale * sqrt(6 / fan_in)."""

    def _reach(self, array: Array) -> float:
        return float(self.scale * np.sqrt(6.0 / get_fans(array.shape)[0]))


class Orthogonal(Initializer):
    """Fill with a random matrix whose rows, or columns, are orthonormal."""

    def __init__(
        self, scale: float = 1.1, dtype: Any = None, mode: str = "auto", rng: Any = None
    ) -> None:
        super().__init__(dtype)
        self.scale, self.mode, self.rng = scale, mode, rng

    def __call__(self, array: Array) -> None:
        """Fill an array."""
        rows = len(array)
        columns = int(np.prod(array.shape[1:]))
        if rows > columns and self.mode == "embedding":
            raise ValueError(f"cannot make {rows} orthogonal vectors of {columns} elements")
        drawn = (self.rng or np.random).normal(0.0, 1.0, (rows, columns))
        tall = drawn if rows >= columns else drawn.T
        q, r = np.linalg.qr(tall)
        q = q * np.sign(np.diag(r))
        array[...] = (q if rows >= columns else q.T).reshape(array.shape) * self.scale


class UpsamplingDeconvFilter(Initializer):
    """Fill with a bilinear filter for deconvolutions that enlarge."""

    def __init__(
        self, upsampling_factor: int, interpolation_fn: str = "linear", dtype: Any = None
    ) -> None:
        super().__init__(dtype)
        self.factor = upsampling_factor

    def __call__(self, array: Array) -> None:
        """Fill an array."""
        size = array.shape[-1]
        centre = (size - 1) / 2
        line = 1 - np.abs(np.arange(size) - centre) / self.factor
        array[...] = 0
        for i in range(min(array.shape[:2])):
            array[i, i] = np.outer(line, line)


def _checked_fan(option: str) -> str:
    if option not in ("fan_in", "fan_out"):
        raise ValueError(f"fan_option must be 'fan_in' or 'fan_out'. Received: {option!r}")
    return option


def get_fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return how many inputs and outputs a unit of a weight has."""
    if len(shape) < 2:
        raise ValueError(f"a weight with fans has two axes or more. Received: shape {shape}")
    receptive = int(np.prod(shape[2:], dtype=np.int64))
    return int(shape[1] * receptive), int(shape[0] * receptive)


def as_initializer(value: Any) -> Any:
    """Return an initializer from one, an array, a number or None."""
    if value is None:
        return NaN()
    if callable(value):
        return value
    return Constant(value)


_get_initializer = as_initializer


def chosen(value: Any, default: Any) -> Any:
    """Return an initializer, the default where none is given."""
    return as_initializer(default if value is None else value)


def generate_array(
    initializer: Any, shape: Any, xp: Any = np, dtype: Any = None, device: Any = None
) -> Array:
    """Return an array of a shape that an initializer has filled."""
    own = getattr(initializer, "dtype", None)
    array = np.empty(shape, get_dtype(dtype or own or config.dtype))
    initializer(array)
    return array


def initial_array(initializer: Any, shape: Any) -> Array:
    """Return the values that a parameter begins with."""
    return generate_array(
        initializer, (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    )
