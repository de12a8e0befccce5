"""Callbacks of `model.fit`, with the names and meanings of Keras."""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..io import save
from .checks import checked_int
from .metrics import improves_upwards
from .triggers import is_better

Logs = Mapping[str, float]


class Callback:
    """Base of callbacks; `self.model` is the model, and `self.model.stop_training = True` stops."""

    model: Any = None
    params: Mapping[str, Any] = {}

    def set_model(self, model: Any) -> None:
        """Take the model that is trained."""
        self.model = model

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Take what is known of the run: epochs, steps, verbose."""
        self.params = params

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Act before training."""

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Act after training."""

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Act before an epoch; they are counted from 0."""

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Act after an epoch and its validation."""

    def on_train_batch_begin(self, batch: int, logs: Logs | None = None) -> None:
        """Act before a batch of training."""

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Act after a batch of training."""

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Act before evaluation or validation."""

    def on_test_end(self, logs: Logs | None = None) -> None:
        """Act after evaluation or validation."""

    def on_predict_begin(self, logs: Logs | None = None) -> None:
        """Act before prediction."""

    def on_predict_end(self, logs: Logs | None = None) -> None:
        """Act after prediction."""


class LambdaCallback(Callback):
    """A callback made of functions: `LambdaCallback(on_epoch_end=lambda epoch, logs: ...)`."""

    def __init__(self, **functions: Callable[..., Any]) -> None:
        for name, function in functions.items():
            if not name.startswith("on_") or not hasattr(Callback, name):
                raise ArgumentError(f"there is no event {name!r} for callbacks")
            if not callable(function):
                raise ArgumentTypeError(f"{name} must be callable. Received: {function!r:.60}")
            setattr(self, name, function)


class History(Callback):
    """The values of each epoch, as `fit` returns them: `history.history["val_loss"]`."""

    def __init__(self) -> None:
        self.history: dict[str, list[float]] = {}
        self.epoch: list[int] = []

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Append the values of an epoch."""
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class _Monitor(Callback):
    """Base of callbacks that watch a value."""

    def __init__(self, monitor: str, mode: str = "auto", min_delta: float = 0.0) -> None:
        if mode not in ("auto", "min", "max"):
            raise ArgumentError(f"mode must be 'auto', 'min' or 'max'. Received: {mode!r}")
        larger = improves_upwards(monitor, otherwise=False)
        self.monitor, self.min_delta = monitor, abs(min_delta)
        self.mode = ("max" if larger else "min") if mode == "auto" else mode
        self.best: float | None = None

    def current(self, logs: Logs | None) -> float | None:
        """Return the watched value; warn if there is none."""
        value = (logs or {}).get(self.monitor)
        if value is None:
            warnings.warn(
                f"{type(self).__name__}: there is no {self.monitor!r}; there are: "
                f"{', '.join(logs or {})}",
                stacklevel=2,
            )
        return value

    def improves(self, value: float, on: float | None) -> bool:
        """Tell whether a value is better than another by more than `min_delta`."""
        return is_better(value, on, self.mode, self.min_delta)


