"""Callbacks with the meanings of Keras."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.train.helpers import Affine
from weft.core.errors import WeftError
from weft.io import load
from weft.optim import SGD
from weft.train import Extension, keras
from weft.train.callbacks import (
    Callback,
    CSVLogger,
    EarlyStopping,
    LambdaCallback,
    LearningRateScheduler,
    ModelCheckpoint,
    ReduceLROnPlateau,
    TerminateOnNaN,
)

X = np.random.default_rng(0).normal(size=(12, 3))
Y = X[:, :2]


class Values(Callback):
    """Puts given values into the logs, in place of real ones."""

    def __init__(self, name: str, values: list[float]) -> None:
        self.name, self.values = name, values

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs[self.name] = self.values[epoch]


def run(*callbacks: Callback | Extension, epochs: int = 6, x: Any = X) -> tuple[Any, Any]:
    model = Affine()
    keras.compile(model, lambda params: SGD(params, lr=0.01), "mse")
    history = keras.fit(
        model, x, Y, batch_size=6, epochs=epochs, verbose=0, callbacks=list(callbacks), seed=1
    )
    return model, history


def epochs_with(values: list[float], **options: Any) -> int:
    _, history = run(Values("val_loss", values), EarlyStopping(**options), epochs=len(values))
    return len(history.epoch)


@pytest.mark.parametrize(
    ("values", "options", "count"),
    [
        ([3, 2, 2.5, 2.1, 2.2, 1], {"patience": 2}, 4),
        ([3, 2, 2.5, 2.1, 2.2, 1], {"patience": 0}, 3),
        ([1, 1, 1, 1], {"patience": 0}, 2),
        ([3, 2.9, 2.8, 2.7], {"patience": 1, "min_delta": 0.5}, 2),
        ([1, 2, 3, 2, 2], {"patience": 2, "mode": "max"}, 5),
        ([5, 4, 3, 2], {"patience": 2, "baseline": 3.5}, 2),
        ([1, 2, 3, 4, 5, 6], {"patience": 1, "start_from_epoch": 3}, 5),
        ([3, math.nan, math.nan, 2], {"patience": 2}, 3),
    ],
)
def test_early_stopping(values: list[float], options: Any, count: int) -> None:
    assert epochs_with(values, **options) == count


def test_early_stopping_keeps_the_last_weights_unless_asked() -> None:
    best, _ = run(epochs=2)
    values = [3.0, 1.0, 2.0, 2.0, 2.0]
    for restore in (False, True):
        model, _ = run(
            Values("val_loss", values),
            EarlyStopping(patience=2, restore_best_weights=restore),
            epochs=5,
        )
        assert (model.weight.tolist() == best.weight.tolist()) is restore


def test_mode_follows_the_name() -> None:
    assert EarlyStopping("val_accuracy").mode == "max"
    assert EarlyStopping("val_auc").mode == "max"
    assert EarlyStopping("val_loss").mode == "min"
    assert EarlyStopping("val_loss", mode="max").mode == "max"


def test_missing_value_warns_and_lists_what_there_is() -> None:
    with pytest.warns(UserWarning, match="no 'val_loss'; there are: loss"):
        run(EarlyStopping(), epochs=1)


def test_model_checkpoint(tmp_path: Path) -> None:
    values = Values("val_loss", [3.0, 1.0, 2.0])
    every = ModelCheckpoint(tmp_path / "every" / "{epoch:02d}-{val_loss:.1f}.safetensors")
    best = ModelCheckpoint(tmp_path / "best.safetensors", save_best_only=True)
    second = ModelCheckpoint(tmp_path / "second-{epoch}.safetensors", save_freq=2)
    run(values, every, best, second, epochs=3)
    names = sorted(path.name for path in (tmp_path / "every").iterdir())
    assert names == ["01-3.0.safetensors", "02-1.0.safetensors", "03-2.0.safetensors"]
    expected = load(tmp_path / "every" / "02-1.0.safetensors")["weight"]
    assert load(tmp_path / "best.safetensors")["weight"].tolist() == expected.tolist()
    assert [path.name for path in tmp_path.glob("second*")] == ["second-2.safetensors"]
    with pytest.raises(WeftError, match="names 'val_acc'; there are: epoch, loss"):
        run(ModelCheckpoint("{val_acc}"), epochs=1)


def test_learning_rate_scheduler() -> None:
    rates: list[float] = []
    watch = LambdaCallback(
        on_epoch_end=lambda epoch, logs: rates.append(model_of(watch).param_groups[0]["lr"])
    )
    run(LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1)), watch, epochs=2)
    run(LearningRateScheduler(lambda epoch, lr: lr * 0.5), watch, epochs=2)
    assert rates == pytest.approx([0.1, 0.05, 0.005, 0.0025])


def model_of(callback: Callback) -> Any:
    return callback.model.optimizer


def test_reduce_on_plateau() -> None:
    values = Values("val_loss", [1.0, 1.0, 1.0, 1.0, 1.0, 0.5])
    model, _ = run(values, ReduceLROnPlateau(factor=0.1, patience=2, cooldown=2))
    assert model.optimizer.param_groups[0]["lr"] == pytest.approx(1e-3)
    model, _ = run(values, ReduceLROnPlateau(factor=0.1, patience=1, min_lr=5e-3))
    assert model.optimizer.param_groups[0]["lr"] == pytest.approx(5e-3)


def test_csv_logger(tmp_path: Path) -> None:
    path = tmp_path / "log" / "training.csv"
    run(CSVLogger(path), epochs=2)
    run(CSVLogger(path, append=True), epochs=1)
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["0", "1", "0"]
    assert float(rows[0]["loss"]) > 0
    run(CSVLogger(path, separator=";"), epochs=1)
    assert path.read_text().splitlines()[0] == "epoch;loss"


def test_terminate_on_nan(capsys: Any) -> None:
    x = X.copy()
    x[:] = math.nan
    _, history = run(TerminateOnNaN(), x=x)
    assert history.epoch == []
    assert "the loss is nan" in capsys.readouterr().out


def test_stop_training_within_an_epoch() -> None:
    def stop(batch: int, logs: Any) -> None:
        callback.model.stop_training = True

    callback = LambdaCallback(on_train_batch_end=stop)
    model, history = run(callback)
    assert model.optimizer.t == 1
    assert history.epoch == []


def test_stop_training_that_is_set_before_the_first_batch_stops_after_it() -> None:
    def stop(logs: Any) -> None:
        callback.model.stop_training = True

    callback = LambdaCallback(on_train_begin=stop)
    assert run(callback)[0].optimizer.t == 1


class Stopping(Extension):
    """Sets `stop_training` after two iterations, when all else has been done."""

    priority = -200

    def __call__(self, trainer: Any) -> None:
        """Set it."""
        trainer.model.stop_training = trainer.iteration == 2


def test_extensions_that_set_stop_training_stop_after_their_iteration() -> None:
    model, history = run(Stopping())
    assert model.optimizer.t == 2
    assert history.epoch == [0]
    model, _ = run(Stopping(), epochs=1)
    assert model.optimizer.t == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LambdaCallback(on_epoch=print), "no event 'on_epoch'"),
        (lambda: LambdaCallback(on_epoch_end=3), "must be callable"),
        (lambda: EarlyStopping(patience=-1), "patience must be"),
        (lambda: EarlyStopping(mode="least"), "mode must be 'auto'"),
        (lambda: ReduceLROnPlateau(factor=1.0), "factor must be less than 1"),
        (lambda: LearningRateScheduler(0.1), "schedule must be callable"),
        (lambda: ModelCheckpoint("x", save_freq=0), "save_freq"),
    ],
)
def test_bad_arguments(make: Any, message: str) -> None:
    with pytest.raises(WeftError, match=message):
        make()


def test_default_callback_does_nothing() -> None:
    assert run(Callback(), epochs=1)[1].epoch == [0]
    assert wf.is_grad_enabled()
