"""`compile` and `fit`: say what to do, then do it."""

from by_loop import Net, weights_of
from task import BATCH, EPOCHS, RATE, Trained, data, recorded

import weft as wf


def train() -> Trained:
    """Train by fit."""
    net = Net()
    net.compile(wf.optim.SGD(net.parameters(), lr=RATE), "mse")
    net.fit(*data(), batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0)
    return Trained(weights_of(net), recorded(net._compiled.captures))
