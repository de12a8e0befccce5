#!/usr/bin/env python
# Translation by an encoder and a decoder of NStepLSTM: numbers are read, and said backwards.
import argparse

import chainer
import chainer.functions as F
import chainer.links as L
from chainer import training
from chainer.training import extensions
import numpy as np

EOS = 0


def sequence_embed(embed, xs):
    x_len = [len(x) for x in xs]
    x_section = np.cumsum(x_len[:-1])
    ex = embed(F.concat(xs, axis=0))
    return F.split_axis(ex, x_section, 0)


class Seq2seq(chainer.Chain):

    def __init__(self, n_layers, n_source_vocab, n_target_vocab, n_units):
        super(Seq2seq, self).__init__()
        with self.init_scope():
            self.embed_x = L.EmbedID(n_source_vocab, n_units)
            self.embed_y = L.EmbedID(n_target_vocab, n_units)
            self.encoder = L.NStepLSTM(n_layers, n_units, n_units, 0.0)
            self.decoder = L.NStepLSTM(n_layers, n_units, n_units, 0.0)
            self.W = L.Linear(n_units, n_target_vocab)
        self.n_layers = n_layers
        self.n_units = n_units

    def forward(self, xs, ys):
        eos = self.xp.array([EOS], np.int32)
        ys_in = [F.concat([eos, y], axis=0) for y in ys]
        ys_out = [F.concat([y, eos], axis=0) for y in ys]

        exs = sequence_embed(self.embed_x, xs)
        eys = sequence_embed(self.embed_y, ys_in)
        batch = len(xs)
        hx, cx, _ = self.encoder(None, None, exs)
        _, _, os = self.decoder(hx, cx, eys)

        concat_os = F.concat(os, axis=0)
        concat_ys_out = F.concat(ys_out, axis=0)
        loss = F.sum(F.softmax_cross_entropy(
            self.W(concat_os), concat_ys_out, reduce='no')) / batch
        chainer.report({'loss': loss}, self)
        n_words = concat_ys_out.shape[0]
        perp = F.exp(loss * batch / n_words)
        chainer.report({'perp': perp}, self)
        return loss

    def translate(self, xs, max_length=10):
        batch = len(xs)
        with chainer.no_backprop_mode(), chainer.using_config('train', False):
            xs = [x for x in xs]
            exs = sequence_embed(self.embed_x, xs)
            h, c, _ = self.encoder(None, None, exs)
            ys = self.xp.full(batch, EOS, np.int32)
            result = []
            for i in range(max_length):
                eys = self.embed_y(ys)
                eys = F.split_axis(eys, batch, 0)
                h, c, ys = self.decoder(h, c, eys)
                cys = F.concat(ys, axis=0)
                wy = self.W(cys)
                ys = self.xp.argmax(wy.array, axis=1).astype(np.int32)
                result.append(ys)
        result = np.array(result).T
        outs = []
        for y in result:
            inds = np.argwhere(y == EOS)
            if len(inds) > 0:
                y = y[:inds[0, 0]]
            outs.append(y)
        return outs


def convert(batch, device):
    def to_device_batch(batch):
        return [chainer.dataset.to_device(device, x) for x in batch]
    return {'xs': to_device_batch([x for x, _ in batch]),
            'ys': to_device_batch([y for _, y in batch])}


def pairs(n, rng):
    found = []
    for _ in range(n):
        x = rng.randint(1, 6, 4).astype(np.int32)
        found.append((x, x[::-1].copy()))
    return found


def main():
    parser = argparse.ArgumentParser(description='Sequences by encoder and decoder')
    parser.add_argument('--batchsize', '-b', type=int, default=32)
    parser.add_argument('--epoch', '-e', type=int, default=16)
    parser.add_argument('--unit', '-u', type=int, default=32)
    parser.add_argument('--layer', '-l', type=int, default=1)
    parser.add_argument('--out', '-o', default='result')
    args = parser.parse_args()

    np.random.seed(9)
    rng = np.random.RandomState(9)
    train_data, test_data = pairs(640, rng), pairs(50, rng)
    model = Seq2seq(args.layer, 6, 6, args.unit)
    optimizer = chainer.optimizers.Adam(0.01)
    optimizer.setup(model)
    train_iter = chainer.iterators.SerialIterator(train_data, args.batchsize)
    updater = training.updaters.StandardUpdater(train_iter, optimizer, converter=convert)
    trainer = training.Trainer(updater, (args.epoch, 'epoch'), out=args.out)
    trainer.extend(extensions.LogReport(trigger=(4, 'epoch')))
    trainer.extend(extensions.PrintReport(
        ['epoch', 'iteration', 'main/loss', 'main/perp', 'elapsed_time']), trigger=(4, 'epoch'))

    @chainer.training.make_extension()
    def translate(trainer):
        source, target = test_data[np.random.choice(len(test_data))]
        result = model.translate([source])[0]
        print('#  source : {}  result : {}  expect : {}'.format(source, result, target))

    trainer.extend(translate, trigger=(8, 'epoch'))
    trainer.run()

    said = model.translate([x for x, _ in test_data])
    right = np.mean([list(a) == list(y) for a, (_, y) in zip(said, test_data)])
    print('sequences that are right', right)
    assert right > 0.9, right


if __name__ == '__main__':
    main()
