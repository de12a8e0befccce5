#!/usr/bin/env python
# A recursive network over trees: each node is composed of its children and says a sentiment.
import argparse
import collections
import random

import chainer
import chainer.functions as F
import chainer.links as L
from chainer import optimizers
import numpy as np

WORDS = ['good', 'great', 'bad', 'awful', 'film', 'plot', 'not', 'very']
VALUES = {'good': 1, 'great': 1, 'bad': -1, 'awful': -1, 'film': 0, 'plot': 0}


class SexpParser(object):
    """Reads (label left right) and (label word)."""

    def __init__(self, line):
        self.tokens = line.replace('(', ' ( ').replace(')', ' ) ').split()
        self.pos = 0

    def parse(self):
        assert self.tokens[self.pos] == '('
        self.pos += 1
        items = []
        while self.tokens[self.pos] != ')':
            if self.tokens[self.pos] == '(':
                items.append(self.parse())
            else:
                items.append(self.tokens[self.pos])
                self.pos += 1
        self.pos += 1
        return items


def convert_tree(vocab, exp):
    if len(exp) == 2:
        label, leaf = exp
        return {'label': int(label), 'node': vocab[leaf]}
    label, left, right = exp
    return {'label': int(label), 'node': (convert_tree(vocab, left), convert_tree(vocab, right))}


def sentence(rng, depth):
    """Return a value and a line: opinions, of which 'not' turns one round."""
    if depth == 0 or rng.random() < 0.2:
        word = rng.choice(WORDS[:6])
        value = VALUES[word]
        return value, '({} {})'.format(value + 1, word)
    if rng.random() < 0.4:
        value, inner = sentence(rng, depth - 1)
        return -value, '({} (1 not) {})'.format(1 - value, inner)
    left, first = sentence(rng, depth - 1)
    right, second = sentence(rng, depth - 1)
    value = left if right == 0 else right  # the last opinion counts
    return value, '({} {} {})'.format(value + 1, first, second)


class RecursiveNet(chainer.Chain):

    def traverse(self, node, evaluate=None, root=True):
        if isinstance(node['node'], int):
            word = np.array([node['node']], np.int32)
            loss = 0
            v = self.leaf(word)
        else:
            left_node, right_node = node['node']
            left_loss, left = self.traverse(left_node, evaluate=evaluate, root=False)
            right_loss, right = self.traverse(right_node, evaluate=evaluate, root=False)
            v = self.node(left, right)
            loss = left_loss + right_loss
        y = self.label(v)
        label = np.array([node['label']], np.int32)
        loss += F.softmax_cross_entropy(y, label)
        predict = y.array.argmax(1)
        if evaluate is not None:
            if predict[0] == node['label']:
                evaluate['correct_node'] += 1
            evaluate['total_node'] += 1
            if root:
                evaluate['correct_root'] += int(predict[0] == node['label'])
                evaluate['total_root'] += 1
        return loss, v

    def __init__(self, n_vocab, n_units, n_label):
        super(RecursiveNet, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units)
            self.l = L.Linear(n_units * 2, n_units)
            self.w = L.Linear(n_units, n_label)

    def leaf(self, x):
        return self.embed(x)

    def node(self, left, right):
        return F.tanh(self.l(F.concat((left, right))))

    def label(self, v):
        return self.w(v)


def evaluate(model, test_trees):
    result = collections.defaultdict(lambda: 0)
    with chainer.using_config('train', False), chainer.no_backprop_mode():
        for tree in test_trees:
            model.traverse(tree, evaluate=result)
    node = 1.0 * result['correct_node'] / result['total_node']
    root = 1.0 * result['correct_root'] / result['total_root']
    print(' Node accuracy: {0:.2f}  Root accuracy: {1:.2f}'.format(node, root))
    return node, root


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--epoch', '-e', type=int, default=6)
    parser.add_argument('--unit', '-u', type=int, default=16)
    parser.add_argument('--batchsize', '-b', type=int, default=10)
    parser.add_argument('--out', '-o', default='result')
    args = parser.parse_args()

    np.random.seed(7)
    rng = random.Random(7)
    vocab = {word: number for number, word in enumerate(WORDS)}
    trees = [convert_tree(vocab, SexpParser(sentence(rng, 3)[1]).parse()) for _ in range(260)]
    train_trees, test_trees = trees[:200], trees[200:]

    model = RecursiveNet(len(vocab), args.unit, 3)
    optimizer = optimizers.AdaGrad(lr=0.1)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(0.0001))

    accum_loss, count = 0, 0
    for epoch in range(args.epoch):
        total_loss = 0
        rng.shuffle(train_trees)
        for tree in train_trees:
            loss, v = model.traverse(tree)
            accum_loss += loss
            count += 1
            if count >= args.batchsize:
                model.cleargrads()
                accum_loss.backward()
                optimizer.update()
                total_loss += float(accum_loss.array)
                accum_loss, count = 0, 0
        print('Epoch: {0}  loss: {1:.2f}'.format(epoch, total_loss))
    node, root = evaluate(model, test_trees)
    assert node > 0.95, node
    assert root > 0.88, root


if __name__ == '__main__':
    main()
