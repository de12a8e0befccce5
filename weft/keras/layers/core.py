"""Dense, Embedding, Activation, Dropout, Lambda, and the layer that stands for an input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import nn
from ...core.dtype import as_dtype, default_float
from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ...nn.arguments import as_size
from ...nn.calls import F
from .. import activations, initializers
from ..symbolic import Call, KerasTensor, checked_shape
from .base import Layer
from .weights import Weight, transposed


class InputLayer(Layer):
    """What stands for an input among the layers of a model."""

    def __init__(
        self, shape: Any = None, batch_size: int | None = None, dtype: Any = None, **options: Any
    ) -> None:
        super().__init__(**options)
        if shape is not None:
            self.given_shape = (batch_size, *checked_shape(self.name, shape))
        if self.given_shape is None:
            raise ArgumentError("Input needs a shape, without the batch: Input((784,))")
        self.dtype = as_dtype(default_float() if dtype is None else dtype)
        self.build_once(self.given_shape)
        call = Call(self, (), {})
        call.outputs = (KerasTensor(self.given_shape, self.dtype, call),)
        self.calls.append(call)

    def call(self, inputs: Any) -> Any:
        """Return the input."""
        return inputs

    def get_config(self) -> dict[str, Any]:
        """Return what makes it again."""
        assert self.given_shape is not None
        shape = list(self.given_shape)
        return {"name": self.name, "batch_input_shape": shape, "dtype": str(self.dtype)}


def Input(  # noqa: N802  (Keras's name)
    shape: Any = None,
    batch_size: int | None = None,
    dtype: Any = None,
    name: str | None = None,
    **options: Any,
) -> KerasTensor:
    """Return a symbolic tensor to call layers on; the shape is without the batch.

    >>> Input((28, 28, 1)).shape
    (None, 28, 28, 1)
    """
    layer = InputLayer(shape, batch_size, dtype, name=name, **options)
    return layer.calls[0].outputs[0]


class Dense(Layer):
    """Return activation(x @ kernel + bias) over the last axis.

    >>> import weft as wf
    >>> Dense(5, activation="relu")(wf.zeros(2, 3)).shape
    (2, 5)
    """

    _options = ("units", "activation", "use_bias", "kernel_initializer", "bias_initializer")
    core: nn.Linear

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.units, self.use_bias = as_size(self, "units", units), bool(use_bias)
        self.activation = activations.get(activation)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)

    def build(self, input_shape: Any) -> None:
        """Make kernel (inputs, units) and bias."""
        size = input_shape[-1]
        if size is None:
            raise ShapeError(f"{self.name}: the last size must be known. Received: {input_shape}")
        self.core = nn.Linear(size, self.units, self.use_bias, dtype=self._dtype)
        drawn = self.kernel_initializer, self.bias_initializer
        for weight, initializer in zip(self.own_weights(), drawn, strict=False):
            weight.assign(initializer(weight.shape))

    def call(self, inputs: Any) -> Any:
        """Return the outputs."""
        return self.activation(self.core(inputs))

    def own_weights(self) -> list[Weight]:
        """Return kernel and bias."""
        found = [transposed("kernel", self.core.weight)]
        return found if self.core.bias is None else [*found, Weight("bias", self.core.bias)]


class Embedding(Layer):
    """Return the rows of a table (input_dim, output_dim) that integers name."""

    _options = ("input_dim", "output_dim", "embeddings_initializer")
    core: nn.Embedding

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        mask_zero: bool = False,
        input_length: int | None = None,
        **options: Any,
    ) -> None:
        if mask_zero:
            raise ArgumentError(
                "Embedding: mask_zero=True is not served: give sequences of one length, or use "
                "wf.nn's packed sequences"
            )
        if input_length is not None:
            options.setdefault("input_shape", (input_length,))
        super().__init__(**options)
        self.input_dim, self.output_dim = input_dim, output_dim
        drawn = "random_uniform" if embeddings_initializer == "uniform" else embeddings_initializer
        self.embeddings_initializer = initializers.get(drawn)
        self.build_once((None,))

    def build(self, input_shape: Any) -> None:
        """Make the table."""
        self.core = nn.Embedding(self.input_dim, self.output_dim)
        table = self.own_weights()[0]
        table.assign(self.embeddings_initializer(table.shape))

    def call(self, inputs: Any) -> Any:
        """Return the rows; floats that programs feed as numbers of rows are taken as integers."""
        return self.core(inputs if inputs.dtype.kind in "iu" else inputs.to("int64"))

    def own_weights(self) -> list[Weight]:
        """Return the table."""
        return [Weight("embeddings", self.core.weight)]


class Activation(Layer):
    """Apply an activation."""

    _options = ("activation",)

    def __init__(self, activation: Any, **options: Any) -> None:
        super().__init__(**options)
        self.activation = activations.get(activation)

    def call(self, inputs: Any) -> Any:
        """Return the activation of the input."""
        return self.activation(inputs)


class _CoreLayer(Layer):
    """Base of layers without weights that are one of Weft's under another name."""

    core: nn.Module

    def call(self, inputs: Any) -> Any:
        """Return what the layer makes of the input."""
        return self.core(inputs)


