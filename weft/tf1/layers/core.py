"""Dense layers, dropout, flatten."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import F
from ..array_ops import reshape
from ..control import cond
from ..math_ops import matmul, tensordot
from ..nn import activations as nn
from ..recording import Tensor, convert_to_tensor, is_tensor, record
from .base import Layer, last_size, zeros


class Dense(Layer):
    """activation(x kernel + bias), over the last axis."""

    def __init__(
        self,
        units: Any,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            trainable=trainable, name=name, activity_regularizer=activity_regularizer, **options
        )
        self.units, self.activation, self.use_bias = int(units), activation, use_bias
        self._kernel = (kernel_initializer, kernel_regularizer, kernel_constraint)
        self._bias = (bias_initializer or zeros(), bias_regularizer, bias_constraint)

    def build(self, input_shape: Any) -> None:
        """Make kernel and bias."""
        depth = last_size(input_shape, -1, "last dimension")
        start, penalty, held = self._kernel
        self.kernel = self.add_variable(
            "kernel", [depth, self.units], initializer=start, regularizer=penalty, constraint=held
        )
        self.bias = None
        if self.use_bias:
            start, penalty, held = self._bias
            self.bias = self.add_variable(
                "bias", [self.units], initializer=start, regularizer=penalty, constraint=held
            )

    def call(self, inputs: Any, **options: Any) -> Any:
        """Return the function."""
        rank = inputs.shape.ndims
        made = (
            matmul(inputs, self.kernel)
            if rank in (None, 2)
            else tensordot(inputs, self.kernel, [[rank - 1], [0]])
        )
        made = made if self.bias is None else nn.bias_add(made, self.bias)
        return made if self.activation is None else self.activation(made)


def dense(
    inputs: Any,
    units: Any,
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = None,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Return activation(x kernel + bias), with variables of its own."""
    layer = Dense(
        units,
        activation,
        use_bias,
        kernel_initializer,
        bias_initializer,
        kernel_regularizer,
        bias_regularizer,
        activity_regularizer,
        kernel_constraint,
        bias_constraint,
        trainable,
        name,
        _reuse=reuse,
    )
    made: Tensor = layer(inputs)
    return made


class Dropout(Layer):
    """Sets elements to 0 at random while training."""

    def __init__(
        self,
        rate: Any = 0.5,
        noise_shape: Any = None,
        seed: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name=name, **options)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, training: Any = False, **options: Any) -> Any:
        """Return the function; `training` may be a tensor."""

        def dropped() -> Any:
            return nn.dropout(inputs, noise_shape=self.noise_shape, seed=self.seed, rate=self.rate)

        if not is_tensor(training):
            return dropped() if training else inputs
        flag = convert_to_tensor(training)
        if flag.dtype.name != "bool":
            raise TypeError(f"training must be a bool or a boolean tensor. Received: {flag}")
        return cond(flag, dropped, lambda: record("Identity", lambda x: x, [inputs]))


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: Any = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """Return inputs with elements set to 0 at random, if training."""
    made: Tensor = Dropout(rate, noise_shape, seed, name)(inputs, training=training)
    return made


class Flatten(Layer):
    """One vector for each example."""

    def call(self, inputs: Any, **options: Any) -> Any:
        """Return the function."""
        return flatten(inputs)


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """Return one vector for each example."""
    x = convert_to_tensor(inputs)
    sizes = x.shape.sizes
    if sizes is not None and sizes and None not in sizes[1:]:
        return reshape(x, [-1, int(np.prod([size or 0 for size in sizes[1:]]))], name or "Reshape")
    made: Tensor = record("Flatten", lambda x: F.reshape(x, (x.shape[0], -1)), [x], name=name)
    return made
