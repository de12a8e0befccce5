#!/usr/bin/env python
# A small WaveNet: dilated causal convolutions over quantised sounds of sines.
import argparse

import chainer
import chainer.functions as F
import chainer.links as L
from chainer import training
from chainer.training import extensions
import numpy as np


class MuLaw(object):

    def __init__(self, mu=32):
        self.mu = mu

    def transform(self, x):
        y = np.sign(x) * np.log(1 + self.mu * np.abs(x)) / np.log(1 + self.mu)
        return np.clip(np.floor((y + 1) / 2 * self.mu), 0, self.mu - 1).astype(np.int32)


class Preprocess(object):

    def __init__(self, length, quantize):
        self.length = length
        self.quantize = quantize

    def __call__(self, seed):
        rng = np.random.RandomState(seed)
        time = np.arange(self.length + 1) + rng.randint(64)
        period = (8, 16)[seed % 2]
        raw = 0.8 * np.sin(2 * np.pi * time / period)
        quantized = MuLaw(self.quantize).transform(raw)
        one_hot = np.identity(self.quantize, dtype=np.float32)[quantized]
        one_hot = np.expand_dims(one_hot.T, 2)
        condition = np.zeros((2, self.length, 1), np.float32)
        condition[seed % 2] = 1
        return one_hot[:, :-1], condition, np.expand_dims(quantized[1:], 1)


class ResidualBlock(chainer.Chain):

    def __init__(self, filter_size, dilation, residual_channels, dilated_channels, skip_channels,
                 condition_dim):
        super(ResidualBlock, self).__init__()
        self.filter_size = filter_size
        self.dilation = dilation
        with self.init_scope():
            self.conv = L.Convolution2D(
                residual_channels, dilated_channels, ksize=(filter_size, 1),
                pad=(dilation * (filter_size - 1), 0), dilate=(dilation, 1))
            self.proj = L.Convolution2D(condition_dim, dilated_channels, ksize=1)
            self.res = L.Convolution2D(dilated_channels // 2, residual_channels, ksize=1)
            self.skip = L.Convolution2D(dilated_channels // 2, skip_channels, ksize=1)

    def forward(self, x, condition):
        length = x.shape[2]
        h = self.conv(x)[:, :, :length]  # nothing is seen of what comes later
        h += self.proj(condition)
        tanh_z, sig_z = F.split_axis(h, 2, axis=1)
        z = F.tanh(tanh_z) * F.sigmoid(sig_z)
        if x.shape[2] == z.shape[2]:
            residual = self.res(z) + x
        else:
            residual = self.res(z) + x[:, :, -1:]
        return residual, self.skip(z)


class ResidualNet(chainer.ChainList):

    def __init__(self, n_loop, n_layer, *args):
        super(ResidualNet, self).__init__()
        for dilation in [2 ** i for i in range(n_layer)] * n_loop:
            self.add_link(ResidualBlock(2, dilation, *args))

    def forward(self, x, condition):
        skip_connections = 0
        for block in self.children():
            x, skip = block(x, condition)
            skip_connections += skip
        return skip_connections


class WaveNet(chainer.Chain):

    def __init__(self, n_loop, n_layer, a_channels, r_channels, s_channels, condition_dim):
        super(WaveNet, self).__init__()
        with self.init_scope():
            self.embed = L.Convolution2D(a_channels, r_channels, (2, 1), pad=(1, 0), nobias=True)
            self.resnet = ResidualNet(n_loop, n_layer, r_channels, 2 * r_channels, s_channels,
                                      condition_dim)
            self.proj1 = L.Convolution2D(s_channels, s_channels, 1, nobias=True)
            self.proj2 = L.Convolution2D(s_channels, a_channels, 1, nobias=True)

    def forward(self, x, condition):
        length = x.shape[2]
        x = self.embed(x)[:, :, :length, :]
        z = F.relu(self.resnet(x, condition))
        z = F.relu(self.proj1(z))
        return self.proj2(z)


class EncoderDecoderModel(chainer.Chain):

    def __init__(self, decoder):
        super(EncoderDecoderModel, self).__init__()
        with self.init_scope():
            self.decoder = decoder

    def forward(self, x, condition, t):
        y = self.decoder(x, condition)
        # the first samples are not told by what came before
        loss = F.softmax_cross_entropy(y[:, :, 16:], t[:, 16:])
        accuracy = F.accuracy(y[:, :, 16:], t[:, 16:])
        chainer.report({'loss': loss, 'accuracy': accuracy}, self)
        return loss


def main():
    parser = argparse.ArgumentParser(description='WaveNet of sines')
    parser.add_argument('--batchsize', '-b', type=int, default=8)
    parser.add_argument('--length', '-l', type=int, default=64)
    parser.add_argument('--epoch', '-e', type=int, default=15)
    parser.add_argument('--a_channels', type=int, default=32)
    parser.add_argument('--out', '-o', default='result')
    args = parser.parse_args()

    np.random.seed(6)
    preprocess = Preprocess(args.length, args.a_channels)
    dataset = chainer.datasets.TransformDataset(list(range(80)), preprocess)
    train, valid = chainer.datasets.split_dataset(dataset, 64)
    model = EncoderDecoderModel(WaveNet(2, 3, args.a_channels, 16, 32, 2))
    optimizer = chainer.optimizers.Adam(0.005)
    optimizer.setup(model)

    train_iter = chainer.iterators.SerialIterator(train, args.batchsize)
    valid_iter = chainer.iterators.SerialIterator(valid, args.batchsize, repeat=False,
                                                  shuffle=False)
    updater = training.updaters.StandardUpdater(train_iter, optimizer)
    trainer = training.Trainer(updater, (args.epoch, 'epoch'), out=args.out)
    trainer.extend(extensions.Evaluator(valid_iter, model), trigger=(5, 'epoch'))
    trainer.extend(extensions.LogReport(trigger=(5, 'epoch')))
    trainer.extend(extensions.PrintReport(
        ['epoch', 'iteration', 'main/loss', 'main/accuracy',
         'validation/main/loss', 'validation/main/accuracy']), trigger=(5, 'epoch'))
    trainer.run()

    accuracy = trainer.observation['validation/main/accuracy']
    print('accuracy of the next sample', accuracy)
    assert accuracy > 0.95, accuracy

    # What comes later changes nothing before it.
    x, condition, _ = chainer.dataset.concat_examples(valid[:1])
    changed = x.copy()
    changed[:, :, 40:] = 0
    with chainer.using_config('train', False), chainer.no_backprop_mode():
        y, z = model.decoder(x, condition).array, model.decoder(changed, condition).array
    assert np.abs(y[:, :, :40] - z[:, :, :40]).max() < 1e-5
    assert np.abs(y[:, :, 40:] - z[:, :, 40:]).max() > 1e-2


if __name__ == '__main__':
    main()
