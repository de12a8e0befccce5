"""Small models and data that the tests of training share."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft as wf
from weft.nn import Module, Parameter
from weft.optim import SGD
from weft.train import Trainer, Updater


class Affine(Module):
    """y = x @ weight + bias, with weights that are the same in every test."""

    def __init__(self, inputs: int = 3, outputs: int = 2) -> None:
        super().__init__()
        values = np.random.default_rng(0).normal(size=(inputs, outputs)).astype("float32")
        self.weight = Parameter(wf.tensor(values))
        self.bias = Parameter(wf.zeros(outputs))

    def forward(self, x: Any) -> Any:
        return x @ self.weight + self.bias


def squared_error(output: Any, target: Any) -> Any:
    return ((output - target) ** 2).mean()


def batches(count: int = 5, size: int = 4) -> list[tuple[Any, Any]]:
    """Return batches of a linear problem."""
    rng = np.random.default_rng(1)
    xs = rng.normal(size=(count, size, 3)).astype("float32")
    ys = xs @ np.array([[1, 2], [0, -1], [3, 1]], "float32")
    return [(wf.tensor(x), wf.tensor(y)) for x, y in zip(xs, ys, strict=True)]


def make_updater(loader: Any = None, **options: Any) -> Updater:
    model = Affine()
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    return Updater(
        model, optimizer, squared_error, batches() if loader is None else loader, **options
    )


def make_trainer(out: Any = None, stop: Any = (2, "epoch"), **options: Any) -> Trainer:
    return Trainer(make_updater(**options), stop=stop, out=out)


def weights(trainer: Trainer) -> dict[str, Any]:
    return {name: np.array(value) for name, value in trainer.model.state_dict().items()}


def assert_same_weights(a: Trainer, b: Trainer) -> None:
    for name, value in weights(a).items():
        np.testing.assert_array_equal(value, weights(b)[name])
