"""`tf.initializers`: how variables begin."""

from __future__ import annotations

import math
from inspect import signature
from typing import Any

import numpy as np

from . import filling, random_ops
from .dtypes import as_dtype
from .recording import Tensor, constant, constant_array

__all__ = [
    "Constant",
    "Identity",
    "Initializer",
    "Ones",
    "Orthogonal",
    "RandomNormal",
    "RandomUniform",
    "TruncatedNormal",
    "UniformUnitScaling",
    "VarianceScaling",
    "Zeros",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "lecun_normal",
    "lecun_uniform",
]


class Initializer:
    """Makes the first value of a variable: `initializer(shape, dtype)`."""

    dtype: Any = as_dtype("float32")

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return the value."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Return the settings."""
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """Return an initializer with settings."""
        return cls(**config)

    def _kind(self, dtype: Any) -> Any:
        return self.dtype if dtype is None else as_dtype(dtype)


class Zeros(Initializer):
    """All elements are 0."""

    def __init__(self, dtype: Any = "float32") -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return the value."""
        return filling.zeros(shape, self._kind(dtype))


class Ones(Zeros):
    """All elements are 1."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return the value."""
        return filling.ones(shape, self._kind(dtype))


class Constant(Initializer):
    """All elements are a value, or those of an array."""

    def __init__(self, value: Any = 0, dtype: Any = "float32", verify_shape: bool = False) -> None:
        self.value = value
        self.dtype = as_dtype(dtype)

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: Any = None, verify_shape: Any = None
    ) -> Tensor:
        """Return the value."""
        return constant(self.value, self._kind(dtype), shape=shape)


class _Drawn(Initializer):
    draw: Any = None

    def _drawn(self, draw: Any, a: Any, b: Any, shape: Any, dtype: Any) -> Tensor:
        made: Tensor = draw(shape, a, b, self._kind(dtype), seed=self.seed)
        return made

    seed: Any = None


class RandomNormal(_Drawn):
    """Normal draws."""

    def __init__(
        self, mean: float = 0.0, stddev: float = 1.0, seed: Any = None, dtype: Any = "float32"
    ) -> None:
        self.mean, self.stddev, self.seed, self.dtype = mean, stddev, seed, as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return the value."""
        return self._drawn(random_ops.random_normal, self.mean, self.stddev, shape, dtype)


class TruncatedNormal(RandomNormal):
    """Normal draws within two standard deviations."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return the value."""
        return self._drawn(random_ops.truncated_normal, self.mean, self.stddev, shape, dtype)


class RandomUniform(_Drawn):
    """Uniform draws."""

    def __init__(
        self, minval: Any = 0, maxval: Any = None, seed: Any = None, dtype: Any = "float32"
    ) -> None:
        self.minval, self.maxval, self.seed, self.dtype = minval, maxval, seed, as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return the value."""
        return self._drawn(random_ops.random_uniform, self.minval, self.maxval, shape, dtype)


class UniformUnitScaling(_Drawn):
    """Uniform draws that keep the scale of what is multiplied."""

    def __init__(self, factor: float = 1.0, seed: Any = None, dtype: Any = "float32") -> None:
        self.factor, self.seed, self.dtype = factor, seed, as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return the value."""
        sizes = _sizes(shape)
        bound = math.sqrt(3 / max(1.0, float(np.prod(sizes[:-1])))) * self.factor
        return self._drawn(random_ops.random_uniform, -bound, bound, shape, dtype)


