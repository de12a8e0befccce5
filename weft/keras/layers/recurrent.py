"""LSTM, GRU and SimpleRNN over (N, T, C), layers over each step, and both directions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ... import nn
from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ...core.modes import no_grad
from ...nn.calls import F
from ...ops.creation import zeros
from .. import initializers
from .base import Layer
from .weights import Weight, transposed


class _Recurrent(Layer):
    """Base of recurrent layers: a layer of Weft's of one direction, batch first."""

    _options: ClassVar[tuple[str, ...]] = (
        *("units", "use_bias", "kernel_initializer", "recurrent_initializer"),
        *("bias_initializer", "return_sequences", "return_state", "go_backwards"),
    )
    _core: ClassVar[Any]
    _fixed: ClassVar[dict[str, Any]] = {"activation": "tanh", "recurrent_activation": "sigmoid"}
    _order: ClassVar[tuple[int, ...]] = (0,)  # where Weft has the gates that Keras lists
    _states: ClassVar[int] = 1
    core: Any

    def __init__(
        self,
        units: int,
        *,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        **options: Any,
    ) -> None:
        for name, value in self._fixed.items():
            given = options.pop(name, value)
            if given != value:
                raise ArgumentError(
                    f"{type(self).__name__}: {name}={given!r} is not served, only {value!r}"
                )
        for name in ("dropout", "recurrent_dropout"):
            if options.pop(name, 0.0):
                raise ArgumentError(
                    f"{type(self).__name__}: {name} is not served; put a Dropout layer before it"
                )
        for name in ("stateful", "unroll", "time_major"):
            if options.pop(name, False):
                raise ArgumentError(f"{type(self).__name__}: {name}=True is not served")
        options.pop("implementation", None)
        super().__init__(**options)
        self.units, self.use_bias = units, bool(use_bias)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.recurrent_initializer = initializers.get(recurrent_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.return_sequences, self.return_state = bool(return_sequences), bool(return_state)
        self.go_backwards = bool(go_backwards)

    def build(self, input_shape: Any) -> None:
        """Make kernel, recurrent kernel and bias."""
        shape = input_shape[0] if isinstance(input_shape, list) else input_shape
        if len(shape) != 3 or shape[-1] is None:
            raise ShapeError(
                f"{self.name} takes (batch, steps, features) with known features. Received: {shape}"
            )
        self.core = self._core(shape[-1], self.units, bias=self.use_bias, batch_first=True)
        if self.use_bias:
            self._settle_biases()
        drawn = self.kernel_initializer, self.recurrent_initializer, self.bias_initializer
        for weight, initializer in zip(self.own_weights(), drawn, strict=False):
            weight.assign(initializer(weight.shape))

    def _separated(self, args: Any, kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        states = kwargs.pop("initial_state", None)
        if states is not None:
            args = (*args, states)
        return super()._separated(args, kwargs)

    def call(self, inputs: Any, *states: Any) -> Any:
        """Return the last output or all of them, and the states where that was asked for."""
        if states and len(states) != self._states:
            raise ArgumentError(
                f"{self.name} begins with {self._states} states. Received: {len(states)}"
            )
        x = F.flip(inputs, 1) if self.go_backwards else inputs
        first = tuple(state[None] for state in states)
        begin = None if not first else first if self._states > 1 else first[0]
        made, last = self.core(x, begin)
        ends = [state[0] for state in (last if self._states > 1 else (last,))]
        output = made if self.return_sequences else made[:, -1]
        return [output, *ends] if self.return_state else output

    def own_weights(self) -> list[Weight]:
        """Return kernel, recurrent kernel and bias, gates in Keras's order."""
        core = self.core
        found = [
            self._gates(transposed("kernel", core.weight_ih_l0)),
            self._gates(transposed("recurrent_kernel", core.weight_hh_l0)),
        ]
        return [*found, self._bias()] if self.use_bias else found

    def _bias(self) -> Weight:
        return self._gates(Weight("bias", self.core.bias_ih_l0))

    def _settle_biases(self) -> None:
        """Keep the second of PyTorch's two biases at zero: only their sum counts."""
        held = self.core.bias_hh_l0
        del self.core.bias_hh_l0
        self.core.register_buffer("bias_hh_l0", zeros(held.shape, dtype=held.dtype))

    def _gates(self, weight: Weight) -> Weight:
        """Return a weight with its gates, along the last axis, in Keras's order."""
        if self._order == tuple(range(len(self._order))):
            return weight
        show, take, back = weight._show, weight._take, np.argsort(self._order)
        return Weight(
            weight.name,
            weight.tensor,
            lambda array: _reordered(show(array), self._order),
            lambda array: take(_reordered(array, back)),
        )


def _reordered(array: Any, order: Any) -> Any:
    gates = np.split(array, len(order), axis=-1)
    return np.concatenate([gates[i] for i in order], axis=-1)


class SimpleRNN(_Recurrent):
    """h' = tanh(x @ kernel + h @ recurrent_kernel + bias)."""

    _core = nn.RNN
    _fixed: ClassVar[dict[str, Any]] = {"activation": "tanh"}


class LSTM(_Recurrent):
    """Long short-term memory; the bias of the forget gate starts at 1.

    >>> import weft as wf
    >>> LSTM(4, return_sequences=True)(wf.zeros(2, 5, 3)).shape
    (2, 5, 4)
    """

    _options: ClassVar[tuple[str, ...]] = (*_Recurrent._options, "unit_forget_bias")
    _core, _states = nn.LSTM, 2
    _order = (0, 1, 2, 3)  # input, forget, cell, output

    def __init__(self, units: int, *, unit_forget_bias: bool = True, **options: Any) -> None:
        super().__init__(units, **options)
        self.unit_forget_bias = bool(unit_forget_bias)

    def build(self, input_shape: Any) -> None:
        """Make the weights."""
        super().build(input_shape)
        if self.use_bias and self.unit_forget_bias:
            bias = self.own_weights()[-1]
            values = bias.numpy()
            values[self.units : 2 * self.units] = 1.0
            bias.assign(values)


class GRU(_Recurrent):
    """Gated recurrent units as Keras has them by default, with reset_after=True."""

    _core = nn.GRU
    _fixed: ClassVar[dict[str, Any]] = {**_Recurrent._fixed, "reset_after": True}
    _order = (1, 0, 2)  # update, reset, candidate; Weft's and PyTorch's begin with reset

    def _settle_biases(self) -> None:
        """Keep both: inside the candidate, the reset gate acts on the second alone."""

    def _bias(self) -> Weight:
        return _PairOfBiases("bias", self.core, self._order)


class _PairOfBiases(Weight):
    """The two biases of a GRU, of the input and of the state, as one weight (2, 3 * units)."""

    def __init__(self, name: str, core: Any, order: tuple[int, ...]) -> None:
        super().__init__(name, core.bias_ih_l0)
        self._other, self._order = core.bias_hh_l0, order

    def numpy(self) -> Any:
        """Return a copy of the values."""
        rows = [np.asarray(b.detach()) for b in (self.tensor, self._other)]
        return _reordered(np.stack(rows), self._order)

    def assign(self, value: Any) -> None:
        """Take other values."""
        given = np.asarray(value)
        if given.shape != self.shape:
            raise ShapeError(f"the bias has the shape {self.shape}. Received: {given.shape}")
        rows = _reordered(given, np.argsort(self._order))
        with no_grad():
            self.tensor.copy_(rows[0])
            self._other.copy_(rows[1])


class TimeDistributed(Layer):
    """Apply a layer to each step of (N, T, ...)."""

    def __init__(self, layer: Layer, **options: Any) -> None:
        super().__init__(**options)
        self.layer = _checked_layer(self, layer)

    def call(self, inputs: Any) -> Any:
        """Return the outputs of all steps."""
        rows = inputs.reshape(-1, *inputs.shape[2:])
        made = self.layer(rows)
        return made.reshape(inputs.shape[0], inputs.shape[1], *made.shape[1:])

    def own_weights(self) -> list[Weight]:
        """Return the layer's weights."""
        return self.layer.own_weights()

    def get_config(self) -> dict[str, Any]:
        """Return the layer's configuration."""
        return {**super().get_config(), "layer": _wrapped(self.layer)}


class Bidirectional(Layer):
    """Run a recurrent layer from both ends and join the outputs: "concat", "sum", "mul", "ave"."""

    _options = ("merge_mode",)
    _joins: ClassVar[dict[Any, Any]] = {
        "concat": lambda x, y: F.concat([x, y], -1),
        "sum": lambda x, y: x + y,
        "mul": lambda x, y: x * y,
        "ave": lambda x, y: (x + y) / 2,
    }

    def __init__(self, layer: Any, merge_mode: str = "concat", **options: Any) -> None:
        super().__init__(**options)
        if not isinstance(layer, _Recurrent) or layer.return_state:
            raise ArgumentTypeError(
                "Bidirectional takes an LSTM, GRU or SimpleRNN without return_state. "
                f"Received: {type(layer).__name__}"
            )
        if merge_mode not in self._joins:
            known = ", ".join(self._joins)
            raise ArgumentError(f"merge_mode is one of {known}. Received: {merge_mode!r}")
        self.merge_mode = merge_mode
        self.forward_layer = layer
        config = {**layer.get_config(), "go_backwards": not layer.go_backwards}
        self.backward_layer = type(layer)(**{**config, "name": f"backward_{layer.name}"})

    def call(self, inputs: Any) -> Any:
        """Return the joined outputs, those of the second direction in the order of the input."""
        ahead, behind = self.forward_layer(inputs), self.backward_layer(inputs)
        if self.forward_layer.return_sequences:
            behind = F.flip(behind, 1)
        return self._joins[self.merge_mode](ahead, behind)

    def own_weights(self) -> list[Weight]:
        """Return the weights of both directions."""
        return [*self.forward_layer.own_weights(), *self.backward_layer.own_weights()]

    def get_config(self) -> dict[str, Any]:
        """Return the layer's configuration."""
        return {**super().get_config(), "layer": _wrapped(self.forward_layer)}


def _checked_layer(wrapper: Layer, layer: Any) -> Layer:
    if not isinstance(layer, Layer):
        raise ArgumentTypeError(
            f"{type(wrapper).__name__} takes a layer. Received: {type(layer).__name__}"
        )
    return layer


def _wrapped(layer: Layer) -> dict[str, Any]:
    return {"class_name": type(layer).__name__, "config": layer.get_config()}
