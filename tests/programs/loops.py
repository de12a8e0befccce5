"""Random loops: scans, counted while loops and branches with random smooth bodies, nested."""

from __future__ import annotations

import numpy as np

import weft as wf

from .drawn import Drawn


class LoopProgram(Drawn):
    """A random graph with a loop and its gradients, drawn from a seed."""

    def __init__(self, seed, dtype=np.float64, sizes=(1, 3, 4, 9)):
        super().__init__(seed, dtype)
        rows, columns = (int(self.rng.choice(sizes)) for _ in range(2))
        self.shape = (rows, columns)
        with wf.Graph() as self.graph:
            self.steps = int(self.rng.integers(0, 5))
            self.xs = self._normal((self.steps, rows, columns))
            self.outside = [self._normal(s) for s in (self.shape, (columns,), (rows, 1))]
            self.square = self._normal((columns, columns)) * (0.5 / columns)
            carries = [self._normal(self.shape) for _ in range(int(self.rng.integers(1, 4)))]
            results = self._loop(carries, depth=0)
            loss = sum(wf.mean(wf.tanh(y)) for y in results)
            inputs = list(self.feeds)
            found = wf.gradients(loss, inputs)
        self.fetches = [loss, *results, *(g for g in found if g is not None)]

    def _loop(self, carries, depth):
        """Return the results of a random loop over carries."""
        return self._choose((self._scan, self._scan, self._repeat))(carries, depth)

    def _scan(self, carries, depth):
        count = int(self.rng.integers(0, 3))

        def body(carry, row):
            after, known = self._body(list(carry), [row], depth)
            return tuple(after), [self._choose(known) for _ in range(count)]

        reverse = bool(self.rng.integers(2))
        last, stacked = wf.scan(body, tuple(carries), self.xs, reverse=reverse)
        return [*last, *(y.sum(axis=0) for y in stacked)]

    def _repeat(self, carries, depth):
        """Run a scan without rows: what a loop with a counter is."""

        def body(carry, _):
            return tuple(self._body(list(carry), [], depth)[0]), None

        return list(wf.scan(body, tuple(carries), length=int(self.rng.integers(1, 4)))[0])

    def _body(self, carries, rows, depth):
        """Return new carries, and everything known in the body."""
        known = [*carries, *rows, *self.outside]
        for _ in range(int(self.rng.integers(1, 5))):
            known.append(self._step(known, carries, depth))
        shaped = [v for v in known if v.shape == self.shape]
        return [self._choose(shaped) for _ in carries], shaped

    def _step(self, known, carries, depth):
        x, y = (self._choose(known) for _ in range(2))
        full = carries[0]
        choices = (
            lambda: wf.tanh(x + y),
            lambda: wf.sin(x) * 0.5,
            lambda: wf.sigmoid(x * y),
            lambda: wf.tanh((full * 0.1 + x) @ self.square),
            lambda: x - (full * 0.1 + x).sum(axis=1, keepdims=True) * 0.1,
            lambda: wf.nn.functional.softmax(full + y, -1),
            lambda: self._branch(x, full),
            lambda: self._loop([full * 0.5], depth + 1)[0] if depth < 1 else wf.tanh(x),
        )
        return self._choose(choices)()

    def _branch(self, x, full):
        return wf.cond(full.sum() > 0.1, lambda v: wf.tanh(v + x), lambda v: v * 0.5 - x, full)
