"""Updater and Trainer, to which logs, evaluation and checkpoints can be added."""

from by_loop import Net, weights_of
from task import BATCH, RATE, STEPS, Trained, data, recorded

import weft as wf
import weft.nn.functional as F
from weft.data import DataLoader, TensorDataset
from weft.train import Trainer, Updater


def train() -> Trained:
    """Train by a Trainer."""
    net = Net()
    optimizer = wf.optim.SGD(net.parameters(), lr=RATE)
    loader = DataLoader(TensorDataset(*data()), batch_size=BATCH)
    updater = Updater(net, optimizer, F.mse_loss, loader)
    Trainer(updater, stop=(STEPS, "iteration"), out=None).run()
    return Trained(weights_of(net), recorded(updater._captures))
