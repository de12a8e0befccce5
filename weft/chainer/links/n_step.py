"""Layers of recurrent cells over lists of sequences."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .. import initializers as init
from ..functions import rnn
from ..functions.array import transpose_sequence
from ..link import ChainList, Link
from ..variable import Parameter, Variable, as_tensor, wrapped


class _Layer(Link):
    """The weights of one layer in one direction: w0, w1 ... and b0, b1 ..."""

    def __init__(
        self, in_size: int, out_size: int, n_weights: int, start: Any, start_bias: Any
    ) -> None:
        super().__init__()
        self.n_weights = n_weights
        with self.init_scope():
            for number in range(n_weights):
                size = in_size if number < n_weights // 2 else out_size
                setattr(
                    self,
                    f"w{number}",
                    Parameter(init.chosen(start, init.LeCunNormal()), (out_size, size)),
                )
                setattr(self, f"b{number}", Parameter(init.chosen(start_bias, 0.0), out_size))

    def weights(self) -> list[Any]:
        """Return the weights in order."""
        return [getattr(self, f"w{number}") for number in range(self.n_weights)]

    def biases(self) -> list[Any]:
        """Return the biases in order."""
        return [getattr(self, f"b{number}") for number in range(self.n_weights)]


class NStepRNNBase(ChainList):
    """Base: layers, in one direction or both."""

    n_weights: ClassVar[int]
    n_cells: ClassVar[int] = 1
    directions: ClassVar[int] = 1

    def __init__(
        self,
        n_layers: int,
        in_size: int,
        out_size: int,
        dropout: float,
        initialW: Any = None,
        initial_bias: Any = None,
        **options: Any,
    ) -> None:
        layers: list[_Layer] = []
        for layer in range(n_layers):
            size = in_size if layer == 0 else out_size * self.directions
            layers += [
                _Layer(size, out_size, self.n_weights, initialW, initial_bias)
                for _ in range(self.directions)
            ]
        super().__init__(*layers)
        self.n_layers, self.dropout, self.out_size = n_layers, dropout, out_size

    def rnn(self, *args: Any) -> Any:
        """Run the function of this kind of layers; each kind defines it."""
        raise NotImplementedError

    def init_hx(self, xs: Any) -> Variable:
        """Return states of zeros."""
        shape = (self.n_layers * self.directions, len(xs), self.out_size)
        return Variable(np.zeros(shape, xs[0].dtype))

    def forward(self, *args: Any) -> Any:
        """Return last states and outputs; sequences may come in any order.

        Takes the states that the cell has (None: zeros) and the list of sequences.
        """
        *states, xs = args
        if len(states) != self.n_cells:
            raise TypeError(
                f"{type(self).__name__} takes {self.n_cells} state(s) and a list of sequences"
            )
        order = sorted(range(len(xs)), key=lambda i: -xs[i].shape[0])
        back = np.argsort(order)
        inner = [
            self.init_hx(xs) if s is None else wrapped(as_tensor(s)[:, np.asarray(order)])
            for s in states
        ]
        layers: list[Any] = list(self)
        ws, bs = [layer.weights() for layer in layers], [layer.biases() for layer in layers]
        steps = transpose_sequence([xs[i] for i in order])
        *ended, outputs = self.rnn(self.n_layers, self.dropout, *inner, ws, bs, steps)
        ys = transpose_sequence(outputs)
        return (*(wrapped(as_tensor(s)[:, back]) for s in ended), [ys[i] for i in back])

    __call__ = forward


class NStepLSTM(NStepRNNBase):
    """Layers of LSTM."""

    n_weights, n_cells = 8, 2
    rnn = staticmethod(rnn.n_step_lstm)


class NStepBiLSTM(NStepRNNBase):
    """Layers of LSTM in both directions."""

    n_weights, n_cells, directions = 8, 2, 2
    rnn = staticmethod(rnn.n_step_bilstm)


class NStepGRU(NStepRNNBase):
    """Layers of GRU."""

    n_weights = 6
    rnn = staticmethod(rnn.n_step_gru)


class NStepBiGRU(NStepRNNBase):
    """Layers of GRU in both directions."""

    n_weights, directions = 6, 2
    rnn = staticmethod(rnn.n_step_bigru)


class NStepRNNTanh(NStepRNNBase):
    """Layers of plain cells with tanh."""

    n_weights = 2

    def rnn(self, *args: Any) -> Any:
        """Run the layers."""
        return rnn.n_step_rnn(*args, activation="tanh")


class NStepRNNReLU(NStepRNNBase):
    """Layers of plain cells with relu."""

    n_weights = 2

    def rnn(self, *args: Any) -> Any:
        """Run the layers."""
        return rnn.n_step_rnn(*args, activation="relu")


class NStepBiRNNTanh(NStepRNNBase):
    """Layers of plain cells with tanh, in both directions."""

    n_weights, directions = 2, 2

    def rnn(self, *args: Any) -> Any:
        """Run the layers."""
        return rnn.n_step_birnn(*args, activation="tanh")


class NStepBiRNNReLU(NStepRNNBase):
    """Layers of plain cells with relu, in both directions."""

    n_weights, directions = 2, 2

    def rnn(self, *args: Any) -> Any:
        """Run the layers."""
        return rnn.n_step_birnn(*args, activation="relu")
