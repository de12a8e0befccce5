"""Batch and layer normalisation, with Keras's meanings of momentum and epsilon."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...core.errors import ArgumentError, ShapeError
from ...core.modes import no_grad
from ...nn.calls import F
from .. import initializers
from .base import Layer
from .weights import Weight

_CORES = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


class BatchNormalization(Layer):
    """Normalise each channel over the batch.

    `momentum` is the share of the moving statistics that stays (Weft's and PyTorch's is the share
    that is replaced), and the moving variance is that of the batch itself, not the estimate that
    divides by one sample less. A layer with trainable=False uses the moving statistics.
    """

    _options = (
        *("axis", "momentum", "epsilon", "center", "scale", "beta_initializer"),
        *("gamma_initializer", "moving_mean_initializer", "moving_variance_initializer"),
    )
    core: Any

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.axis, self.momentum, self.epsilon = axis, float(momentum), float(epsilon)
        self.center, self.scale = bool(center), bool(scale)
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)
        self.moving_mean_initializer = initializers.get(moving_mean_initializer)
        self.moving_variance_initializer = initializers.get(moving_variance_initializer)

    def build(self, input_shape: Any) -> None:
        """Make gamma, beta and the moving statistics."""
        if len(input_shape) not in _CORES:
            raise ShapeError(f"{self.name} takes 2 to 5 dimensions. Received: {input_shape}")
        size = input_shape[self.axis]
        if size is None or self.axis % len(input_shape) == 0:
            raise ShapeError(f"{self.name}: axis {self.axis} of {input_shape} is no channel axis")
        make = _CORES[len(input_shape)]
        self.core = make(size, self.epsilon, 1.0 - self.momentum)
        for name, wanted in (("weight", self.scale), ("bias", self.center)):
            if not wanted:
                self.core.register_parameter(name, None)
        for weight in self.own_weights():
            initializer = getattr(self, f"{weight.name}_initializer")
            weight.assign(initializer(weight.shape))

    def call(self, inputs: Any) -> Any:
        """Return the normalised input."""
        x = inputs.moveaxis(self.axis, 1)
        core = self.core
        if not (self.training and self.trainable):
            made = F.batch_norm(
                *(x, core.running_mean, core.running_var, core.weight, core.bias),
                *(False, 0.0, core.eps),
            )
        else:
            before = core.running_var.clone()
            made = core(x)
            self._divide_by_all(before, x)
        return made.moveaxis(1, self.axis)

    def _divide_by_all(self, before: Any, x: Any) -> None:
        """Let the moving variance be that of Keras: the core's divides by one sample less."""
        count = x.size // x.shape[1]
        if not isinstance(count, int) or count > 1:
            with no_grad():
                held = self.core.running_var
                added = held - before * self.momentum
                held.copy_(held - added / count)

    def own_weights(self) -> list[Weight]:
        """Return gamma, beta, moving mean and moving variance."""
        core = self.core
        named = {
            "gamma": core.weight,
            "beta": core.bias,
            "moving_mean": core.running_mean,
            "moving_variance": core.running_var,
        }
        return [Weight(name, tensor) for name, tensor in named.items() if tensor is not None]


class LayerNormalization(Layer):
    """Normalise each sample over its last axis (or axes); epsilon is 1e-3."""

    _options = ("axis", "epsilon", "center", "scale")
    core: nn.LayerNorm

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.axis = axis if isinstance(axis, int) else tuple(axis)
        self.epsilon, self.center, self.scale = float(epsilon), bool(center), bool(scale)

    def build(self, input_shape: Any) -> None:
        """Make gamma and beta."""
        axes = (self.axis,) if isinstance(self.axis, int) else self.axis
        count, rank = len(axes), len(input_shape)
        if sorted(a % rank for a in axes) != list(range(rank - count, rank)):
            raise ArgumentError(
                f"{self.name} normalises the last axes, as axis=-1 or (-2, -1). "
                f"Received: axis={self.axis} of {input_shape}"
            )
        self.core = nn.LayerNorm(tuple(input_shape[rank - count :]), self.epsilon)
        for name, wanted in (("weight", self.scale), ("bias", self.center)):
            if not wanted:
                self.core.register_parameter(name, None)

    def call(self, inputs: Any) -> Any:
        """Return the normalised input."""
        return self.core(inputs)

    def own_weights(self) -> list[Weight]:
        """Return gamma and beta."""
        named = {"gamma": self.core.weight, "beta": self.core.bias}
        return [Weight(name, tensor) for name, tensor in named.items() if tensor is not None]
