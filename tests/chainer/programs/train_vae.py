#!/usr/bin/env python
# A variational autoencoder: Gaussian codes by reparameterisation, pixels by Bernoulli distributions.
import argparse

import chainer
import chainer.distributions as D
import chainer.functions as F
import chainer.links as L
from chainer import reporter
from chainer import training
from chainer.training import extensions
import numpy as np

from digits import get_digits


class AvgELBOLoss(chainer.Chain):
    """The negative lower bound of the evidence, averaged over samples of the code."""

    def __init__(self, encoder, decoder, prior, beta=1.0, k=1):
        super(AvgELBOLoss, self).__init__()
        self.beta = beta
        self.k = k
        with self.init_scope():
            self.encoder = encoder
            self.decoder = decoder
            self.prior = prior

    def forward(self, x):
        q_z = self.encoder(x)
        z = q_z.sample(self.k)
        p_x = self.decoder(z)
        p_z = self.prior()
        reconstr = F.mean(p_x.log_prob(F.broadcast_to(x[None, :], (self.k,) + x.shape)))
        kl_penalty = F.mean(chainer.kl_divergence(q_z, p_z))
        loss = -(reconstr - self.beta * kl_penalty)
        reporter.report({'loss': loss}, self)
        reporter.report({'reconstr': reconstr}, self)
        reporter.report({'kl_penalty': kl_penalty}, self)
        return loss


class Encoder(chainer.Chain):

    def __init__(self, n_in, n_latent, n_h):
        super(Encoder, self).__init__()
        with self.init_scope():
            self.linear = L.Linear(n_in, n_h)
            self.mu = L.Linear(n_h, n_latent)
            self.ln_sigma = L.Linear(n_h, n_latent)

    def forward(self, x):
        h = F.tanh(self.linear(x))
        loc = self.mu(h)
        ln_sigma = self.ln_sigma(h)
        return D.Independent(D.Normal(loc=loc, log_scale=ln_sigma))


class Decoder(chainer.Chain):

    def __init__(self, n_in, n_latent, n_h):
        super(Decoder, self).__init__()
        with self.init_scope():
            self.linear = L.Linear(n_latent, n_h)
            self.output = L.Linear(n_h, n_in)

    def forward(self, z, inference=False):
        n_batch_axes = 1 if inference else 2
        h = F.tanh(self.linear(z, n_batch_axes=n_batch_axes))
        h = self.output(h, n_batch_axes=n_batch_axes)
        return D.Independent(D.Bernoulli(logit=h), reinterpreted_batch_ndims=1)


class Prior(chainer.Link):

    def __init__(self, n_latent):
        super(Prior, self).__init__()
        self.loc = np.zeros(n_latent, np.float32)
        self.scale = np.ones(n_latent, np.float32)
        self.register_persistent('loc')
        self.register_persistent('scale')

    def forward(self):
        return D.Independent(D.Normal(self.loc, scale=self.scale), reinterpreted_batch_ndims=1)


def main():
    parser = argparse.ArgumentParser(description='VAE of digits')
    parser.add_argument('--out', '-o', default='results')
    parser.add_argument('--epoch', '-e', default=30, type=int)
    parser.add_argument('--dim-z', '-z', default=8, type=int)
    parser.add_argument('--dim-h', default=64, type=int)
    parser.add_argument('--beta', default=1.0, type=float)
    parser.add_argument('--k', '-k', default=2, type=int)
    parser.add_argument('--batch-size', '-b', type=int, default=50)
    args = parser.parse_args()

    np.random.seed(4)
    encoder = Encoder(64, args.dim_z, args.dim_h)
    decoder = Decoder(64, args.dim_z, args.dim_h)
    model = AvgELBOLoss(encoder, decoder, Prior(args.dim_z), beta=args.beta, k=args.k)
    optimizer = chainer.optimizers.Adam(0.003)
    optimizer.setup(model)

    train, test = get_digits(withlabel=False)
    train_iter = chainer.iterators.SerialIterator(train, args.batch_size)
    test_iter = chainer.iterators.SerialIterator(test, 99, repeat=False, shuffle=False)
    updater = training.updaters.StandardUpdater(train_iter, optimizer, loss_func=model)
    trainer = training.Trainer(updater, (args.epoch, 'epoch'), out=args.out)
    trainer.extend(extensions.Evaluator(test_iter, model), trigger=(10, 'epoch'))
    trainer.extend(extensions.snapshot_object(
        model, filename='snapshot_epoch_{.updater.epoch}'), trigger=(30, 'epoch'))
    trainer.extend(extensions.LogReport(trigger=(10, 'epoch')))
    trainer.extend(extensions.PrintReport(
        ['epoch', 'main/loss', 'validation/main/loss', 'main/reconstr', 'main/kl_penalty']))
    trainer.run()

    bound = trainer.observation['validation/main/loss']
    print('bound', bound)
    assert bound < 27.0, bound  # without a code it is 31.9

    with chainer.using_config('train', False), chainer.no_backprop_mode():
        q_z = model.encoder(test[:9])
        mean = model.decoder(q_z.mean, inference=True).mean
        image = model.decoder(model.prior().sample(9), inference=True).mean.array
    error = float(F.mean_squared_error(mean, test[:9]).array)
    print('reconstruction error', error)
    assert error < 0.06, error
    assert image.shape == (9, 64) and 0 <= image.min() and image.max() <= 1


if __name__ == '__main__':
    main()
