#!/usr/bin/env python
# A recurrent language model by backpropagation through truncated time, on sentences of a grammar.
from __future__ import division

import argparse

import chainer
import chainer.functions as F
import chainer.links as L
from chainer import training
from chainer.training import extensions
import numpy as np


class RNNForLM(chainer.Chain):

    def __init__(self, n_vocab, n_units):
        super(RNNForLM, self).__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units)
            self.l1 = L.LSTM(n_units, n_units)
            self.l2 = L.Linear(n_units, n_vocab)
        for param in self.params():
            param.array[...] = np.random.uniform(-0.2, 0.2, param.shape)

    def reset_state(self):
        self.l1.reset_state()

    def forward(self, x):
        h = self.l1(F.dropout(self.embed(x), 0.1))
        return self.l2(F.dropout(h, 0.1))


class ParallelSequentialIterator(chainer.dataset.Iterator):
    """Pairs of a word and the next, at offsets that are spread over the text."""

    def __init__(self, dataset, batch_size, repeat=True):
        self.dataset = dataset
        self.batch_size = batch_size
        self.repeat = repeat
        length = len(dataset)
        self.offsets = [i * length // batch_size for i in range(batch_size)]
        self.reset()

    def reset(self):
        self.epoch = 0
        self.is_new_epoch = False
        self.iteration = 0
        self._previous_epoch_detail = -1.

    def __next__(self):
        length = len(self.dataset)
        if not self.repeat and self.iteration * self.batch_size >= length:
            raise StopIteration
        cur_words = self.get_words()
        self._previous_epoch_detail = self.epoch_detail
        self.iteration += 1
        next_words = self.get_words()
        epoch = self.iteration * self.batch_size // length
        self.is_new_epoch = self.epoch < epoch
        if self.is_new_epoch:
            self.epoch = epoch
        return list(zip(cur_words, next_words))

    @property
    def epoch_detail(self):
        return self.iteration * self.batch_size / len(self.dataset)

    @property
    def previous_epoch_detail(self):
        if self._previous_epoch_detail < 0:
            return None
        return self._previous_epoch_detail

    def get_words(self):
        return [self.dataset[(offset + self.iteration) % len(self.dataset)]
                for offset in self.offsets]

    def serialize(self, serializer):
        self.iteration = serializer('iteration', self.iteration)
        self.epoch = serializer('epoch', self.epoch)


class BPTTUpdater(training.updaters.StandardUpdater):

    def __init__(self, train_iter, optimizer, bprop_len, device):
        super(BPTTUpdater, self).__init__(train_iter, optimizer, device=device)
        self.bprop_len = bprop_len

    def update_core(self):
        loss = 0
        train_iter = self.get_iterator('main')
        optimizer = self.get_optimizer('main')
        for i in range(self.bprop_len):
            batch = train_iter.__next__()
            x, t = self.converter(batch, self.device)
            loss += optimizer.target(x, t)
        optimizer.target.cleargrads()
        loss.backward()
        loss.unchain_backward()
        optimizer.update()


def compute_perplexity(result):
    result['perplexity'] = np.exp(result['main/loss'])
    if 'validation/main/loss' in result:
        result['val_perplexity'] = np.exp(result['validation/main/loss'])


def sentences(n, seed):
    """Return a text: a subject, the verb which that subject has, an object that follows, an end."""
    rng = np.random.RandomState(seed)
    words = []
    for _ in range(n):
        subject = rng.randint(4)
        words += [subject, 4 + subject, 8 + (subject + rng.randint(2)) % 4, 12]
    return np.array(words, np.int32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--batchsize', '-b', type=int, default=20)
    parser.add_argument('--bproplen', '-l', type=int, default=10)
    parser.add_argument('--epoch', '-e', type=int, default=12)
    parser.add_argument('--device', '-d', default='-1')
    parser.add_argument('--gradclip', '-c', type=float, default=5)
    parser.add_argument('--out', '-o', default='result')
    parser.add_argument('--unit', '-u', type=int, default=24)
    args = parser.parse_args()

    np.random.seed(3)
    device = chainer.get_device(args.device)
    device.use()
    train, val = sentences(1000, 1), sentences(100, 2)
    train_iter = ParallelSequentialIterator(train, args.batchsize)
    val_iter = ParallelSequentialIterator(val, 1, repeat=False)

    rnn = RNNForLM(13, args.unit)
    model = L.Classifier(rnn)
    model.compute_accuracy = False
    optimizer = chainer.optimizers.Adam(0.01)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(args.gradclip))

    updater = BPTTUpdater(train_iter, optimizer, args.bproplen, device)
    trainer = training.Trainer(updater, (args.epoch, 'epoch'), out=args.out)
    eval_model = model.copy()
    eval_rnn = eval_model.predictor
    trainer.extend(extensions.Evaluator(
        val_iter, eval_model, device=device, eval_hook=lambda _: eval_rnn.reset_state()),
        trigger=(args.epoch, 'epoch'))
    interval = 100
    trainer.extend(extensions.LogReport(postprocess=compute_perplexity,
                                        trigger=(interval, 'iteration')))
    trainer.extend(extensions.PrintReport(
        ['epoch', 'iteration', 'perplexity', 'val_perplexity']), trigger=(interval, 'iteration'))
    trainer.run()

    print('test')
    eval_rnn.reset_state()
    evaluator = extensions.Evaluator(val_iter, eval_model, device=device)
    result = evaluator()
    perplexity = np.exp(float(result['main/loss']))
    print('test perplexity: {}'.format(perplexity))
    # four subjects, one verb, two objects, one end: 8 ** (1 / 4) is the best there is
    assert perplexity < 1.80, perplexity


if __name__ == '__main__':
    main()
