"""Trees: tree-LSTMs, a matrix for each relation, a recursive autoencoder."""

from __future__ import annotations

import itertools

import weft as wf
from weft.data import make_trees

from .base import Model, pick

WORDS, CLASSES, WIDTH = 12, 3, 5


def number(word):
    return int(word[1:])


class ChildSum(Model):
    """The child-sum tree-LSTM over trees of any arity (Tai 2015): a forget gate for each child."""

    cell_names = ("leaf", "forget", "node")

    def build(self):
        self.table = self.make(WORDS, WIDTH)
        self.w_iou, self.b_iou = self.make(WIDTH, 3 * WIDTH), self.make(3 * WIDTH)
        self.u_iou = self.make(WIDTH, 3 * WIDTH)
        self.u_f, self.b_f = self.make(WIDTH, WIDTH), self.make(WIDTH)
        self.out = self.make(WIDTH, CLASSES)

    def examples(self, count):
        return make_trees(count, leaves=(1, 9), arity=4, vocabulary=WORDS, seed=3)

    def leaf(self, word):
        return self.gates(self.table[word] @ self.w_iou + self.b_iou, 0.0)

    def forget(self, h, c):
        return wf.sigmoid(h @ self.u_f + self.b_f) * c

    def node(self, h, c):
        return self.gates(h @ self.u_iou + self.b_iou, c)

    def gates(self, iou, c):
        i, o, u = wf.chunk(iou, 3)
        c = wf.sigmoid(i) * wf.tanh(u) + c
        return wf.sigmoid(o) * wf.tanh(c), c

    def state(self, tree):
        if tree.word is not None:
            return self.leaf(wf.tensor(number(tree.word)))
        below = [self.state(child) for child in tree.children]
        h, c = below[0][0], self.forget(*below[0])
        for state in below[1:]:
            h, c = h + state[0], c + self.forget(*state)
        return self.node(h, c)

    def loss(self, tree):
        h, c = self.state(tree)
        scores = wf.log_softmax(h @ self.out)
        return pick(scores, tree.label), {"h": h, "c": c}


class NaryTreeLSTM(Model):
    """The binary tree-LSTM, with a loss at every node, as for sentiments of phrases."""

    cell_names = ("leaf", "node", "cost")

    def build(self):
        self.table = self.make(WORDS, 2 * WIDTH)
        self.weight, self.bias = self.make(2 * WIDTH, 5 * WIDTH), self.make(5 * WIDTH)
        self.out = self.make(WIDTH, CLASSES)

    def examples(self, count):
        return make_trees(count, leaves=(1, 9), vocabulary=WORDS, seed=4)

    def leaf(self, word):
        h, c = wf.chunk(self.table[word], 2)
        return wf.tanh(h), c

    def node(self, left, right):
        (hl, cl), (hr, cr) = left, right
        i, fl, fr, o, u = wf.chunk(wf.concat([hl, hr]) @ self.weight + self.bias, 5)
        c = wf.sigmoid(i) * wf.tanh(u) + wf.sigmoid(fl) * cl + wf.sigmoid(fr) * cr
        return wf.sigmoid(o) * wf.tanh(c), c

    def cost(self, h, label):
        return pick(wf.log_softmax(h @ self.out), label)

    def visit(self, tree, losses):
        if tree.word is not None:
            state = self.leaf(wf.tensor(number(tree.word)))
        else:
            state = self.node(self.visit(tree.left, losses), self.visit(tree.right, losses))
        losses.append(self.cost(state[0], wf.tensor(tree.label)))
        return state

    def loss(self, tree):
        losses = []
        h, _ = self.visit(tree, losses)
        return sum(losses) / len(losses), h


class RelationTree(Model):
    """A tree network with a matrix of its own for each relation between a child and its node."""

    relations = ("left", "right", "middle")

    def build(self):
        self.table = self.make(WORDS, WIDTH)
        self.matrices = {name: self.make(WIDTH, WIDTH) for name in self.relations}
        self.bias, self.out = self.make(WIDTH), self.make(WIDTH, CLASSES)

    def examples(self, count):
        return make_trees(count, leaves=(1, 8), arity=3, vocabulary=WORDS, seed=5)

    def relation(self, i, count):
        return "left" if i == 0 else "right" if i == count - 1 else "middle"

    def vector(self, tree):
        if tree.word is not None:
            return self.table[number(tree.word)]
        total, count = self.bias, len(tree.children)
        for i, child in enumerate(tree.children):
            total = total + self.vector(child) @ self.matrices[self.relation(i, count)]
        return wf.tanh(total)

    def loss(self, tree):
        v = self.vector(tree)
        return pick(wf.log_softmax(v @ self.out), tree.label), v


class RecursiveAutoencoder(Model):
    """A recursive autoencoder (Socher 2011): the pair that is rebuilt best is joined next.

    Which pair that is, is read from the errors: each example takes a way of its own.
    """

    cell_names = ("join",)

    def build(self):
        self.table = self.make(WORDS, WIDTH)
        self.encode, self.b_encode = self.make(2 * WIDTH, WIDTH), self.make(WIDTH)
        self.decode, self.b_decode = self.make(WIDTH, 2 * WIDTH), self.make(2 * WIDTH)

    def examples(self, count):
        trees = make_trees(count, leaves=(2, 7), vocabulary=WORDS, seed=6)
        return [[number(word) for word in tree.words()] for tree in trees]

    def join(self, left, right):
        pair = wf.concat([left, right])
        code = wf.tanh(pair @ self.encode + self.b_encode)
        again = code @ self.decode + self.b_decode
        return code, ((pair - again) ** 2).sum()

    def loss(self, words):
        vectors, total = [self.table[word] for word in words], 0.0
        while len(vectors) > 1:
            joined = [self.join(a, b) for a, b in itertools.pairwise(vectors)]
            errors = wf.stack([error for _, error in joined])
            best = int(wf.argmin(errors))
            code, error = joined[best]
            vectors[best : best + 2] = [code]
            total = total + error
        return total, vectors[0]