class EarlyStopping(_Monitor):
    """Stop when a value has not improved for `patience` epochs.

    baseline               a value that must be reached for the waiting to start anew
    restore_best_weights   go back to the best weights at the end; by default those of the last
                           epoch are kept
    start_from_epoch       do not watch before
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0.0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        self.patience = checked_int("patience", patience, 0)
        self.verbose, self.baseline = verbose, baseline
        self.restore_best_weights = restore_best_weights
        self.start_from_epoch = start_from_epoch
        self.best_weights: dict[str, Any] | None = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Forget an earlier run."""
        self.wait, self.stopped_epoch, self.best_epoch = 0, 0, 0
        self.best, self.best_weights = None, None

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Compare with the best; stop after too many epochs without improvement."""
        value = self.current(logs)
        if value is None or epoch < self.start_from_epoch:
            return
        self.wait += 1
        if self.improves(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                state = self.model.state_dict()
                self.best_weights = {name: tensor.clone() for name, tensor in state.items()}
            if self.baseline is None or self.improves(value, self.baseline):
                self.wait = 0
                return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self, logs: Logs | None = None) -> None:
        """Go back to the best weights, if that is asked for."""
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.best_weights is not None:
            self.model.load_state_dict(self.best_weights)


class ModelCheckpoint(_Monitor):
    """Save the weights as safetensors after each epoch, or after each that is the best so far.

    filepath   may name values: "model-{epoch:02d}-{val_loss:.3f}.safetensors"
    """

    def __init__(
        self,
        filepath: str | Path,
        monitor: str = "val_loss",
        save_best_only: bool = False,
        mode: str = "auto",
        save_freq: int = 1,
    ) -> None:
        super().__init__(monitor, mode)
        self.filepath = str(filepath)
        self.save_best_only = save_best_only
        self.save_freq = checked_int("save_freq (epochs)", save_freq, 1)

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Save if it is due."""
        if self.save_best_only:
            value = self.current(logs)
            if value is None or not self.improves(value, self.best):
                return
            self.best = value
        elif (epoch + 1) % self.save_freq:
            return
        path = Path(self._name(epoch, logs or {}))
        path.parent.mkdir(parents=True, exist_ok=True)
        self.write(path, epoch, logs or {})

    def write(self, path: Path, epoch: int, logs: Logs) -> None:
        """Write the file of an epoch."""
        save(path, self.model.state_dict(), {"epoch": epoch + 1})

    def _name(self, epoch: int, logs: Logs) -> str:
        try:
            return self.filepath.format(epoch=epoch + 1, **logs)
        except KeyError as error:
            raise ArgumentError(
                f"{self.filepath!r} names {error}; there are: epoch, {', '.join(logs)}"
            ) from None


class LearningRateScheduler(Callback):
    """Set the learning rate of each epoch: `schedule(epoch)` or `schedule(epoch, lr)`."""

    def __init__(self, schedule: Callable[..., float]) -> None:
        if not callable(schedule):
            raise ArgumentTypeError(f"schedule must be callable. Received: {schedule!r:.60}")
        self.schedule = schedule

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Set the rate of all groups."""
        for group in self.model.optimizer.param_groups:
            try:
                rate = self.schedule(epoch, group["lr"])
            except TypeError:
                rate = self.schedule(epoch)
            group["lr"] = float(rate)


class ReduceLROnPlateau(_Monitor):
    """Multiply the learning rate by `factor` after `patience` epochs without improvement."""

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        if not factor < 1.0:
            raise ArgumentError(f"factor must be less than 1. Received: {factor!r}")
        self.factor, self.min_lr = factor, min_lr
        self.patience = checked_int("patience", patience, 0)
        self.cooldown = checked_int("cooldown", cooldown, 0)

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Forget an earlier run."""
        self.best, self.wait, self.resting = None, 0, 0

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Compare with the best; reduce after too many epochs without improvement."""
        value = self.current(logs)
        if value is None:
            return
        if self.resting:
            self.resting, self.wait = self.resting - 1, 0
        if self.improves(value, self.best):
            self.best, self.wait = value, 0
        elif not self.resting:
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce()

    def _reduce(self) -> None:
        self.resting, self.wait = self.cooldown, 0
        for group in self.model.optimizer.param_groups:
            group["lr"] = max(group["lr"] * self.factor, self.min_lr)


class CSVLogger(Callback):
    """Write the values of each epoch as a line of a CSV file."""

    def __init__(self, filename: str | Path, separator: str = ",", append: bool = False) -> None:
        self.filename, self.separator, self.append = Path(filename), separator, append
        self._columns: list[str] | None = None

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Start a new file unless the old one is continued."""
        self.filename.parent.mkdir(parents=True, exist_ok=True)
        self._columns = self._existing_columns() if self.append else None
        if self._columns is None:
            self.filename.write_text("", encoding="utf-8")

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Write a line, and the header before the first."""
        row = {"epoch": epoch, **(logs or {})}
        with self.filename.open("a", encoding="utf-8", newline="") as file:
            columns = self._columns or list(row)
            writer = csv.DictWriter(
                file, columns, delimiter=self.separator, extrasaction="ignore", restval="NA"
            )
            if self._columns is None:
                writer.writeheader()
            writer.writerow(row)
        self._columns = columns

    def _existing_columns(self) -> list[str] | None:
        if not self.filename.is_file():
            return None
        with self.filename.open(encoding="utf-8", newline="") as file:
            return next(csv.reader(file, delimiter=self.separator), None)


class TerminateOnNaN(Callback):
    """Stop when the loss of a batch is NaN or infinite."""

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Look at the loss."""
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(loss):
            print(f"Batch {batch}: the loss is {loss}, training stops")
            self.model.stop_training = True
