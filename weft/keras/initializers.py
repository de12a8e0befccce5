"""Initializers by Keras's names: functions of a shape in Keras's layout, outputs last."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.dtype import Array
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.rng import Generator
from ..core.shape import size_of
from ..nn import init
from ..ops.creation import empty
from ..train.registry import hint
from .naming import snake_case

# The standard deviation of a normal distribution that is cut off at two of its own.
_OF_TRUNCATED = 0.87962566103423978


class Initializer:
    """Base of initializers: `initializer(shape)` returns an array."""

    def __call__(self, shape: Any, dtype: Any = None) -> Array:
        """Return values for a weight."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__")

    def get_config(self) -> dict[str, Any]:
        """Return the options."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Return the initializer of a configuration."""
        return cls(**config)


class Constant(Initializer):
    """One number."""

    def __init__(self, value: float = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None) -> Array:
        """Return values for a weight."""
        return np.full(shape, self.value, dtype or np.float32)


class Zeros(Initializer):
    """Zeros."""

    def __call__(self, shape: Any, dtype: Any = None) -> Array:
        """Return values for a weight."""
        return np.zeros(shape, dtype or np.float32)


class Ones(Initializer):
    """Ones."""

    def __call__(self, shape: Any, dtype: Any = None) -> Array:
        """Return values for a weight."""
        return np.ones(shape, dtype or np.float32)


class Identity(Initializer):
    """A matrix with `gain` on its diagonal."""

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Any, dtype: Any = None) -> Array:
        """Return values for a weight."""
        if len(shape) != 2:
            raise ArgumentError(f"Identity initializes matrices. Received: shape {tuple(shape)}")
        return self.gain * np.eye(*shape, dtype=dtype or np.float32)


class _Random(Initializer):
    """Base of random ones; with a seed, each call draws the same."""

    seed: int | None

    def _filled(self, fill: Any, shape: Any, dtype: Any, *options: float) -> Array:
        generator = None if self.seed is None else Generator(self.seed)
        tensor = empty(tuple(shape), dtype=dtype or np.float32)
        return np.array(fill(tensor, *options, generator=generator))


class RandomNormal(_Random):
    """Draws from a normal distribution."""

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: Any, dtype: Any = None) -> Array:
        """Return values for a weight."""
        return self._filled(init.normal_, shape, dtype, self.mean, self.stddev)


class TruncatedNormal(RandomNormal):
    """Draws from a normal distribution, those beyond two standard deviations drawn again."""

    def __call__(self, shape: Any, dtype: Any = None) -> Array:
        """Return values for a weight."""
        ends = self.mean - 2 * self.stddev, self.mean + 2 * self.stddev
        return self._filled(init.trunc_normal_, shape, dtype, self.mean, self.stddev, *ends)


class RandomUniform(_Random):
    """Draws from a uniform distribution."""

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None
    ) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: Any, dtype: Any = None) -> Array:
        """Return values for a weight."""
        return self._filled(init.uniform_, shape, dtype, self.minval, self.maxval)


class Orthogonal(_Random):
    """A matrix of orthonormal columns or rows, times gain; axes before the last are one."""

    def __init__(self, gain: float = 1.0, seed: int | None = None) -> None:
        self.gain, self.seed = gain, seed

    def __call__(self, shape: Any, dtype: Any = None) -> Array:
        """Return values for a weight."""
        rows = (shape[-1], size_of(shape[:-1]))
        made = self._filled(init.orthogonal_, rows, dtype, self.gain)
        return np.ascontiguousarray(made.T).reshape(shape)


class VarianceScaling(_Random):
    """Draws whose variance is `scale` over the number of inputs, outputs, or their mean."""

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
    ) -> None:
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ArgumentError(f"mode is 'fan_in', 'fan_out' or 'fan_avg'. Received: {mode!r}")
        if distribution not in ("truncated_normal", "untruncated_normal", "uniform"):
            raise ArgumentError(
                "distribution is 'truncated_normal', 'untruncated_normal' or 'uniform'. "
                f"Received: {distribution!r}"
            )

    def __call__(self, shape: Any, dtype: Any = None) -> Array:
        """Return values for a weight."""
        std = math.sqrt(self.scale / max(1.0, self._fan(shape)))
        if self.distribution == "uniform":
            limit = math.sqrt(3.0) * std
            return self._filled(init.uniform_, shape, dtype, -limit, limit)
        if self.distribution == "untruncated_normal":
            return self._filled(init.normal_, shape, dtype, 0.0, std)
        std /= _OF_TRUNCATED
        return self._filled(init.trunc_normal_, shape, dtype, 0.0, std, -2 * std, 2 * std)

    def _fan(self, shape: Any) -> float:
        if len(shape) < 2:
            inputs = outputs = size_of(shape)
        else:
            positions = size_of(shape[:-2])
            inputs, outputs = shape[-2] * positions, shape[-1] * positions
        return {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2}[self.mode]


class _Scaled(VarianceScaling):
    """A VarianceScaling under a name of its own."""

    _choice: tuple[float, str, str]

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(*self._choice, seed=seed)

    def get_config(self) -> dict[str, Any]:
        """Return the options."""
        return {"seed": self.seed}


class GlorotUniform(_Scaled):
    """Uniform draws with the variance 2 / (inputs + outputs) (Glorot and Bengio 2010)."""

    _choice = (1.0, "fan_avg", "uniform")


class GlorotNormal(_Scaled):
    """Normal draws with the variance 2 / (inputs + outputs)."""

    _choice = (1.0, "fan_avg", "truncated_normal")


class HeUniform(_Scaled):
    """Uniform draws with the variance 2 / inputs (He et al. 2015)."""

    _choice = (2.0, "fan_in", "uniform")


class HeNormal(_Scaled):
    """Normal draws with the variance 2 / inputs."""

    _choice = (2.0, "fan_in", "truncated_normal")


class LecunUniform(_Scaled):
    """Uniform draws with the variance 1 / inputs."""

    _choice = (1.0, "fan_in", "uniform")


class LecunNormal(_Scaled):
    """Normal draws with the variance 1 / inputs."""

    _choice = (1.0, "fan_in", "truncated_normal")


_CLASSES: tuple[type[Initializer], ...] = (
    *(Constant, Zeros, Ones, Identity, RandomNormal, TruncatedNormal, RandomUniform, Orthogonal),
    *(VarianceScaling, GlorotUniform, GlorotNormal, HeUniform, HeNormal),
    *(LecunUniform, LecunNormal),
)
INITIALIZERS = {name: c for c in _CLASSES for name in (c.__name__, snake_case(c.__name__))}


def get(identifier: Any) -> Any:
    """Return an initializer from its name, a configuration, or a function of a shape."""
    if isinstance(identifier, dict):
        return get(identifier["class_name"]).from_config(identifier.get("config", {}))
    if isinstance(identifier, str):
        if identifier not in INITIALIZERS:
            known = hint(identifier, INITIALIZERS)
            raise ArgumentError(f"there is no initializer {identifier!r}; {known}")
        return INITIALIZERS[identifier]()
    if isinstance(identifier, type) and issubclass(identifier, Initializer):
        return identifier()
    if callable(identifier):
        return identifier
    raise ArgumentTypeError(f"an initializer is a name or an object. Received: {identifier!r:.60}")


def serialize(initializer: Any) -> Any:
    """Return the configuration of an initializer."""
    if not isinstance(initializer, Initializer):
        return str(getattr(initializer, "__name__", initializer))
    return {"class_name": type(initializer).__name__, "config": initializer.get_config()}
