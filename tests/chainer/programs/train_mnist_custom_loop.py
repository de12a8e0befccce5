#!/usr/bin/env python
# A perceptron of digits in a loop of its own; its model and optimizer are saved and loaded.
import argparse
import os

import chainer
import chainer.functions as F
import chainer.links as L
from chainer import configuration
from chainer import serializers
from chainer.dataset import concat_examples
import numpy as np

from digits import get_digits


class MLP(chainer.Chain):

    def __init__(self, n_units, n_out):
        super(MLP, self).__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, n_units)
            self.bn = L.BatchNormalization(n_units)
            self.l2 = L.Linear(None, n_out)

    def forward(self, x):
        return self.l2(F.dropout(F.relu(self.bn(self.l1(x))), ratio=0.2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--batchsize', '-b', type=int, default=50)
    parser.add_argument('--epoch', '-e', type=int, default=8)
    parser.add_argument('--out', '-o', default='result')
    parser.add_argument('--unit', '-u', type=int, default=64)
    args = parser.parse_args()

    np.random.seed(1)
    model = L.Classifier(MLP(args.unit, 10))
    optimizer = chainer.optimizers.MomentumSGD(lr=0.05, momentum=0.9)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-4))

    train, test = get_digits()
    train_count, test_count = len(train), len(test)
    train_iter = chainer.iterators.SerialIterator(train, args.batchsize)
    test_iter = chainer.iterators.SerialIterator(test, args.batchsize, repeat=False, shuffle=False)

    sum_accuracy = 0
    sum_loss = 0
    while train_iter.epoch < args.epoch:
        x_array, t_array = concat_examples(train_iter.next())
        x = chainer.Variable(x_array)
        t = chainer.Variable(t_array)
        optimizer.update(model, x, t)
        sum_loss += float(model.loss.array) * len(t)
        sum_accuracy += float(model.accuracy.array) * len(t)

        if train_iter.is_new_epoch:
            print('epoch', train_iter.epoch, 'train mean loss', sum_loss / train_count,
                  'accuracy', sum_accuracy / train_count)
            sum_accuracy = 0
            sum_loss = 0
            with configuration.using_config('train', False), chainer.using_config(
                    'enable_backprop', False):
                for batch in test_iter:
                    x, t = concat_examples(batch)
                    loss = model(x, t)
                    sum_loss += float(loss.array) * len(t)
                    sum_accuracy += float(model.accuracy.array) * len(t)
            test_iter.reset()
            accuracy = sum_accuracy / test_count
            print('test mean  loss: {}, accuracy: {}'.format(sum_loss / test_count, accuracy))
            sum_accuracy = 0
            sum_loss = 0

    if not os.path.isdir(args.out):
        os.makedirs(args.out)
    serializers.save_npz('{}/mlp.model'.format(args.out), model)
    serializers.save_npz('{}/mlp.state'.format(args.out), optimizer)
    assert accuracy > 0.95, accuracy

    again = L.Classifier(MLP(args.unit, 10))
    serializers.load_npz('{}/mlp.model'.format(args.out), again)
    x, t = concat_examples(test[:])
    with chainer.using_config('train', False), chainer.no_backprop_mode():
        again(x, t)
    print('loaded accuracy', again.accuracy.array)
    assert abs(float(again.accuracy.array) - accuracy) < 1e-6


if __name__ == '__main__':
    main()
