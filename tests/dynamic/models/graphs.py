"""Graphs of atoms, and trees of decisions that are read."""

from __future__ import annotations

import numpy as np

import weft as wf
from weft.data import ATOMS, make_molecules

from .base import Model, pick

WIDTH, FEATURES, LEAVES = 5, 4, 3


class Molecules(Model):
    """A graph network: atoms take the sum of their neighbours' messages, a few times."""

    rounds = 2

    def build(self):
        self.atoms, self.bonds = self.make(len(ATOMS), WIDTH), self.make(4, WIDTH)
        self.message, self.own = self.make(WIDTH, WIDTH), self.make(WIDTH, WIDTH)
        self.attention, self.out = self.make(WIDTH), self.make(WIDTH, 2)

    def examples(self, count):
        return make_molecules(count, atoms=(1, 7), seed=12)

    def loss(self, molecule):
        h, size = self.atoms[wf.tensor(molecule.atoms)], len(molecule)
        source, target = map(wf.tensor, molecule.edges)
        bonds = self.bonds[wf.tensor(np.tile(molecule.orders, 2))]
        for _ in range(self.rounds):
            sent = h[source] @ self.message * wf.sigmoid(bonds)
            shares = wf.segment_softmax(sent @ self.attention, target, size)
            received = wf.segment_sum(sent * wf.reshape(shares, (-1, 1)), target, size)
            h = wf.tanh(h @ self.own + received)
        scores = wf.log_softmax(h.mean(axis=0) @ self.out)
        return pick(scores, molecule.label), h


class Routing(Model):
    """A decision tree whose nodes are networks: a number is read, one branch is taken."""

    depth = 3

    def build(self):
        nodes = range(1, 2**self.depth)  # as in a heap: 1 is the root, 2n and 2n + 1 below n
        self.planes = {node: self.make(FEATURES) for node in nodes}
        self.maps = {node: self.make(FEATURES, FEATURES) for node in nodes}
        self.leaves = [self.make(FEATURES, LEAVES) for _ in range(2**self.depth)]

    def examples(self, count):
        rng = np.random.default_rng(13)
        return [
            (rng.normal(0, 1, FEATURES).astype(self.dtype), int(rng.integers(LEAVES)))
            for _ in range(count)
        ]

    def loss(self, example):
        values, label = example
        x, node, total = wf.tensor(values), 1, 0.0
        for _ in range(self.depth):
            score = (x * self.planes[node]).sum()
            x = wf.tanh(x @ self.maps[node]) + x
            total = total + wf.softplus(-wf.abs(score))
            node = 2 * node + (1 if score > 0 else 0)
        leaf = node - 2**self.depth
        return pick(wf.log_softmax(x @ self.leaves[leaf]), label) + 0.1 * total, leaf
