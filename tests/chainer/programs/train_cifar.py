#!/usr/bin/env python
# A small network of VGG's kind: blocks of convolution, batch normalisation and dropout.
import argparse

import chainer
import chainer.functions as F
import chainer.links as L
from chainer import training
from chainer.training import extensions
from chainer.training import triggers
import numpy as np

from digits import get_digits


class Block(chainer.Chain):

    def __init__(self, out_channels, ksize, pad=1):
        super(Block, self).__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(None, out_channels, ksize, pad=pad, nobias=True)
            self.bn = L.BatchNormalization(out_channels)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class SmallVGG(chainer.Chain):

    def __init__(self, class_labels=10):
        super(SmallVGG, self).__init__()
        with self.init_scope():
            self.block1_1 = Block(16, 3)
            self.block1_2 = Block(16, 3)
            self.block2_1 = Block(32, 3)
            self.block2_2 = Block(32, 3)
            self.fc1 = L.Linear(None, 64, nobias=True)
            self.bn_fc1 = L.BatchNormalization(64)
            self.fc2 = L.Linear(None, class_labels, nobias=True)

    def forward(self, x):
        h = F.dropout(self.block1_1(x), ratio=0.1)
        h = F.max_pooling_2d(self.block1_2(h), ksize=2, stride=2)
        h = F.dropout(self.block2_1(h), ratio=0.1)
        h = F.max_pooling_2d(self.block2_2(h), ksize=2, stride=2)
        h = F.dropout(h, ratio=0.2)
        h = F.relu(self.bn_fc1(self.fc1(h)))
        return self.fc2(F.dropout(h, ratio=0.2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--batchsize', '-b', type=int, default=50)
    parser.add_argument('--learnrate', '-l', type=float, default=0.05)
    parser.add_argument('--epoch', '-e', type=int, default=4)
    parser.add_argument('--out', '-o', default='result')
    args = parser.parse_args()

    np.random.seed(2)
    model = L.Classifier(SmallVGG())
    optimizer = chainer.optimizers.MomentumSGD(args.learnrate)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(5e-4))

    train, test = get_digits(ndim=3)
    train_iter = chainer.iterators.SerialIterator(train, args.batchsize)
    test_iter = chainer.iterators.SerialIterator(test, 99, repeat=False, shuffle=False)
    stop_trigger = triggers.EarlyStoppingTrigger(
        monitor='validation/main/loss', patients=3, max_trigger=(args.epoch, 'epoch'))
    updater = training.updaters.StandardUpdater(train_iter, optimizer)
    trainer = training.Trainer(updater, stop_trigger, out=args.out)
    trainer.extend(extensions.Evaluator(test_iter, model))
    trainer.extend(extensions.ExponentialShift('lr', 0.5), trigger=(2, 'epoch'))
    trainer.extend(extensions.observe_lr())
    trainer.extend(extensions.LogReport())
    trainer.extend(extensions.PrintReport(
        ['epoch', 'lr', 'main/loss', 'validation/main/loss',
         'main/accuracy', 'validation/main/accuracy', 'elapsed_time']))
    trainer.run()

    accuracy = trainer.observation['validation/main/accuracy']
    print('accuracy', accuracy)
    assert accuracy > 0.97, accuracy


if __name__ == '__main__':
    main()
