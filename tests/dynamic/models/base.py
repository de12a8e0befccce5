"""What the networks share: parameters from a seed, and the step of an LSTM."""

from __future__ import annotations

import numpy as np

import weft as wf


class Model:
    """A network with parameters by name, and examples made from a seed."""

    cell_names: tuple[str, ...] = ()

    def __init__(self, dtype="float64", cells=False, seed=1):
        self.dtype = dtype
        self.parameters = []
        self._rng = np.random.default_rng(seed)
        self.build()
        if cells:
            for name in self.cell_names:
                setattr(self, name, wf.cell(getattr(self, name)))

    def make(self, *shape, scale=0.4):
        """Return a parameter."""
        values = self._rng.normal(0, scale, shape).astype(self.dtype)
        self.parameters.append(wf.tensor(values, requires_grad=True))
        return self.parameters[-1]

    def lstm(self, inputs, width):
        """Return the weight and bias of an LSTM over inputs beside its own state."""
        return self.make(inputs + width, 4 * width), self.make(4 * width)

    def zeros(self, *shape):
        """Return zeros in the dtype of the network."""
        return wf.zeros(*shape, dtype=self.dtype)


def lstm_step(weights, x, state):
    """Return the next state (h, c) of an LSTM."""
    weight, bias = weights
    h, c = state
    i, f, o, u = wf.chunk(wf.concat([x, h]) @ weight + bias, 4)
    c = wf.sigmoid(f) * c + wf.sigmoid(i) * wf.tanh(u)
    return wf.sigmoid(o) * wf.tanh(c), c


def pick(log_probabilities, target):
    """Return minus the log-probability of a class."""
    return -log_probabilities[target]
