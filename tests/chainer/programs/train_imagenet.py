#!/usr/bin/env python
# Residual blocks on cropped and mirrored images; training stops, and goes on from its snapshot.
import argparse
import os
import random

import chainer
import chainer.functions as F
import chainer.links as L
from chainer import training
from chainer.training import extensions
import numpy as np

from digits import get_digits


class PreprocessedDataset(chainer.dataset.DatasetMixin):

    def __init__(self, base, mean, crop_size, random=True):
        self.base = base
        self.mean = mean.astype(np.float32)
        self.crop_size = crop_size
        self.random = random

    def __len__(self):
        return len(self.base)

    def get_example(self, i):
        crop_size = self.crop_size
        image, label = self.base[i]
        _, h, w = image.shape
        if self.random:
            top = random.randint(0, h - crop_size)
            left = random.randint(0, w - crop_size)
        else:
            top = (h - crop_size) // 2
            left = (w - crop_size) // 2
        image = image - self.mean
        return image[:, top:top + crop_size, left:left + crop_size], label


class BottleNeckA(chainer.Chain):

    def __init__(self, in_size, ch, out_size, stride=2):
        super(BottleNeckA, self).__init__()
        initialW = chainer.initializers.HeNormal()
        with self.init_scope():
            self.conv1 = L.Convolution2D(in_size, ch, 1, stride, 0, initialW=initialW, nobias=True)
            self.bn1 = L.BatchNormalization(ch)
            self.conv2 = L.Convolution2D(ch, ch, 3, 1, 1, initialW=initialW, nobias=True)
            self.bn2 = L.BatchNormalization(ch)
            self.conv3 = L.Convolution2D(ch, out_size, 1, 1, 0, initialW=initialW, nobias=True)
            self.bn3 = L.BatchNormalization(out_size)
            self.conv4 = L.Convolution2D(in_size, out_size, 1, stride, 0, initialW=initialW,
                                         nobias=True)
            self.bn4 = L.BatchNormalization(out_size)

    def forward(self, x):
        h1 = F.relu(self.bn1(self.conv1(x)))
        h1 = F.relu(self.bn2(self.conv2(h1)))
        h1 = self.bn3(self.conv3(h1))
        h2 = self.bn4(self.conv4(x))
        return F.relu(h1 + h2)


class BottleNeckB(chainer.Chain):

    def __init__(self, in_size, ch):
        super(BottleNeckB, self).__init__()
        initialW = chainer.initializers.HeNormal()
        with self.init_scope():
            self.conv1 = L.Convolution2D(in_size, ch, 1, 1, 0, initialW=initialW, nobias=True)
            self.bn1 = L.BatchNormalization(ch)
            self.conv2 = L.Convolution2D(ch, in_size, 3, 1, 1, initialW=initialW, nobias=True)
            self.bn2 = L.BatchNormalization(in_size)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        h = self.bn2(self.conv2(h))
        return F.relu(h + x)


class Block(chainer.ChainList):

    def __init__(self, layer, in_size, ch, out_size, stride=2):
        super(Block, self).__init__()
        self.add_link(BottleNeckA(in_size, ch, out_size, stride))
        for _ in range(layer - 1):
            self.add_link(BottleNeckB(out_size, ch))

    def forward(self, x):
        for f in self.children():
            x = f(x)
        return x


class SmallResNet(chainer.Chain):

    insize = 7

    def __init__(self):
        super(SmallResNet, self).__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(1, 16, 3, 1, 1, initialW=chainer.initializers.HeNormal())
            self.bn1 = L.BatchNormalization(16)
            self.res2 = Block(2, 16, 8, 16, 1)
            self.res3 = Block(2, 16, 16, 32)
            self.fc = L.Linear(32, 10)

    def forward(self, x, t):
        h = F.relu(self.bn1(self.conv1(x)))
        h = self.res3(self.res2(h))
        h = F.average_pooling_2d(h, h.shape[2:], stride=1)
        h = self.fc(h)
        loss = F.softmax_cross_entropy(h, t)
        chainer.report({'loss': loss, 'accuracy': F.accuracy(h, t)}, self)
        return loss


def make_trainer(args, epoch):
    random.seed(11)
    np.random.seed(11)
    train, val = get_digits(ndim=3)
    mean = np.mean([image for image, _ in train[:]], axis=0)
    model = SmallResNet()
    train = PreprocessedDataset(train, mean, model.insize)
    val = PreprocessedDataset(val, mean, model.insize, False)
    train_iter = chainer.iterators.MultithreadIterator(train, args.batchsize, n_threads=2)
    val_iter = chainer.iterators.SerialIterator(val, 99, repeat=False, shuffle=False)
    optimizer = chainer.optimizers.CorrectedMomentumSGD(lr=0.2, momentum=0.9)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-4))
    updater = training.updaters.StandardUpdater(train_iter, optimizer)
    trainer = training.Trainer(updater, (epoch, 'epoch'), args.out)
    trainer.extend(extensions.Evaluator(val_iter, model), trigger=(1, 'epoch'))
    trainer.extend(extensions.snapshot(filename='snapshot_epoch_{.updater.epoch}'),
                   trigger=(3, 'epoch'))
    trainer.extend(extensions.snapshot_object(model, 'model_iter_{.updater.iteration}'),
                   trigger=(3, 'epoch'))
    trainer.extend(extensions.LinearShift('lr', (0.2, 0.01), (60, 720)))
    trainer.extend(extensions.observe_lr(), trigger=(1, 'epoch'))
    trainer.extend(extensions.LogReport(trigger=(1, 'epoch')))
    trainer.extend(extensions.PrintReport([
        'epoch', 'iteration', 'main/loss', 'validation/main/loss',
        'main/accuracy', 'validation/main/accuracy', 'lr']), trigger=(1, 'epoch'))
    return trainer, model


def main():
    parser = argparse.ArgumentParser(description='Residual network')
    parser.add_argument('--batchsize', '-B', type=int, default=50)
    parser.add_argument('--epoch', '-E', type=int, default=24)
    parser.add_argument('--resume', '-r', default='')
    parser.add_argument('--out', '-o', default='result')
    args = parser.parse_args()

    trainer, _ = make_trainer(args, args.epoch // 2)
    trainer.run()
    halfway = trainer.observation['validation/main/loss']

    resume = args.resume or os.path.join(args.out, 'snapshot_epoch_{}'.format(args.epoch // 2))
    trainer, model = make_trainer(args, args.epoch)
    chainer.serializers.load_npz(resume, trainer)
    assert trainer.updater.iteration == 30 * (args.epoch // 2)
    assert trainer.updater.epoch == args.epoch // 2
    val_iter = trainer.get_extension('validation').get_iterator('main')
    loss = extensions.Evaluator(val_iter, model)()['main/loss']
    assert abs(float(loss) - halfway) < 1e-5, (loss, halfway)
    trainer.run()

    accuracy = trainer.observation['validation/main/accuracy']
    print('accuracy', accuracy)
    assert accuracy > 0.97, accuracy


if __name__ == '__main__':
    main()
