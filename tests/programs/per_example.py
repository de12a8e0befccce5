"""Random programs for one example each: loops, recursion and branches that examples decide.

A program is a list of statements over a pool of vectors; `PerExample(seed)` draws one, and calling
it with an example runs it as plain eager code. Examples are trees of numbers with a few vectors, so
that each runs other statements, in other shapes. Some branches read values of tensors.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

import weft as wf

WIDTHS = (2, 3, 4)
WORDS = 7

UNARY = (
    wf.tanh,
    lambda x: wf.sigmoid(x) - 0.5,
    wf.sin,
    lambda x: -x,
    lambda x: x * 0.5 + 0.25,
    lambda x: wf.maximum(x, 0.1 * x),
    wf.softmax,
    lambda x: x - x.mean(),
    lambda x: wf.flip(x, 0),
    lambda x: wf.cumsum(x, 0) * 0.5,
    lambda x: wf.concat([x[1:], x[:1]]),
    wf.sort,
    lambda x: wf.stop_gradient(x) * x,
    lambda x: wf.reshape(wf.outer(x, x), (-1,))[: x.shape[0]],
)
BINARY = (
    lambda x, y: x + y,
    lambda x, y: x - 0.5 * y,
    lambda x, y: x * y,
    lambda x, y: wf.where(x > y, x, 0.3 * y),
    wf.maximum,
    lambda x, y: x / (1.0 + y * y),
    lambda x, y: wf.stack([x, y]).mean(axis=0),
)
REDUCED = (
    lambda x: x.sum(),
    lambda x: x.mean(),
    lambda x: x.max(),
    lambda x: x[0],
    lambda x: (x * x).sum(),
    lambda x: wf.logsumexp(x, axis=0),
)


@dataclass
class Example:
    """A tree of words with vectors, and a few numbers that decide branches."""

    tree: object  # a word, or a list of trees
    vectors: list[np.ndarray]
    count: int
    flag: bool


def examples(seed, count, dtype):
    """Return random examples."""
    rng = random.Random(seed)
    return [_example(rng, dtype) for _ in range(count)]


def _example(rng, dtype):
    vectors = [
        np.array([rng.uniform(-1, 1) for _ in range(WIDTHS[0])], dtype)
        for _ in range(rng.randint(1, 3))
    ]
    return Example(_tree(rng, 3), vectors, rng.randint(0, 3), rng.random() < 0.5)


def _tree(rng, depth):
    if not depth or rng.random() < 0.3:
        return rng.randrange(WORDS)
    return [_tree(rng, depth - 1) for _ in range(rng.randint(1, 3))]


class PerExample:
    """A random program, with parameters that all examples share."""

    def __init__(self, seed, dtype="float64"):
        self._rng = random.Random(seed)
        self._numbers = np.random.default_rng(seed)
        self._dtype = dtype
        self.parameters = []
        self.reads = self._rng.random() < 0.5
        self.table = self._parameter(WORDS, WIDTHS[0])
        self.body = self._block(3, self._rng.randint(3, 7))

    def __call__(self, example):
        pool = [wf.tensor(v) for v in example.vectors]
        self._run(self.body, pool, example)
        total = sum(x.sum() for x in pool[-3:])
        return wf.tanh(total) + 0.01 * total + self.table[example.count].sum(), list(pool)

    def _run(self, block, pool, example):
        for statement in block:
            statement(pool, example)

    def _parameter(self, *shape):
        values = self._numbers.normal(0, 0.5, shape).astype(self._dtype)
        self.parameters.append(wf.tensor(values, requires_grad=True))
        return self.parameters[-1]

    # -- statements -------------------------------------------------------------------------------

    def _block(self, depth, count):
        plain = [self._unary, self._binary, self._binary, self._affine, self._affine, self._scaled]
        plain += [self._word, self._joined, self._cell]
        nested = [self._loop, self._branch, self._recursion, self._read, self._skip]
        kinds = plain + nested * (2 if depth else 0)
        return [self._rng.choice(kinds)(depth - 1) for _ in range(count)]

    def _picks(self, count):
        return [self._rng.random() for _ in range(count)]

    def _unary(self, depth):
        op, (at,) = self._rng.choice(UNARY), self._picks(1)
        return lambda pool, example: pool.append(op(_one(pool, at)))

    def _binary(self, depth):
        op, (a, b) = self._rng.choice(BINARY), self._picks(2)

        def run(pool, example):
            x = _one(pool, a)
            alike = [y for y in pool if y.shape == x.shape]
            pool.append(op(x, _one(alike, b)))

        return run

    def _affine(self, depth):
        maps = {n: self._map(n, self._rng.choice(WIDTHS)) for n in WIDTHS}
        (at,) = self._picks(1)

        def run(pool, example):
            x = _one(pool, at)
            weight, bias = maps[x.shape[0]]
            pool.append(wf.tanh(x @ weight + bias))

        return run

    def _map(self, inputs, outputs):
        return self._parameter(inputs, outputs), self._parameter(outputs)

    def _scaled(self, depth):
        op, (a, b) = self._rng.choice(REDUCED), self._picks(2)
        return lambda pool, example: pool.append(_one(pool, a) * wf.tanh(op(_one(pool, b))))

    def _word(self, depth):
        return lambda pool, example: pool.append(self.table[_words(example.tree)[example.count]])

    def _joined(self, depth):
        def run(pool, example):
            alike = [x for x in pool if x.shape == pool[-1].shape][-4:]
            # Another factor each time: a mean of equals is compared with them by rounding alone.
            many = [x * 0.75**k for k in range(1 + 2 * example.count) for x in alike]
            pool.append(sum(many) / len(many) if example.flag else wf.stack(many).mean(axis=0))

        return run

    def _cell(self, depth):
        weights = {n: self._map(2 * n, n) for n in WIDTHS}
        step = wf.cell(lambda x, y: self._cell_step(weights, x, y))
        a, b = self._picks(2)

        def run(pool, example):
            x = _one(pool, a)
            pool.append(step(x, _one([y for y in pool if y.shape == x.shape], b)))

        return run

    def _cell_step(self, weights, x, y):
        weight, bias = weights[x.shape[0]]
        return wf.sigmoid(x) * y + wf.tanh(wf.concat([x, y]) @ weight + bias)

    # -- what examples decide ---------------------------------------------------------------------

    def _loop(self, depth):
        block = self._block(depth, self._rng.randint(1, 2))

        def run(pool, example):
            for _ in range(example.count):
                self._run(block, pool, example)
                del pool[1:-6]

        return run

    def _branch(self, depth):
        then, other = self._block(depth, 1), self._block(depth, 2)
        return lambda pool, example: self._run(then if example.flag else other, pool, example)

    def _skip(self, depth):
        block = self._block(depth, 1)
        least = self._rng.randint(1, 6)

        def run(pool, example):
            if len(_words(example.tree)) >= least:
                self._run(block, pool, example)

        return run

    def _recursion(self, depth):
        width = WIDTHS[0]
        join, bias = self._parameter(width, width), self._parameter(width)

        def state(tree):
            if isinstance(tree, int):
                return self.table[tree]
            return wf.tanh(sum(state(child) for child in tree) @ join + bias)

        return lambda pool, example: pool.append(state(example.tree))

    def _read(self, depth):
        """Return a branch on a value: of a tensor in some programs, else of the example."""
        then, other = self._block(depth, 1), self._block(depth, 1)
        op, (at,) = self._rng.choice(REDUCED), self._picks(1)

        def run(pool, example):
            taken = op(_one(pool, at)) > 0.05 if self.reads else example.count > 1
            self._run(then if taken else other, pool, example)

        return run


def _one(pool, share):
    return pool[int(share * len(pool))]


def _words(tree):
    """Return the words of a tree, from left to right, repeated so that there are four."""
    if isinstance(tree, int):
        return [tree] * 4
    return [word for child in tree for word in _words(child)]
