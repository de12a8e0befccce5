"""Batched functions inside of training: batches of structures, Updater and fit."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.dynamic.trees import TreeNet, random_trees

pytestmark = pytest.mark.filterwarnings("ignore:jit. take_step runs eagerly")


class TreeModel(wf.nn.Module):
    """A number for each of some trees."""

    def __init__(self):
        super().__init__()
        net = TreeNet(4, dtype="float32")
        self.table, self.weight, self.bias = map(wf.nn.Parameter, net.parameters)
        net.table, net.weight, net.bias = self.table, self.weight, self.bias
        self.run = wf.batched(net.loss, reduce="stack")

    def forward(self, trees):
        return self.run(trees)


def test_an_updater_takes_batches_of_trees():
    model, trees = TreeModel(), random_trees(24, 2, 6)
    loader = wf.data.DataLoader(
        trees, batch_size=8, shuffle=True, collate_fn=lambda ts: (ts,), seed=0
    )
    optimizer = wf.optim.Adam(model.parameters(), lr=0.01)
    updater = wf.train.Updater(model, optimizer, lambda y: (y**2).mean(), loader, target=None)
    losses = [updater.update()["train/loss"] for _ in range(12)]
    assert np.mean(losses[-3:]) < np.mean(losses[:3])
    assert model.run.plan().stats()["planned"] == 8  # of epochs before


def test_fit_takes_a_dataset_of_trees():
    model, trees = TreeModel(), random_trees(16, 2, 6)
    pairs = [(tree, float(i % 2)) for i, tree in enumerate(trees)]
    loader = wf.data.DataLoader(
        pairs,
        batch_size=8,
        collate_fn=lambda ps: (([t for t, _ in ps],), wf.tensor([y for _, y in ps])),
    )
    model.compile(optimizer="adam", loss="mse")
    history = model.fit(loader, epochs=3, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
