"""Losses and metrics of networks with several outputs, for any module."""

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.core.errors import WeftError

X = np.random.default_rng(0).normal(size=(12, 3)).astype("f")
Y = {"a": X[:, :1] * 2, "b": X[:, 1:] + 1}


class Heads(nn.Module):
    """Two outputs, in a dictionary or a tuple."""

    def __init__(self, named):
        super().__init__()
        self.a, self.b, self.named = nn.Linear(3, 1), nn.Linear(3, 2), named

    def forward(self, x):
        """Return both."""
        made = {"a": self.a(x), "b": self.b(x)}
        return made if self.named else tuple(made.values())


def test_outputs_by_name():
    model = Heads(named=True)
    model.compile(
        lambda p: wf.optim.SGD(p, lr=0.1),
        {"a": "mse", "b": "mae"},
        loss_weights={"b": 3.0},
        metrics={"b": "mse"},
        compile=True,
    )
    history = model.fit(X, Y, epochs=3, batch_size=5, verbose=0).history
    np.testing.assert_allclose(
        history["loss"], np.array(history["a_loss"]) + 3 * np.array(history["b_loss"]), rtol=1e-5
    )
    found = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert list(found) == ["loss", "a_loss", "b_loss", "b_mse"]
    made = model.predict(X)
    assert found["b_mse"] == pytest.approx(((made["b"] - Y["b"]) ** 2).mean(), rel=1e-5)


def test_outputs_by_position():
    model = Heads(named=False)
    model.compile("sgd", ["mse", None], metrics=[["mae"], []], compile=True)
    model.fit(X, [Y["a"], Y["b"]], epochs=1, verbose=0)
    found = model.evaluate(X, [Y["a"], Y["b"]], verbose=0, return_dict=True)
    assert list(found) == ["loss", "output_0_loss", "output_0_mae"]
    assert found["loss"] == found["output_0_loss"]


def test_values_of_an_epoch_are_means_over_its_samples():
    model = Heads(named=True)
    model.compile(lambda p: wf.optim.SGD(p, lr=0.0), {"a": "mse", "b": "mse"})
    history = model.fit(X, Y, batch_size=5, verbose=0).history
    found = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert history["a_loss"][0] == pytest.approx(found["a_loss"], rel=1e-5)


def test_weights_of_samples_by_output():
    model = Heads(named=True)
    model.compile(lambda p: wf.optim.SGD(p, lr=0.0), {"a": "mse", "b": "mse"}, compile=True)
    weights = np.linspace(0, 1, 12)
    history = model.fit(X, Y, sample_weight={"a": weights}, batch_size=12, verbose=0).history
    made = model.predict(X)
    squares = ((made["a"] - Y["a"]) ** 2)[:, 0]
    assert history["a_loss"][0] == pytest.approx((squares * weights).mean(), rel=1e-5)
    assert history["b_loss"][0] == pytest.approx(((made["b"] - Y["b"]) ** 2).mean(), rel=1e-5)
    with pytest.raises(WeftError, match="models with one output"):
        model.fit(X, Y, class_weight={0: 1.0}, verbose=0)
    single = nn.Linear(3, 1)
    single.compile("sgd", "mse", compile=False)
    with pytest.raises(WeftError, match="a loss for each output"):
        single.fit(X, Y["a"], sample_weight={"a": weights}, verbose=0)


def test_bad_input():
    model = Heads(named=True)
    with pytest.raises(WeftError, match="loss_weights go with"):
        model.compile("sgd", "mse", loss_weights=[1.0])
    with pytest.raises(WeftError, match="has a loss"):
        model.compile("sgd", {"a": None})
    model.compile("sgd", {"a": "mse", "c": "mse"}, compile=False)
    with pytest.raises(WeftError, match="no output 'c'; there are: a, b"):
        model.fit(X, {"a": Y["a"], "c": Y["a"]}, verbose=0)
    with pytest.raises(WeftError, match="has 2 outputs"):
        model.fit(X, [Y["a"]], verbose=0)
