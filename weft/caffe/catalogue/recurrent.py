"""Recurrent layers over (time, streams, ...), cut where the second bottom, cont, is 0.

What the last step leaves behind is where the next batch begins, as in Caffe, unless the states are
bottoms and tops themselves (expose_hidden).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ...core.modes import no_grad
from ...core.op import F
from ...core.tensor import Tensor
from ...ops.creation import tensor
from .base import Layer, Shape, layer


class _Recurrent(Layer):
    bottoms = (2, 5)
    tops = (1, 3)
    shares_in_place = False
    states: ClassVar[tuple[str, ...]]
    gates: ClassVar[int]

    def setup(self, shapes: list[Shape]) -> None:
        """Make weights and states."""
        x, cont, *rest = shapes
        options = self.param.recurrent_param
        self.check(
            len(x) >= 2, f"bottom[0] must have at least 2 axes -- (#timesteps, #streams, ...): {x}"
        )
        self.check(
            cont == x[:2], f"bottom[1] must have exactly 2 axes -- (#timesteps, #streams): {cont}"
        )
        self.check(options.num_output > 0, "num_output must be positive")
        exposed = len(self.states) if options.expose_hidden else 0
        self.has_static = len(rest) - exposed == 1
        self.check(len(rest) - exposed in {0, 1}, f"takes {2 + exposed} or {3 + exposed} bottoms")
        self.check(len(self.param.top) == 1 + exposed, f"takes {1 + exposed} tops")
        self.exposed = bool(exposed)
        self.make_weights(math.prod(x[2:]), math.prod(rest[0][1:]) if self.has_static else 0)
        if not self.exposed:
            self._begin(x[1])

    def make_weights(self, inputs: int, static: int) -> None:
        """Make weights: of inputs, of the static input, of the state."""
        options = self.param.recurrent_param
        rows = self.gates * options.num_output
        self.add_blob("input_weight", (rows, inputs), options.weight_filler)
        self.add_blob("bias", (rows,), options.bias_filler)
        if static:
            self.add_blob("static_weight", (rows, static), options.weight_filler)
        self.add_blob("state_weight", (rows, options.num_output), options.weight_filler)

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shapes of the tops."""
        size = self.param.recurrent_param.num_output
        hidden = [(1, shapes[0][1], size)] * (len(self.states) if self.exposed else 0)
        return [(*shapes[0][:2], size), *hidden]

    def forward(self, x: Tensor, cont: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs of all steps, and the last states if they are exposed."""
        steps, streams = x.shape[:2]
        static, hidden = (rest[0], rest[1:]) if self.has_static else (None, rest)
        state = tuple(F.reshape(h, (streams, -1)) for h in hidden) or self._kept(streams)
        sums = F.linear(F.reshape(x, (steps * streams, -1)), self.blob(0), self.blob(1))
        sums = F.reshape(sums, (steps, streams, -1))
        if static is not None:
            sums = sums + F.linear(F.reshape(static, (streams, -1)), self.blob(2))
        outputs = []
        for t in range(steps):
            output, state = self.step(sums[t], F.reshape(cont[t], (streams, 1)), state)
            outputs.append(output)
        if self.exposed:
            return F.stack(outputs), *(F.reshape(s, (1, streams, -1)) for s in state)
        self._keep(state)
        return (F.stack(outputs),)

    def _kept(self, streams: int) -> tuple[Tensor, ...]:
        """Return what the last batch left behind; zeros if it had another number of streams."""
        if self.__dict__[self.states[0]].shape[0] != streams:
            self._begin(streams)
        return tuple(self.__dict__[name] for name in self.states)

    def _begin(self, streams: int) -> None:
        for name in self.states:
            empty = np.zeros((streams, self.param.recurrent_param.num_output), np.float32)
            self.register_buffer(name, tensor(empty), persistent=False)

    def _keep(self, state: tuple[Tensor, ...]) -> None:
        with no_grad():
            for name, value in zip(self.states, state, strict=True):
                self.__dict__[name].copy_(F.stop_gradient(value))

    def step(self, sums: Tensor, cont: Tensor, state: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the output of a step, and the states after it."""
        raise NotImplementedError

    def weight_of_state(self) -> Tensor:
        """Return the weights of the state."""
        return self.blob(3 if self.has_static else 2)


@layer("RNN")
class RNN(_Recurrent):
    """h = tanh(W_hh h + W_xh x + b_h), o = tanh(W_ho h + b_o)."""

    states = ("hidden",)
    gates = 1

    def make_weights(self, inputs: int, static: int) -> None:
        """Make the weights, and those of the output."""
        super().make_weights(inputs, static)
        options = self.param.recurrent_param
        size = options.num_output
        self.add_blob("output_weight", (size, size), options.weight_filler)
        self.add_blob("output_bias", (size,), options.bias_filler)

    def step(self, sums: Tensor, cont: Tensor, state: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the output of a step, and the state after it."""
        hidden = F.tanh(sums + F.linear(state[0] * cont, self.weight_of_state()))
        last = len(self.blob_specs)
        output = F.tanh(F.linear(hidden, self.blob(last - 2), self.blob(last - 1)))
        return output, (hidden,)


@layer("LSTM")
class LSTM(_Recurrent):
    """Gates i, f, o, g; where cont is 0, hidden state and cell begin anew."""

    states = ("hidden", "cell")
    gates = 4

    def step(self, sums: Tensor, cont: Tensor, state: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the output of a step, and the states after it."""
        hidden, cell = state
        sums = sums + F.linear(hidden * cont, self.weight_of_state())
        size = self.param.recurrent_param.num_output
        i, f, o, g = (sums[:, k * size : (k + 1) * size] for k in range(4))
        cell = cont * F.sigmoid(f) * cell + F.sigmoid(i) * F.tanh(g)
        hidden = F.sigmoid(o) * F.tanh(cell)
        return hidden, (hidden, cell)
