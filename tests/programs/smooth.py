"""Random graphs of smooth operations, in which rounding errors stay small.

A comparison or a rounding would turn the last bit of its operand into a whole step; so programs of
these operations can be compared between two ways of computing them.
"""

from __future__ import annotations

import weft as wf

from .drawn import BINARY, REDUCTIONS, ROWS, UNARY, Drawn

SIZES = (1, 2, 3, 7, 8, 17, 33)
STEPS = 40


def _of(table, names):
    return [table[name] for name in names.split()]


FUNCTIONS = _of(UNARY, "tanh sigmoid bell sin log1p sqrt gelu softplus quotient erf line")
OF_PAIRS = _of(BINARY, "sum difference product")
OF_AXES = [*_of(REDUCTIONS, "mean sum logsumexp"), lambda x, **_: wf.mean(x)]
OF_ROWS = _of(ROWS, "softmax log_softmax layer_norm")


class SmoothProgram(Drawn):
    """A random graph with its fetches and feeds, drawn from a seed."""

    def __init__(self, seed, dtype, steps=STEPS):
        super().__init__(seed, dtype)
        with wf.Graph() as self.graph:
            rows, columns = self._size(), self._size()
            shapes = [(rows, columns), (rows, columns), (columns,), (rows, 1), ()]
            self.values = [self._normal(shape) for shape in shapes]
            for _ in range(steps):
                self.values.append(self._step())
            self.loss = sum(wf.mean(wf.tanh(v)) for v in self.values[-6:])
            found = wf.gradients(self.loss, self.inputs)
        self.gradients = [g for g in found if g is not None]
        self.fetches = [self.loss, *self.values[-4:], *self.gradients]

    @property
    def inputs(self):
        """Return the placeholders that derivatives are taken by."""
        return list(self.feeds)[:4]

    def second_order(self):
        """Return derivatives of a number that follows from the gradients."""
        with self.graph:
            curvature = sum(wf.mean(wf.tanh(g) * g) for g in self.gradients)
            found = wf.gradients(curvature, self.inputs) if self.gradients else []
        return [g for g in found if g is not None]

    def _size(self):
        return int(self.rng.choice(SIZES))

    def _pick(self):
        return self._choose(self.values)

    def _step(self):
        kinds = (self._unary, self._binary, self._reduce, self._move, self._product, self._row)
        while True:
            made = self._choose(kinds)()
            if made is not None and made.size <= 5000:
                return made

    def _unary(self):
        x = self._pick()
        return self._choose(FUNCTIONS)(x)

    def _binary(self):
        x, y = self._pick(), self._pick()
        try:
            return self._choose(OF_PAIRS)(x, y)
        except wf.WeftError:  # they do not broadcast
            return None

    def _reduce(self):
        x = self._pick()
        if not x.ndim:
            return None
        axis = int(self.rng.integers(-x.ndim, x.ndim))
        keepdims = bool(self.rng.integers(2))
        return self._choose(OF_AXES)(x, axis=axis, keepdims=keepdims)

    def _move(self):
        x = self._pick()
        choices = (
            lambda: x.reshape(-1),
            lambda: x.mT if x.ndim > 1 else x[None],
            lambda: x[..., ::2] if x.ndim else x[None],
            lambda: x[1:] if x.ndim and x.shape[0] > 1 else x,
            lambda: wf.broadcast_to(x, (3, *x.shape)) if x.ndim < 3 else None,
        )
        return self._choose(choices)()

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
        return self._choose(OF_ROWS)(x) if x.ndim else None
