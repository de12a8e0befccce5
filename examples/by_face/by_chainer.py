"""Chainer: links, an optimizer that is set up with a model, `update` with a loss function."""

from task import HIDDEN, INPUTS, OUTPUTS, RATE, Trained, batches, recorded, start

import weft.chainer.functions as F
import weft.chainer.links as L
from weft import chainer


class Net(chainer.Chain):
    """Two layers with ReLU between them."""

    def __init__(self) -> None:
        super().__init__()
        w1, b1, w2, b2 = start()
        with self.init_scope():
            self.l1 = L.Linear(INPUTS, HIDDEN, initialW=w1, initial_bias=b1)
            self.l2 = L.Linear(HIDDEN, OUTPUTS, initialW=w2, initial_bias=b2)

    def forward(self, x):
        """Return the outputs."""
        return self.l2(F.relu(self.l1(x)))


def train() -> Trained:
    """Train by an optimizer's update."""
    model = Net()
    optimizer = chainer.optimizers.SGD(lr=RATE)
    optimizer.setup(model)

    def loss(x, y):
        return F.mean_squared_error(model(x), y)

    for x, y in batches():
        optimizer.update(loss, x, y)
    weights = [p.array for p in (model.l1.W, model.l1.b, model.l2.W, model.l2.b)]
    return Trained(weights, recorded(optimizer._captures))