class VarianceScaling(_Drawn):
    """Draws whose variance follows from the numbers of inputs and outputs."""

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: Any = None,
        dtype: Any = "float32",
    ) -> None:
        if scale <= 0.0:
            raise ValueError("`scale` must be positive float.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"Invalid `mode` argument: {mode}")
        known = ("normal", "uniform", "truncated_normal", "untruncated_normal")
        if distribution.lower() not in known:
            raise ValueError(f"Invalid `distribution` argument: {distribution}")
        self.scale, self.mode, self.distribution = scale, mode, distribution.lower()
        self.seed, self.dtype = seed, as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return the value."""
        fan_in, fan_out = fans(_sizes(shape))
        count = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, count)
        if self.distribution == "uniform":
            bound = math.sqrt(3.0 * variance)
            return self._drawn(random_ops.random_uniform, -bound, bound, shape, dtype)
        if self.distribution == "untruncated_normal":
            return self._drawn(random_ops.random_normal, 0.0, math.sqrt(variance), shape, dtype)
        # The draws within two deviations have a smaller deviation than those they are taken from.
        deviation = math.sqrt(variance) / 0.87962566103423978
        return self._drawn(random_ops.truncated_normal, 0.0, deviation, shape, dtype)


class Orthogonal(Initializer):
    """An orthogonal matrix."""

    def __init__(self, gain: float = 1.0, seed: Any = None, dtype: Any = "float32") -> None:
        self.gain, self.seed, self.dtype = gain, seed, as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return the value."""
        sizes = _sizes(shape)
        if len(sizes) < 2:
            raise ValueError("The tensor to initialize must be at least two-dimensional")
        rows, columns = int(np.prod(sizes[:-1])), sizes[-1]
        draws = np.random.default_rng(self.seed).standard_normal(
            (max(rows, columns), min(rows, columns))
        )
        q, r = np.linalg.qr(draws)
        q = q * np.sign(np.diag(r))
        whole = self.gain * (q if rows >= columns else q.T)
        return constant(whole.reshape(sizes), self._kind(dtype))


class Identity(Initializer):
    """The identity matrix."""

    def __init__(self, gain: float = 1.0, dtype: Any = "float32") -> None:
        self.gain, self.dtype = gain, as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return the value."""
        return constant(self.gain * np.eye(_sizes(shape)[0], _sizes(shape)[1]), self._kind(dtype))


def _sizes(shape: Any) -> list[int]:
    return [int(size) for size in (shape.as_list() if hasattr(shape, "as_list") else shape)]


def fans(sizes: list[int]) -> tuple[float, float]:
    """Return how many inputs and outputs a weight of this shape has."""
    if not sizes:
        return 1.0, 1.0
    if len(sizes) == 1:
        return float(sizes[0]), float(sizes[0])
    window = float(np.prod(sizes[:-2]))
    return sizes[-2] * window, sizes[-1] * window


def _scaled(public: str, scale: float, mode: str, distribution: str) -> Any:
    def made(seed: Any = None, dtype: Any = "float32") -> VarianceScaling:
        return VarianceScaling(scale, mode, distribution, seed, dtype)

    made.__name__ = made.__qualname__ = public
    made.__doc__ = f"Return the initializer {public}."
    return made


glorot_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform")
glorot_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal")
he_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal")
he_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform")
zeros, ones, variance_scaling = Zeros, Ones, VarianceScaling
random_normal, random_uniform, truncated_normal = RandomNormal, RandomUniform, TruncatedNormal
orthogonal, identity = Orthogonal, Identity


def as_initializer(given: Any, shape: Any, dtype: Any) -> Any:
    """Return a function that makes the first value, from an initializer, a tensor or a value."""
    if given is None:
        kind = as_dtype(dtype)
        given = glorot_uniform() if kind.is_floating else Zeros(kind)
    if isinstance(given, type):
        given = given()
    if not callable(given):
        array_or_tensor = given if hasattr(given, "op") else constant_array(given, dtype)
        return lambda: array_or_tensor
    return lambda: _called(given, shape, dtype)


def _called(given: Any, shape: Any, dtype: Any) -> Any:
    if isinstance(given, Initializer):
        return given(shape, dtype)
    try:
        return given(shape, dtype=dtype, partition_info=None)
    except TypeError:  # a function of the program's own
        return given(shape, dtype=dtype) if _takes_dtype(given) else given(shape)


def _takes_dtype(function: Any) -> bool:
    return "dtype" in signature(function).parameters
