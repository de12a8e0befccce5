"""Random trees, and a tree-LSTM over them, as plain eager code for one tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import weft as wf


class Tree(NamedTuple):
    """A binary tree: a leaf has a word, another node two children."""

    word: int | None = None
    left: Tree | None = None
    right: Tree | None = None


def random_tree(rng, leaves, words=20):
    """Return a tree with so many leaves."""
    if leaves == 1:
        return Tree(int(rng.integers(words)))
    cut = int(rng.integers(1, leaves))
    return Tree(None, random_tree(rng, cut, words), random_tree(rng, leaves - cut, words))


def random_trees(count, low, high, seed=0):
    """Return trees with low to high leaves."""
    rng = np.random.default_rng(seed)
    return [random_tree(rng, int(rng.integers(low, high + 1))) for _ in range(count)]


class TreeNet:
    """A binary tree-LSTM; with `cells`, its steps are cells."""

    def __init__(self, width, words=20, cells=False, dtype="float64"):
        rng = np.random.default_rng(1)
        make = lambda *shape: wf.tensor(  # noqa: E731  (one line)
            rng.normal(0, 0.3, shape).astype(dtype), requires_grad=True
        )
        self.table, self.weight, self.bias = (
            *(make(words, width), make(2 * width, 5 * width), make(5 * width)),
        )
        self.parameters = [self.table, self.weight, self.bias]
        if cells:
            self.leaf, self.node = wf.cell(self.leaf), wf.cell(self.node)

    def leaf(self, word):
        """Return the state of a leaf."""
        row = wf.take(self.table, word, axis=0)
        return wf.tanh(row), row

    def node(self, left, right):
        """Return the state of a node from those of its children."""
        (hl, cl), (hr, cr) = left, right
        i, fl, fr, o, u = wf.chunk(wf.concat([hl, hr]) @ self.weight + self.bias, 5)
        c = wf.sigmoid(i) * wf.tanh(u) + wf.sigmoid(fl) * cl + wf.sigmoid(fr) * cr
        return wf.sigmoid(o) * wf.tanh(c), c

    def state(self, tree):
        """Return the state of a tree."""
        if tree.word is not None:
            return self.leaf(wf.tensor(tree.word))
        return self.node(self.state(tree.left), self.state(tree.right))

    def loss(self, tree):
        """Return a number for a tree."""
        h, c = self.state(tree)
        return (h * h).sum() + c.mean()