class ReLU(_CoreLayer):
    """Return max(x, 0), cut off at max_value; below the threshold negative_slope times x."""

    _options = ("max_value", "negative_slope")

    def __init__(
        self, max_value: float | None = None, negative_slope: float = 0.0, **options: Any
    ) -> None:
        super().__init__(**options)
        self.max_value, self.negative_slope = max_value, float(negative_slope)

    def call(self, inputs: Any) -> Any:
        """Return the activation of the input."""
        made = nn.functional.leaky_relu(inputs, self.negative_slope)
        return made if self.max_value is None else made.clip(max=self.max_value)


class LeakyReLU(_CoreLayer):
    """Return x above 0 and negative_slope * x below; Keras's slope is 0.3."""

    _options = ("negative_slope",)

    def __init__(
        self, negative_slope: float = 0.3, alpha: float | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.negative_slope = float(negative_slope if alpha is None else alpha)
        self.core = nn.LeakyReLU(self.negative_slope)


class ELU(_CoreLayer):
    """Return x above 0 and alpha * (exp(x) - 1) below."""

    _options = ("alpha",)

    def __init__(self, alpha: float = 1.0, **options: Any) -> None:
        super().__init__(**options)
        self.alpha = float(alpha)
        self.core = nn.ELU(self.alpha)


class Softmax(_CoreLayer):
    """Return exp(x) over its sum along an axis."""

    _options = ("axis",)

    def __init__(self, axis: int = -1, **options: Any) -> None:
        super().__init__(**options)
        self.axis = axis
        self.core = nn.Softmax(axis)


class Dropout(_CoreLayer):
    """Set a share of the elements to zero, in training, and scale the others."""

    _options = ("rate",)

    def __init__(
        self, rate: float, noise_shape: Any = None, seed: int | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        if noise_shape is not None:
            raise ArgumentError("Dropout: noise_shape is not served; use SpatialDropout2D")
        self.rate = rate
        self.core = nn.Dropout(rate)


class SpatialDropout1D(Layer):
    """Set whole channels of (N, T, C) to zero, in training."""

    _options = ("rate",)

    def __init__(self, rate: float, **options: Any) -> None:
        super().__init__(**options)
        self.rate = rate
        self.core: nn.Module = nn.Dropout1d(rate)

    def call(self, inputs: Any) -> Any:
        """Return the input without some of its channels."""
        return self.core(inputs.moveaxis(-1, 1)).moveaxis(1, -1)


class SpatialDropout2D(SpatialDropout1D):
    """Set whole channels of (N, H, W, C) to zero, in training."""

    def __init__(self, rate: float, **options: Any) -> None:
        super().__init__(rate, **options)
        self.core = nn.Dropout2d(rate)


class GaussianNoise(Layer):
    """Add draws from a normal distribution, in training."""

    _options = ("stddev",)

    def __init__(self, stddev: float, **options: Any) -> None:
        super().__init__(**options)
        self.stddev = float(stddev)

    def call(self, inputs: Any, training: bool = False) -> Any:
        """Return the input with noise."""
        if not training:
            return inputs
        return inputs + self.stddev * F.randn_like(inputs)


class Lambda(Layer):
    """Apply a function of the user's; it is saved by its name, and found in custom_objects."""

    def __init__(self, function: Callable[..., Any], arguments: Any = None, **options: Any) -> None:
        options.pop("output_shape", None)
        super().__init__(**options)
        if not callable(function):
            raise ArgumentTypeError(f"Lambda takes a function. Received: {function!r:.60}")
        self.function, self.arguments = function, dict(arguments or {})

    def call(self, inputs: Any) -> Any:
        """Return the function of the input."""
        return self.function(inputs, **self.arguments)

    def get_config(self) -> dict[str, Any]:
        """Return the function's name and arguments."""
        name = getattr(self.function, "__name__", "")
        if not name.isidentifier():
            raise ArgumentError(
                f"{self.name}: a lambda has no name to save it by; give Lambda a named function, "
                "and pass it as custom_objects when loading"
            )
        return {**super().get_config(), "function": name, "arguments": self.arguments}
