"""Optimizers and hooks give Chainer's losses; updates are compiled and may not be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.chainer.figures import RUNS
from tests.chainer.runs import HOOKS, OPTIMIZERS, data, losses, network
from weft import chainer

COMPILED = ("MomentumSGD", "Adam")  # the others eagerly, which takes less time


def made(name: str) -> chainer.GradientMethod:
    optimizer = getattr(chainer.optimizers, name)()
    if name == "AdamW":
        optimizer.hyperparam.weight_decay_rate = 0.01
    return optimizer


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_losses_are_chainers(name: str) -> None:
    optimizer = made(name)
    optimizer.compile = "auto" if name in COMPILED else False
    assert losses(chainer, optimizer) == pytest.approx(RUNS[name], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", HOOKS)
def test_hooks_are_chainers(name: str) -> None:
    hook = getattr(chainer.optimizer_hooks, name)(*HOOKS[name])
    found = losses(chainer, chainer.optimizers.SGD(0.1), hook)
    assert found == pytest.approx(RUNS[name], rel=1e-4, abs=1e-5)


def test_updates_run_as_one_program() -> None:
    optimizer = chainer.optimizers.Adam()
    losses(chainer, optimizer, chainer.optimizer_hooks.WeightDecay(0.1))
    (step,) = optimizer._captures._made.values()
    stats = step.stats()
    assert stats["eager_calls"] == 0
    assert stats["compiled_calls"] == 6


@pytest.mark.parametrize("compiled", [True, False])
def test_variables_as_inputs_get_gradients_and_need_no_program_each(compiled: bool) -> None:
    model, (x, t) = network(chainer), data()
    optimizer = chainer.optimizers.SGD(0.1).setup(model)
    optimizer.compile = compiled
    found = []
    for step in range(3):
        inputs = chainer.Variable(x + step)
        optimizer.update(model, inputs, chainer.Variable(t))
        found.append(inputs.grad)
    for step, given in enumerate(found):
        assert given.shape == x.shape, step
    if compiled:
        (made,) = optimizer._captures._made.values()
        assert made.stats()["recordings"] <= 2
    reference = losses_with_gradients(x, t)
    for given, wanted in zip(found, reference, strict=True):
        np.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-7)


def losses_with_gradients(x: Any, t: Any) -> list[Any]:
    """Return gradients of the inputs, where the program goes back itself and then updates."""
    model = network(chainer)
    optimizer = chainer.optimizers.SGD(0.1).setup(model)
    found = []
    for step in range(3):
        inputs = chainer.Variable(x + step)
        loss = model(inputs, t)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        found.append(inputs.grad)
    return found


def test_a_loss_of_variables_with_a_history_runs_eagerly() -> None:
    model, (x, t) = network(chainer), data()
    optimizer = chainer.optimizers.SGD(0.1).setup(model)
    scale = chainer.Variable(np.ones(1, "f"))
    optimizer.update(model, chainer.Variable(x) * scale, t)
    assert scale.grad is not None
    assert optimizer.t == 1


def test_two_losses_of_one_computation_as_adversaries_have_them() -> None:
    first = chainer.links.Linear(2, 2, initialW=np.array([[1, 2], [3, 4]], "f"))
    second = chainer.links.Linear(2, 1, initialW=np.array([[1, -1]], "f"))
    optimizers = [chainer.optimizers.SGD(0.5).setup(link) for link in (second, first)]
    y = second(first(chainer.Variable(np.ones((1, 2), "f"))))
    second_weights = second.W.array.copy()
    optimizers[0].update(chainer.functions.sum, y)
    assert not np.array_equal(second.W.array, second_weights)
    optimizers[1].update(chainer.functions.sum, y)
    # Weights are updated in place, as there: the second loss goes back through those of now.
    assert first.W.grad.tolist() == [[-0.5, -0.5], [-4.5, -4.5]]


def test_updates_without_a_loss() -> None:
    link = chainer.links.Linear(1, 1, initialW=1.0)
    optimizer = chainer.optimizers.SGD(0.5).setup(link)
    link.W.grad = np.full((1, 1), 2, "f")
    optimizer.update()
    assert link.W.array.tolist() == [[0.0]]
    link.disable_update()
    assert not link.update_enabled


def test_hooks_have_names() -> None:
    optimizer = chainer.optimizers.SGD().setup(chainer.links.Linear(1, 1))
    optimizer.add_hook(chainer.optimizer_hooks.Lasso(0.1), "mine")
    with pytest.raises(KeyError, match="hook mine already exists"):
        optimizer.add_hook(chainer.optimizer_hooks.Lasso(0.1), "mine")
    optimizer.remove_hook("mine")
    with pytest.raises(TypeError, match="not callable"):
        optimizer.add_hook(3)


def test_what_comes_before_set_up_is_refused() -> None:
    optimizer = chainer.optimizers.SGD()
    with pytest.raises(RuntimeError, match="call `setup`"):
        optimizer.update()
    with pytest.raises(TypeError, match="must be a link"):
        optimizer.setup(object())


def test_states_go_through_files(tmp_path) -> None:
    results = []
    for split in (6, 3):
        model, (x, t) = network(chainer), data()
        optimizer = chainer.optimizers.Adam().setup(model)
        for step in range(6):
            if step == split:
                for name, thing in (("m", model), ("o", optimizer)):
                    chainer.serializers.save_npz(str(tmp_path / name), thing)
                model = network(chainer)
                optimizer = chainer.optimizers.Adam().setup(model)
                for name, thing in (("m", model), ("o", optimizer)):
                    chainer.serializers.load_npz(str(tmp_path / name), thing)
            optimizer.update(model, x, t)
        results.append(model.predictor[0].W.array.copy())
        assert optimizer.t == 6
    np.testing.assert_array_equal(*results)


class Sentences(chainer.Chain):
    """Predicts words of sentences of any length."""

    def __init__(self) -> None:
        super().__init__()
        links = chainer.links
        with self.init_scope():
            self.embed, self.out = links.EmbedID(5, 3), links.Linear(3, 5)
            self.lstm = links.NStepLSTM(1, 3, 3, 0.0)

    def forward(self, xs: list[Any]) -> Any:
        F = chainer.functions
        words = F.concat(xs, axis=0)
        places = np.cumsum([len(x) for x in xs[:-1]])
        _, _, ys = self.lstm(None, None, F.split_axis(self.embed(words), places, 0))
        return F.softmax_cross_entropy(self.out(F.concat(ys, axis=0)), words)


@pytest.mark.filterwarnings("ignore:.*other sizes in nearly every call")
def test_sentences_of_any_length_do_not_make_a_program_for_every_batch() -> None:
    model = Sentences()
    other = model.copy("copy")
    optimizer, eager = (chainer.optimizers.Adam(0.05).setup(m) for m in (model, other))
    eager.compile = False
    for n in range(8):
        sizes = (1 + n % 3, 2 + n % 4)
        batch = [np.arange(n, n + size, dtype="i") % 5 for size in sizes]
        optimizer.update(model, batch)
        eager.update(other, batch)
    for mine, theirs in zip(model.params(), other.params(), strict=True):
        np.testing.assert_allclose(mine.array, theirs.array, rtol=1e-4, atol=1e-5)
    (jitted,) = optimizer._captures._made.values()
    assert (jitted.stats()["recordings"], jitted.stats()["eager_calls"]) == (4, 4)
