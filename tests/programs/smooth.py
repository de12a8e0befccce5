"""Random graphs of smooth operations, in which rounding errors stay small.

A comparison or a rounding would turn the last bit of its operand into a whole step; so programs of
these operations can be compared between two ways of computing them.
"""

from __future__ import annotations

import numpy as np

import weft as wf

SIZES = (1, 2, 3, 7, 8, 17, 33)
STEPS = 40


class SmoothProgram:
    """A random graph with its fetches and feeds, drawn from a seed."""

    def __init__(self, seed, dtype, steps=STEPS):
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        self.feeds = {}
        with wf.Graph() as self.graph:
            rows, columns = self._size(), self._size()
            shapes = [(rows, columns), (rows, columns), (columns,), (rows, 1), ()]
            self.values = [self._feed(shape) for shape in shapes]
            for _ in range(steps):
                self.values.append(self._step())
            self.loss = sum(wf.mean(wf.tanh(v)) for v in self.values[-6:])
            inputs = list(self.feeds)[:4]
            found = wf.gradients(self.loss, inputs)
        self.fetches = [self.loss, *self.values[-4:], *(g for g in found if g is not None)]

    def _size(self):
        return int(self.rng.choice(SIZES))

    def _feed(self, shape):
        symbol = wf.placeholder(shape, self.dtype)
        self.feeds[symbol] = self.rng.normal(size=shape).astype(self.dtype)
        return symbol

    def _pick(self):
        return self.values[int(self.rng.integers(len(self.values)))]

    def _step(self):
        kinds = (self._unary, self._binary, self._reduce, self._move, self._product, self._row)
        while True:
            made = kinds[int(self.rng.integers(len(kinds)))]()
            if made is not None and made.size <= 5000:
                return made

    def _unary(self):
        x = self._pick()
        choices = (
            lambda: wf.tanh(x),
            lambda: wf.sigmoid(x),
            lambda: wf.exp(-x * x),
            lambda: wf.sin(x) * 0.5,
            lambda: wf.log1p(x * x),
            lambda: wf.sqrt(x * x + 1.0),
            lambda: wf.nn.functional.gelu(x),
            lambda: wf.nn.functional.softplus(x) * 0.3,
            lambda: x / (1.0 + x * x),
            lambda: wf.erf(x),
            lambda: -x * 0.7 + 0.1,
        )
        return choices[int(self.rng.integers(len(choices)))]()

    def _binary(self):
        x, y = self._pick(), self._pick()
        try:
            choices = (lambda: wf.tanh(x + y), lambda: x * 0.5 - y * 0.25, lambda: wf.tanh(x * y))
            return choices[int(self.rng.integers(3))]()
        except wf.WeftError:  # they do not broadcast
            return None

    def _reduce(self):
        x = self._pick()
        if not x.ndim:
            return None
        axis = int(self.rng.integers(-x.ndim, x.ndim))
        keepdims = bool(self.rng.integers(2))
        choices = (
            lambda: wf.mean(x, axis=axis, keepdims=keepdims),
            lambda: wf.tanh(wf.sum(x, axis=axis, keepdims=keepdims)),
            lambda: wf.logsumexp(x, axis=axis, keepdims=keepdims) * 0.3,
            lambda: wf.mean(x),
        )
        return choices[int(self.rng.integers(len(choices)))]()

    def _move(self):
        x = self._pick()
        choices = (
            lambda: x.reshape(-1),
            lambda: x.mT if x.ndim > 1 else x[None],
            lambda: x[..., ::2] if x.ndim else x[None],
            lambda: x[1:] if x.ndim and x.shape[0] > 1 else x,
            lambda: wf.broadcast_to(x, (3, *x.shape)) if x.ndim < 3 else None,
        )
        return choices[int(self.rng.integers(len(choices)))]()

    def _product(self):
        x, y = self._pick(), self._pick()
        if x.ndim < 2 or y.ndim < 2:
            return None
        for right in (y, y.mT):
            if x.shape[-1] == right.shape[-2]:
                try:
                    return wf.tanh(wf.matmul(x, right) * 0.3)
                except wf.WeftError:  # their batches do not broadcast
                    continue
        return None

    def _row(self):
        x = self._pick()
        if not x.ndim:
            return None
        choices = (
            lambda: wf.nn.functional.softmax(x, axis=-1),
            lambda: wf.nn.functional.log_softmax(x, axis=-1) * 0.2,
            lambda: wf.nn.functional.layer_norm(x, x.shape[-1:], eps=0.1),
        )
        return choices[int(self.rng.integers(len(choices)))]()
