#!/usr/bin/env python
# Words as vectors: skip-gram and continuous bag of words with negative sampling.
import argparse
import collections

import chainer
import chainer.functions as F
import chainer.links as L
import chainer.initializers as I
from chainer import reporter
from chainer import training
from chainer.training import extensions
import numpy as np


class ContinuousBoW(chainer.Chain):

    def __init__(self, n_vocab, n_units, loss_func):
        super(ContinuousBoW, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units, initialW=I.Uniform(1. / n_units))
            self.loss_func = loss_func

    def forward(self, x, contexts):
        e = self.embed(contexts)
        h = F.sum(e, axis=1) * (1. / contexts.shape[1])
        loss = self.loss_func(h, x)
        reporter.report({'loss': loss}, self)
        return loss


class SkipGram(chainer.Chain):

    def __init__(self, n_vocab, n_units, loss_func):
        super(SkipGram, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units, initialW=I.Uniform(1. / n_units))
            self.loss_func = loss_func

    def forward(self, x, contexts):
        e = self.embed(contexts)
        batch_size, n_context, n_units = e.shape
        x = F.broadcast_to(F.expand_dims(x, 1), (batch_size, n_context))
        e = F.reshape(e, (batch_size * n_context, n_units))
        x = F.reshape(x, (batch_size * n_context,))
        loss = self.loss_func(e, x)
        reporter.report({'loss': loss}, self)
        return loss


class SoftmaxCrossEntropyLoss(chainer.Chain):

    def __init__(self, n_in, n_out):
        super(SoftmaxCrossEntropyLoss, self).__init__()
        with self.init_scope():
            self.out = L.Linear(n_in, n_out, initialW=0)

    def forward(self, x, t):
        return F.softmax_cross_entropy(self.out(x), t)


class WindowIterator(chainer.dataset.Iterator):
    """Words and those around them."""

    def __init__(self, dataset, window, batch_size, repeat=True):
        self.dataset = np.array(dataset, np.int32)
        self.window = window
        self.batch_size = batch_size
        self._repeat = repeat
        self.order = np.random.permutation(len(dataset) - window * 2).astype(np.int32)
        self.order += window
        self.current_position = 0
        self.epoch = 0
        self.is_new_epoch = False

    def __next__(self):
        if not self._repeat and self.epoch > 0:
            raise StopIteration
        i = self.current_position
        i_end = i + self.batch_size
        position = self.order[i:i_end]
        offset = np.concatenate([np.arange(-self.window, 0), np.arange(1, self.window + 1)])
        pos = position[:, None] + offset[None, :]
        contexts = self.dataset.take(pos)
        center = self.dataset.take(position)
        if i_end >= len(self.order):
            np.random.shuffle(self.order)
            self.epoch += 1
            self.is_new_epoch = True
            self.current_position = 0
        else:
            self.is_new_epoch = False
            self.current_position = i_end
        return center, contexts

    @property
    def epoch_detail(self):
        return self.epoch + float(self.current_position) / len(self.order)

    def serialize(self, serializer):
        self.current_position = serializer('current_position', self.current_position)
        self.epoch = serializer('epoch', self.epoch)


@chainer.dataset.converter()
def convert(batch, device):
    center, contexts = batch
    return device.send(center), device.send(contexts)


def text(n, seed):
    """Return words of three subjects; those of one subject stand together."""
    rng = np.random.RandomState(seed)
    return np.concatenate([5 * rng.randint(3) + rng.randint(0, 5, 8) for _ in range(n)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--device', '-d', default='-1')
    parser.add_argument('--unit', '-u', default=12, type=int)
    parser.add_argument('--window', '-w', default=2, type=int)
    parser.add_argument('--batchsize', '-b', type=int, default=100)
    parser.add_argument('--epoch', '-e', default=6, type=int)
    parser.add_argument('--negative-size', default=5, type=int)
    parser.add_argument('--out', default='result')
    args = parser.parse_args()

    device = chainer.get_device(args.device)
    train = text(500, 1)
    counts = collections.Counter(train.tolist())
    n_vocab = max(train) + 1
    for model_type, out_type in [('skipgram', 'ns'), ('cbow', 'original')]:
        np.random.seed(10)
        if out_type == 'ns':
            cs = [counts[w] for w in range(len(counts))]
            loss_func = L.NegativeSampling(args.unit, cs, args.negative_size)
            loss_func.W.array[...] = 0
        else:
            loss_func = SoftmaxCrossEntropyLoss(args.unit, int(n_vocab))
        Model = SkipGram if model_type == 'skipgram' else ContinuousBoW
        model = Model(int(n_vocab), args.unit, loss_func)
        model.to_device(device)
        optimizer = chainer.optimizers.Adam(0.01)
        optimizer.setup(model)
        train_iter = WindowIterator(train, args.window, args.batchsize)
        updater = training.updaters.StandardUpdater(
            train_iter, optimizer, converter=convert, device=device)
        trainer = training.Trainer(updater, (args.epoch, 'epoch'), out=args.out)
        trainer.extend(extensions.LogReport(trigger=(3, 'epoch')))
        trainer.extend(extensions.PrintReport(['epoch', 'main/loss']), trigger=(3, 'epoch'))
        trainer.run()

        # Words which are near to each other are those of one subject.
        w = model.embed.W.array
        w = w / np.sqrt((w ** 2).sum(axis=1, keepdims=True))
        similarity = w @ w.T - 2 * np.eye(n_vocab)
        nearest = np.argsort(-similarity, axis=1)[:, :4]
        right = (nearest // 5 == np.arange(n_vocab)[:, None] // 5).mean()
        print(model_type, out_type, 'neighbours of the same subject', right)
        assert right > 0.95, right


if __name__ == '__main__':
    main()
