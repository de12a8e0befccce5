#!/usr/bin/env python
# A small DCGAN: an updater with two optimizers, transposed convolutions and batch normalisation.
import argparse
import os

import chainer
import chainer.functions as F
import chainer.links as L
from chainer import Variable
from chainer import training
from chainer.training import extensions
import numpy as np

from digits import get_digits


def add_noise(h, sigma=0.1):
    if chainer.config.train:
        return F.gaussian(h, np.full(h.shape, 2 * np.log(sigma), np.float32))
    return h


class Generator(chainer.Chain):

    def __init__(self, n_hidden, bottom_width=2, ch=32, wscale=0.02):
        super(Generator, self).__init__()
        self.n_hidden = n_hidden
        self.ch = ch
        self.bottom_width = bottom_width
        with self.init_scope():
            w = chainer.initializers.Normal(wscale)
            self.l0 = L.Linear(n_hidden, bottom_width * bottom_width * ch, initialW=w)
            self.dc1 = L.Deconvolution2D(ch, ch // 2, 4, 2, 1, initialW=w)
            self.dc2 = L.Deconvolution2D(ch // 2, 1, 4, 2, 1, initialW=w)
            self.bn0 = L.BatchNormalization(bottom_width * bottom_width * ch)
            self.bn1 = L.BatchNormalization(ch // 2)

    def make_hidden(self, batchsize):
        return np.random.uniform(-1, 1, (batchsize, self.n_hidden, 1, 1)).astype(np.float32)

    def forward(self, z):
        h = F.reshape(F.relu(self.bn0(self.l0(z))),
                      (len(z), self.ch, self.bottom_width, self.bottom_width))
        h = F.relu(self.bn1(self.dc1(h)))
        return F.sigmoid(self.dc2(h))


class Discriminator(chainer.Chain):

    def __init__(self, ch=32, wscale=0.02):
        super(Discriminator, self).__init__()
        w = chainer.initializers.Normal(wscale)
        with self.init_scope():
            self.c0 = L.Convolution2D(1, ch // 2, 4, 2, 1, initialW=w)
            self.c1 = L.Convolution2D(ch // 2, ch, 4, 2, 1, initialW=w)
            self.l2 = L.Linear(2 * 2 * ch, 1, initialW=w)
            self.bn1 = L.BatchNormalization(ch, use_gamma=False)

    def forward(self, x):
        h = add_noise(x)
        h = F.leaky_relu(add_noise(self.c0(h)))
        h = F.leaky_relu(add_noise(self.bn1(self.c1(h))))
        return self.l2(h)


class DCGANUpdater(training.updaters.StandardUpdater):

    def __init__(self, *args, **kwargs):
        self.gen, self.dis = kwargs.pop('models')
        super(DCGANUpdater, self).__init__(*args, **kwargs)

    def loss_dis(self, dis, y_fake, y_real):
        batchsize = len(y_fake)
        loss = F.sum(F.softplus(-y_real)) / batchsize + F.sum(F.softplus(y_fake)) / batchsize
        chainer.report({'loss': loss}, dis)
        return loss

    def loss_gen(self, gen, y_fake):
        loss = F.sum(F.softplus(-y_fake)) / len(y_fake)
        chainer.report({'loss': loss}, gen)
        return loss

    def update_core(self):
        gen_optimizer = self.get_optimizer('gen')
        dis_optimizer = self.get_optimizer('dis')
        batch = self.get_iterator('main').next()
        x_real = Variable(self.converter(batch, self.device))
        gen, dis = self.gen, self.dis
        y_real = dis(x_real)
        z = Variable(gen.make_hidden(len(batch)))
        x_fake = gen(z)
        y_fake = dis(x_fake)
        dis_optimizer.update(self.loss_dis, dis, y_fake, y_real)
        gen_optimizer.update(self.loss_gen, gen, y_fake)


def out_generated_image(gen, rows, cols, seed, dst):
    @chainer.training.make_extension()
    def make_image(trainer):
        np.random.seed(seed)
        z = Variable(gen.make_hidden(rows * cols))
        with chainer.using_config('train', False):
            x = gen(z)
        np.random.seed()
        x = np.asarray(np.clip(x.array * 255, 0.0, 255.0), dtype=np.uint8)
        x = x.reshape((rows, cols, 8, 8)).transpose(0, 2, 1, 3).reshape((rows * 8, cols * 8))
        if not os.path.exists(dst):
            os.makedirs(dst)
        np.save(os.path.join(dst, 'image{:0>8}.npy'.format(trainer.updater.iteration)), x)
    return make_image


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--batchsize', '-b', type=int, default=50)
    parser.add_argument('--epoch', '-e', type=int, default=10)
    parser.add_argument('--out', '-o', default='result')
    parser.add_argument('--n_hidden', '-n', type=int, default=16)
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()

    np.random.seed(5)
    gen, dis = Generator(args.n_hidden), Discriminator()

    def make_optimizer(model, alpha=0.002, beta1=0.5):
        optimizer = chainer.optimizers.Adam(alpha=alpha, beta1=beta1)
        optimizer.setup(model)
        optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(0.0001), 'hook_dec')
        return optimizer

    opt_gen, opt_dis = make_optimizer(gen), make_optimizer(dis)
    train, _ = get_digits(withlabel=False, ndim=3)
    train_iter = chainer.iterators.SerialIterator(train, args.batchsize)
    updater = DCGANUpdater(models=(gen, dis), iterator=train_iter,
                           optimizer={'gen': opt_gen, 'dis': opt_dis})
    trainer = training.Trainer(updater, (args.epoch, 'epoch'), out=args.out)
    trainer.extend(extensions.LogReport(trigger=(60, 'iteration')))
    trainer.extend(extensions.PrintReport(['epoch', 'iteration', 'gen/loss', 'dis/loss']),
                   trigger=(60, 'iteration'))
    trainer.extend(out_generated_image(gen, 5, 5, args.seed, args.out), trigger=(5, 'epoch'))
    trainer.run()

    # Images that are made shall be near to digits, and of several kinds.
    with chainer.using_config('train', False), chainer.no_backprop_mode():
        made = gen(gen.make_hidden(200)).array.reshape(200, 64)
    real = train.reshape(-1, 64)
    nearest = ((made[:, None] - real[None]) ** 2).mean(axis=2).min(axis=1).mean()
    spread = made.std(axis=0).mean()
    noise = ((np.random.rand(50, 1, 64) - real[None]) ** 2).mean(axis=2).min(axis=1).mean()
    print('distance to the nearest digit', nearest, 'of noise', noise, 'spread', spread)
    assert nearest < 0.4 * noise, nearest
    assert spread > 0.5 * real.std(axis=0).mean(), spread


if __name__ == '__main__':
    main()
