"""Compiled training: every face gives the weights of a loop under `wf.jit`, also when resumed."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft import nn
from weft.core.errors import GraphError
from weft.data import DataLoader, TensorDataset
from weft.optim import LBFGS, SGD, Adam, AdamW
from weft.train import Average, Evaluator, Objective, Outcome, Trainer, Updater, evaluate, get_loss
from weft.train.captured import Captures, as_compiled, checked_compile
from weft.train.keras import CompileSettings

SEED = 3
X = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)


def network() -> nn.Module:
    wf.manual_seed(SEED)
    return nn.Sequential(
        nn.Linear(6, 12, bias=False),  # its gradient would be nothing but rounding errors
        nn.BatchNorm1d(12),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.Linear(12, 2),
    )


def loader(batch_size: int = 8) -> DataLoader:
    return DataLoader(TensorDataset(X, Y), batch_size=batch_size, shuffle=True, seed=SEED)


def weights(model: Any) -> dict[str, bytes]:
    return {name: x.numpy().tobytes() for name, x in model.state_dict().items()}


def by_loop(epochs: int, *, jit: bool) -> dict[str, bytes]:
    net, batches = network(), loader()
    optimizer = Adam(net.parameters(), lr=0.01)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = wf.jit(step) if jit else step
    for _ in range(epochs):
        for x, y in batches:
            run(x, y)
    return weights(net)


def by_trainer(epochs: int, compile: Any) -> dict[str, bytes]:
    net = network()
    updater = Updater(net, Adam(net.parameters(), lr=0.01), F.cross_entropy, loader())
    Trainer(updater, stop=(epochs, "epoch"), out=None, compile=compile).run()
    return weights(net)


def by_fit(epochs: int, compile: Any) -> dict[str, bytes]:
    net = network()
    net.compile(Adam(net.parameters(), lr=0.01), "cross_entropy", compile=compile)
    for epoch in range(epochs):  # the loader goes on where it was
        net.fit(SHARED if epoch else fresh(), epochs=1, verbose=0)
    return weights(net)


SHARED = loader()


def fresh() -> DataLoader:
    SHARED.set_epoch(0)
    return SHARED


def by_estimator(epochs: int, compile: Any) -> dict[str, bytes]:
    pytest.importorskip("sklearn")
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    model = wf.train.WeftClassifier(
        lambda inputs, outputs: network(),
        lr=0.01,
        epochs=epochs,
        batch_size=8,
        dtype="float32",
        random_state=0,
        compile=compile,
    ).fit(X, Y)
    batches = DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True, seed=int(seed))
    net = network()
    updater = Updater(
        net, Adam(net.parameters(), lr=0.01), F.cross_entropy, batches, compile=compile
    )
    Trainer(updater, stop=(epochs, "epoch"), out=None).run()
    assert weights(model.module_) == weights(net)  # shuffled by another seed than the others
    return weights(net)


@pytest.mark.parametrize("compile", ["auto", True, False])
def test_faces_give_the_weights_of_a_loop(compile: Any) -> None:
    expected = by_loop(2, jit=compile is not False)
    assert by_trainer(2, compile) == expected
    assert by_fit(2, compile) == expected
    by_estimator(2, compile)


# -- what a step may have --------------------------------------------------------------------------

STEPS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulated": {"accumulate": 3},
    "clipped": {"clip_norm": 0.5, "clip_value": 0.2},
    "all": {"accumulate": 2, "clip_norm": 0.5},
}
OPTIMIZERS: dict[str, Any] = {
    "adamw": lambda net: AdamW(net.parameters(), lr=0.01),
    "momentum": lambda net: SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True),
}


def trainer(optimizer: str, compile: Any = "auto", **options: Any) -> Trainer:
    net = network()
    updater = Updater(
        net, OPTIMIZERS[optimizer](net), F.cross_entropy, loader(), compile=compile, **options
    )
    made = Trainer(updater, stop=(2, "epoch"), out=None)
    schedule = wf.optim.lr.OneCycleLR(updater.optimizer, max_lr=0.1, total_steps=14)
    made.extend(wf.train.Schedule(schedule), trigger=(1, "iteration"))
    made.extend(Average(0.9))
    others = DataLoader(TensorDataset(X, Y), batch_size=16)
    made.extend(Evaluator(others, ["accuracy"], average=made.get_extension("Average")))
    return made


@pytest.mark.parametrize("options", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("optimizer", ["momentum"])
def test_compiled_steps_do_what_eager_ones_do(optimizer: str, options: dict[str, Any]) -> None:
    compiled = trainer(optimizer, True, **options)
    compiled.run()
    eager = trainer(optimizer, False, **options)
    eager.run()
    assert compiled.observation.keys() == eager.observation.keys()
    for name, value in eager.observation.items():
        assert compiled.observation[name] == pytest.approx(value, rel=1e-3, abs=1e-3)
    for a, b in zip(compiled.model.parameters(), eager.model.parameters(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("options", [STEPS["plain"], STEPS["all"]], ids=["plain", "all"])
def test_resumed_runs_end_bit_equal(options: dict[str, Any]) -> None:
    whole = trainer("adamw", **options)
    whole.run()
    for at in (1, 5):
        first = trainer("adamw", **options)
        first.stop = lambda t, at=at: t.iteration >= at
        first.run()
        state = copy.deepcopy(first.state_dict())
        again = trainer("adamw", **options)
        again.load_state_dict(state)
        again.run()
        assert weights(again.model) == weights(whole.model)
        assert again.observation == whole.observation


def test_hyperparameters_that_change_are_read_anew() -> None:
    runs = []
    for compile in (True, False):
        net = network().eval()
        optimizer = AdamW(net.parameters(), lr=0.01)
        updater = Updater(net, optimizer, F.cross_entropy, loader(50), compile=compile)
        for i in range(60):
            group = optimizer.param_groups[0]
            group["betas"], group["weight_decay"] = (0.8 + i / 1000, 0.99), 0.01 * (1 + i)
            updater.update()
        runs.append([p.numpy() for p in net.parameters()])
    for a, b in zip(*runs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


# -- what users write ------------------------------------------------------------------------------


class Adversaries(Updater):
    """Two networks that learn from each other in one step."""

    def __init__(self, net: nn.Module, other: nn.Module, **options: Any) -> None:
        super().__init__(net, SGD(net.parameters(), lr=0.1), None, loader(50), **options)
        self.other, self.second = other, SGD(other.parameters(), lr=0.1)

    def take_step(self, batches: list[Any]) -> list[Outcome]:
        """Let one network match the other, and that one the data."""
        x, y = batches[0]
        first = F.mse_loss(self.model(x), self.other(x).detach())
        self.optimizer.minimize(first)
        second = F.cross_entropy(self.other(x), y)
        self.second.minimize(second)
        return [Outcome(first.detach(), {"second": second.detach()}, None, None)]


@pytest.mark.parametrize("compile", [True, False])
def test_a_step_of_ones_own(compile: bool) -> None:
    updater = Adversaries(network(), nn.Linear(6, 2), compile=compile)
    first = updater.update()
    for _ in range(20):
        last = updater.update()
    assert last["train/loss"] < first["train/loss"]
    assert last["train/second"] < first["train/second"]


def test_a_loss_and_a_computation_of_ones_own() -> None:
    class Doubled(Updater):
        def compute(self, batch: Any) -> Outcome:
            outcome = super().compute(batch)
            return outcome._replace(loss=outcome.loss * 2.0)

    def loss(output: Any, target: Any) -> Any:
        error = F.cross_entropy(output, target)
        return {"loss": error, "size": output.abs().mean()}

    net = network()
    found = Doubled(net, SGD(net.parameters()), loss, loader(50), compile=True).update()
    net = network()
    plain = Updater(net, SGD(net.parameters()), loss, loader(50), compile=False).update()
    assert found["train/loss"] == pytest.approx(2 * plain["train/loss"], rel=1e-5)
    assert found["train/size"] == pytest.approx(plain["train/size"], rel=1e-5)


def test_weights_of_samples_and_classes() -> None:
    found = []
    for compile in (True, False):
        net = network()
        net.compile("sgd", "cross_entropy", compile=compile)
        weights_of_samples = np.linspace(0.5, 1.5, 50)
        options = {"class_weight": {1: 2.0}, "sample_weight": weights_of_samples}
        history = net.fit(X, Y, batch_size=25, epochs=30, verbose=0, seed=0, **options)
        found.append(history.history["loss"][0])
    assert found[0] == pytest.approx(found[1], rel=1e-4)


# -- what cannot be compiled -----------------------------------------------------------------------


def test_what_cannot_be_compiled_warns_or_raises() -> None:
    def make(compile: Any) -> Updater:
        net = network().eval()
        return Updater(net, LBFGS(net.parameters()), F.cross_entropy, loader(50), compile=compile)

    expected = make(False).update()
    with pytest.warns(RuntimeWarning, match="LBFGS steps by values"):
        assert make("auto").update() == expected
    strict = make(True)
    before = weights(strict.model)
    with pytest.raises(GraphError, match="take_step cannot be compiled: LBFGS steps by values"):
        strict.update()
    assert weights(strict.model) == before


@pytest.mark.parametrize("choice", ["yes", None, 2, "true"])
def test_unknown_choices(choice: Any) -> None:
    net = network()
    with pytest.raises(ValueError, match=r"compile must be 'auto', True or False\. Received"):
        checked_compile(choice)
    with pytest.raises(ValueError, match="compile must be"):
        Updater(net, SGD(net.parameters()), F.mse_loss, loader(), compile=choice)
    with pytest.raises(ValueError, match="compile must be"):
        net.compile("sgd", "mse", compile=choice)


# -- evaluation and prediction ---------------------------------------------------------------------


def test_evaluation_and_prediction() -> None:
    net = network()
    net.compile("sgd", "cross_entropy", metrics=["accuracy"])
    compiled = net.evaluate(X, Y, verbose=0)
    assert net.evaluate(X, Y, verbose=0, compile=False) == pytest.approx(compiled, rel=1e-5)
    eager = net.predict(X, compile=False)
    np.testing.assert_allclose(net.predict(X, compile=True), eager, rtol=1e-4, atol=1e-6)
    with wf.no_grad():
        net[0].weight.fill_(0.0)  # what was compiled sees it
    np.testing.assert_allclose(net.predict(X), net.predict(X, compile=False), rtol=1e-5)


def test_objectives_of_other_kinds_are_called_as_they_are() -> None:
    class Counted(Objective):
        calls = 0

        def __call__(self, batch: Any) -> Outcome:
            Counted.calls += 1
            return super().__call__(batch)

    objective = Counted(network(), F.cross_entropy)
    assert evaluate(objective, loader(10), compile=True).keys() == {"loss"}
    assert Counted.calls == 5
    assert evaluate(objective.__call__, loader(25), compile=True)["loss"] > 0


def test_models_can_be_copied_after_prediction() -> None:
    net = network()
    expected = net.predict(X)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert np.array_equal(other.predict(X), expected)
        with wf.no_grad():
            other[4].weight.fill_(0.0)
        assert not np.array_equal(other.predict(X), expected)
    assert np.array_equal(net.predict(X), expected)


def test_fit_lets_go_of_its_data() -> None:
    class Data(TensorDataset):
        """Can be referred to weakly."""

    net, data = network(), Data(X, Y)
    net.compile("sgd", "cross_entropy")
    net.fit(data, batch_size=50, verbose=0)
    gone = weakref.ref(data)
    del data
    gc.collect()
    assert gone() is None


def test_functions_are_compiled_once() -> None:
    captures = Captures()
    made = captures.get("f", abs, "auto")
    assert captures.get("f", abs, "auto") is made
    assert captures.get("f", abs, False) is abs
    assert as_compiled(abs, False) is abs
    assert copy.deepcopy(captures)._made == {}
    assert (
        CompileSettings(wf.nn.Linear(1, 1), "sgd", get_loss("mse"), None, None, "auto").choice_of(
            None
        )
        == "auto"
    )


class Centered(nn.Module):
    """Subtracts a running mean, which is another tensor after each step of training."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 2)
        self.register_buffer("mean", wf.zeros(2))

    def forward(self, x: Any) -> Any:
        x = self.linear(x)
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x - self.mean


def test_buffers_that_are_replaced_are_fed_to_training_and_evaluation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []

    def noted(*args: Any, **kwargs: Any) -> Any:
        made.append(wf.jit(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr("weft.train.captured.jit", noted)
    trained = []
    for choice in (False, True):
        wf.manual_seed(SEED)
        net = Centered()
        net.compile(SGD(net.parameters(), lr=0.1), "cross_entropy", compile=choice)
        net.fit(X[:48], Y[:48], batch_size=8, epochs=4, validation_data=(X[:8], Y[:8]), verbose=0)
        trained.append(net.state_dict())
    for name, value in trained[0].items():
        np.testing.assert_allclose(trained[1][name].numpy(), value.numpy(), rtol=1e-5, atol=1e-6)
    assert [run.stats()["recordings"] for run in made] == [1, 2]
