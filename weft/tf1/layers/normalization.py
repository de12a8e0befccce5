"""Batch normalisation, with moving statistics that operations of UPDATE_OPS follow."""

from __future__ import annotations

from typing import Any

from .. import initializers
from ..array_ops import reshape
from ..control import cond
from ..graph import get_default_graph
from ..keys import GraphKeys
from ..math_ops import identity
from ..nn import activations as nn
from ..recording import Tensor, convert_to_tensor, is_tensor
from ..variable import change
from .base import Layer, last_size


class BatchNormalization(Layer):
    """Normalises over all axes but one; `training` may be a tensor.

    The operations in `tf.GraphKeys.UPDATE_OPS` move the statistics that are used when not training.
    """

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = None,
        gamma_initializer: Any = None,
        moving_mean_initializer: Any = None,
        moving_variance_initializer: Any = None,
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        fused: Any = None,
        trainable: bool = True,
        virtual_batch_size: Any = None,
        adjustment: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(trainable=trainable, name=name, **options)
        if renorm or virtual_batch_size is not None or adjustment is not None:
            raise ValueError(
                "BatchNormalization: renorm, virtual_batch_size and adjustment are not served"
            )
        self.axis, self.momentum, self.epsilon, self.center, self.scale = (
            axis,
            momentum,
            epsilon,
            center,
            scale,
        )
        self._beta = {
            "initializer": beta_initializer or initializers.Zeros(),
            "regularizer": beta_regularizer,
            "constraint": beta_constraint,
        }
        self._gamma = {
            "initializer": gamma_initializer or initializers.Ones(),
            "regularizer": gamma_regularizer,
            "constraint": gamma_constraint,
        }
        self._moving = (
            moving_mean_initializer or initializers.Zeros(),
            moving_variance_initializer or initializers.Ones(),
        )

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        size = [last_size(input_shape, self.axis, "axis of normalisation")]
        self.gamma = self.add_variable("gamma", size, **self._gamma) if self.scale else None
        self.beta = self.add_variable("beta", size, **self._beta) if self.center else None
        self.moving_mean = self.add_variable(
            "moving_mean", size, initializer=self._moving[0], trainable=False
        )
        self.moving_variance = self.add_variable(
            "moving_variance", size, initializer=self._moving[1], trainable=False
        )

    def call(self, inputs: Any, training: Any = False, **options: Any) -> Any:
        """Return the function."""
        rank = inputs.shape.ndims
        if rank is None:
            raise ValueError(f"Input has undefined rank: {inputs.shape}")
        place = self.axis % rank
        axes = [i for i in range(rank) if i != place]
        if not is_tensor(training):
            if not training:
                return self._normalized(inputs, self.moving_mean, self.moving_variance, place)
            mean, variance = nn.moments(inputs, axes)
            self._follow(mean, variance, None)
            return self._normalized(inputs, mean, variance, place)
        flag = convert_to_tensor(training)
        mean, variance = cond(
            flag,
            lambda: nn.moments(inputs, axes),
            lambda: (identity(self.moving_mean), identity(self.moving_variance)),
        )
        self._follow(mean, variance, flag)
        return self._normalized(inputs, mean, variance, place)

    def _normalized(self, x: Any, mean: Any, variance: Any, place: int) -> Tensor:
        centre, spread, offset, scale = (
            None if v is None else _beside(v, place, x.shape.ndims)
            for v in (mean, variance, self.beta, self.gamma)
        )
        return nn.batch_normalization(x, centre, spread, offset, scale, self.epsilon)

    def _follow(self, mean: Any, variance: Any, flag: Any) -> None:
        """Add the operations that move the statistics; not training, to themselves."""
        graph = get_default_graph()
        for kept, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
            made = change(kept, "AssignMovingAvg", self._moved, [new], None)
            self._updates.append(made)
            graph.add_to_collection(GraphKeys.UPDATE_OPS, made)

    def _moved(self, env: Any, variable: Any, new: Any) -> Any:
        old = env.read(variable)
        return old - (old - new) * (1 - self.momentum)


def _beside(v: Any, place: int, rank: int) -> Any:
    tensor = convert_to_tensor(v)
    if place == rank - 1:
        return tensor
    sizes = [1] * rank
    sizes[place] = -1
    return reshape(tensor, sizes)


def batch_normalization(
    inputs: Any,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
    moving_mean_initializer: Any = None,
    moving_variance_initializer: Any = None,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,
    fused: Any = None,
    virtual_batch_size: Any = None,
    adjustment: Any = None,
) -> Tensor:
    """Return normalised inputs, with variables of their own."""
    layer = BatchNormalization(
        axis,
        momentum,
        epsilon,
        center,
        scale,
        beta_initializer,
        gamma_initializer,
        moving_mean_initializer,
        moving_variance_initializer,
        beta_regularizer,
        gamma_regularizer,
        beta_constraint,
        gamma_constraint,
        renorm=renorm,
        trainable=trainable,
        virtual_batch_size=virtual_batch_size,
        adjustment=adjustment,
        name=name,
        _reuse=reuse,
    )
    made: Tensor = layer(inputs, training=training)
    return made
