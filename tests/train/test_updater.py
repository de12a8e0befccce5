"""One iteration: from a batch to new weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.train.helpers import Affine, batches, make_updater, squared_error
from weft.core.errors import WeftError
from weft.optim import LBFGS, SGD, LossScaler
from weft.train import Objective, Updater
from weft.train.objective import evaluating, size_of


def manual_step(model: Affine, loader: Any, **options: Any) -> None:
    optimizer = SGD(model.parameters(), **options)
    for x, y in loader:
        optimizer.zero_grad()
        squared_error(model(x), y).backward()
        optimizer.step()


def test_equals_a_loop_written_by_hand() -> None:
    model = Affine()
    manual_step(model, batches(), lr=0.1, momentum=0.9)
    updater = make_updater()
    for _ in range(5):
        updater.update()
    np.testing.assert_array_equal(model.weight.numpy(), updater.model.weight.numpy())
    assert (updater.iteration, updater.epoch, updater.is_new_epoch) == (5, 1, True)


def test_accumulation_equals_the_large_batch() -> None:
    data = batches(4)
    joined = [
        (wf.concat([a[0], b[0]]), wf.concat([a[1], b[1]]))
        for a, b in zip(data[::2], data[1::2], strict=True)
    ]
    one, two = make_updater(joined), make_updater(data, accumulate=2)
    for _ in range(2):
        assert one.update()["train/loss"] == pytest.approx(two.update()["train/loss"])
    np.testing.assert_allclose(one.model.weight.numpy(), two.model.weight.numpy(), rtol=1e-5)
    assert one.epoch == two.epoch == 1


def test_accumulation_ends_with_the_epoch() -> None:
    updater = make_updater(batches(5), accumulate=3)
    assert updater.epoch_iterations == 2
    updater.update()
    assert (updater.iteration, updater.epoch, len(updater.outcomes)) == (1, 0, 3)
    updater.update()
    assert (updater.iteration, updater.epoch, len(updater.outcomes)) == (2, 1, 2)


def test_clipping() -> None:
    updater = make_updater(clip_norm=1e-3)
    before = np.array(updater.model.weight)
    updater.update()
    step = np.array(updater.model.weight) - before
    assert np.sqrt((step**2).sum()) <= 0.1 * 1e-3 * 1.001
    updater = make_updater(clip_value=1e-3)
    updater.update()
    assert np.abs(np.array(updater.model.weight) - before).max() <= 0.1 * 1e-3 * 1.001
    assert not updater.optimizer._before  # the hook lives only during the step


def test_loss_scaling_leaves_the_step_as_it_is_and_clips_true_gradients() -> None:
    plain, scaled = make_updater(clip_norm=0.5), make_updater(clip_norm=0.5)
    scaler = LossScaler(scaled.optimizer, scale=1024.0)
    for _ in range(3):
        assert plain.update() == scaled.update()
    np.testing.assert_allclose(plain.model.weight.numpy(), scaled.model.weight.numpy(), rtol=1e-6)
    state = scaled.state_dict()
    scaler.factor = 1.0
    scaled.load_state_dict(state)
    assert scaler.factor == 1024.0


def test_optimizer_that_evaluates_several_times() -> None:
    model = Affine()
    updater = Updater(model, LBFGS(model.parameters()), squared_error, batches(1, 32))
    with pytest.warns(RuntimeWarning, match="LBFGS steps by values"):
        first = updater.update()["train/loss"]
    for _ in range(3):
        last = updater.update()["train/loss"]
    assert last < 1e-3 * first


def test_loss_that_reports_more() -> None:
    def loss(output: Any, target: Any) -> Any:
        return {"loss": squared_error(output, target), "size": output.abs().mean()}

    model = Affine()
    updater = Updater(model, SGD(model.parameters(), lr=0.1), loss, batches())
    assert set(updater.update()) == {"train/loss", "train/size"}


def test_model_that_returns_its_loss() -> None:
    class Own(Affine):
        def forward(self, x: Any, y: Any) -> Any:
            return squared_error(super().forward(x), y)

    model = Own()
    updater = Updater(model, SGD(model.parameters(), lr=0.1), None, batches())
    assert updater.update()["train/loss"] == make_updater().update()["train/loss"]


def test_batches_as_dictionaries_and_arrays() -> None:
    expected = make_updater().update()
    named = [{"x": x, "label": y} for x, y in batches()]
    assert make_updater(named, target="label").update() == expected
    arrays = [(x.numpy(), y.numpy()) for x, y in batches()]
    assert make_updater(arrays).update() == expected
    flipped = [(y, x) for x, y in batches()]
    assert make_updater(flipped, target=0).update() == expected
    assert make_updater(flipped, prepare=lambda b: (b[1], b[0])).update() == expected


def test_no_target() -> None:
    model = Affine()
    loader = [x for x, _ in batches()]
    updater = Updater(
        model, SGD(model.parameters(), lr=0.1), lambda out: (out**2).mean(), loader, target=None
    )
    assert updater.update()["train/loss"] > 0


def test_start_leaves_frozen_parts_alone() -> None:
    class Two(Affine):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Affine()

    model = Two()
    updater = Updater(model, SGD(model.parameters(), lr=0.1), squared_error, batches())
    model.inner.eval()
    updater.start()
    assert model.training
    assert not model.inner.training
    model.eval()
    updater.start()
    assert model.training


def test_evaluating_leaves_no_trace() -> None:
    model = Affine()
    wf.manual_seed(3)
    expected = wf.rand(3).tolist()
    wf.manual_seed(3)

    def fail() -> None:
        with evaluating(model):
            assert not model.training
            assert not wf.is_grad_enabled()
            wf.rand(10)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert model.training
    assert wf.is_grad_enabled()
    assert wf.rand(3).tolist() == expected


def test_state_of_updater_comes_back() -> None:
    one = make_updater()
    for _ in range(3):
        one.update()
    state = one.state_dict()
    two = make_updater()
    two.load_state_dict(state)
    for _ in range(4):
        assert one.update() == two.update()
    assert (one.iteration, one.position, one.previous_position) == (
        two.iteration,
        two.position,
        two.previous_position,
    )


def test_size_of_batch() -> None:
    assert size_of((wf.zeros(4, 2), wf.zeros(4))) == 4
    assert size_of({"x": np.zeros((3, 1))}) == 3
    assert size_of(wf.tensor(1.0)) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_updater(target="y").update(), "a batch has no target 'y'; it has 2 parts"),
        (lambda: make_updater(target=7).update(), "a batch has no target 7"),
        (lambda: make_updater([{"x": 1}], target="y").update(), r"it has the keys \['x'\]"),
        (lambda: make_updater([wf.zeros(2, 3)]).update(), "pass target=None"),
        (lambda: make_updater(accumulate=0), "accumulate must be an integer from 1 on"),
        (lambda: make_updater(clip_norm=0), "clip_norm must be a number greater than 0"),
        (lambda: make_updater(clip_value="1"), "clip_value must be a number"),
        (lambda: Updater(Affine(), "sgd", squared_error, []), "optimizer must be"),
        (lambda: Objective(Affine, squared_error), "model must be a function"),
        (lambda: Objective(Affine(), "mse"), "loss must be a function"),
    ],
)
def test_bad_arguments(make: Any, message: str) -> None:
    with pytest.raises(WeftError, match=message):
        make()


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda output, target: output - target, "must be one number. Received: shape"),
        (lambda output, target: 1.0, "the loss must be a tensor. Received: float"),
        (lambda output, target: {"total": output.sum()}, "must have 'loss' in it"),
    ],
)
def test_bad_losses(loss: Any, message: str) -> None:
    model = Affine()
    with pytest.raises(WeftError, match=message):
        Updater(model, SGD(model.parameters(), lr=0.1), loss, batches()).update()
