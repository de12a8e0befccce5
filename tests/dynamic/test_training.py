"""Batched functions inside of training: batches of structures, Updater and fit."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.dynamic.trees import TreeNet, random_trees

pytestmark = pytest.mark.filterwarnings("error")


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


def with_targets(trees):
    """Return a loader of batches of trees with a number for each."""
    return wf.data.DataLoader(
        [(tree, float(i % 2)) for i, tree in enumerate(trees)],
        batch_size=8,
        collate_fn=lambda ps: (([t for t, _ in ps],), wf.tensor([y for _, y in ps])),
    )


def test_fit_takes_a_dataset_of_trees():
    model, loader = TreeModel(), with_targets(random_trees(16, 2, 6))
    model.compile(optimizer="adam", loss="mse")
    history = model.fit(loader, epochs=3, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]


def trained(make, wrap, steps=5):
    """Return losses and parameters after steps with clipping, by a function that is wrapped."""
    model, trees = TreeModel(), random_trees(12, 2, 6)
    optimizer = make(model.parameters())

    def step(given):
        optimizer.zero_grad()
        loss = (model(given) ** 2).mean()
        loss.backward()
        wf.optim.clip_grad_norm_(list(model.parameters()), 0.5)
        optimizer.step()
        return loss

    step = wrap(step)
    losses = [float(step(trees[i : i + 6])) for i in range(steps)]
    return losses, [p.numpy() for p in model.parameters()], step


@pytest.mark.parametrize(
    "make",
    [
        lambda ps: wf.optim.Adam(ps, lr=0.05),
        lambda ps: wf.optim.SGD(ps, lr=0.1, momentum=0.9),
    ],
)
def test_a_jitted_step_around_a_batched_call_runs_in_parts(make):
    losses, parameters, _ = trained(make, lambda step: step)
    found, others, step = trained(make, wf.jit)
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    for a, b in zip(others, parameters, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    (update,) = step.stats()["parts"]
    assert update["compiled_calls"] == 5
    assert update["eager_calls"] == 0
    assert "wf.batched" in step.explain()
