"""Stop early: when a metric no longer improves, or when the loss is no number."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.errors import WeftError
from ..checks import checked_int
from ..extension import PRIORITY_GUARD, PRIORITY_READER, Extension
from ..interrupts import INTERRUPTED
from ..summary import scalar_of
from ..triggers import checked_mode, is_better

if TYPE_CHECKING:
    from ..trainer import Trainer


class NonFiniteError(WeftError, ArithmeticError):
    """A loss or a parameter became NaN or infinite."""


class EarlyStopping(Extension):
    """Stop when a value has not improved for `patience` observations in a row.

    metric         an observed value, e.g. "val/loss"
    mode           "min" or "max": which way it improves
    min_delta      the least change that counts
    patience       how many observations without improvement are borne
    start_from     do not count before this epoch
    restore_best   give the model its best weights at the end (only when asked)

    NaN is no improvement.
    """

    trigger = (1, "epoch")
    priority = PRIORITY_READER
    _saved = ("best", "best_iteration", "waited", "stopped", "_best_weights")

    def __init__(
        self,
        metric: str = "val/loss",
        *,
        patience: int = 5,
        mode: str = "min",
        min_delta: float = 0.0,
        start_from: float = 0,
        restore_best: bool = False,
    ) -> None:
        self.metric, self.mode = metric, checked_mode(mode)
        self.patience = checked_int("patience", patience, 0)
        self.min_delta, self.start_from = abs(min_delta), start_from
        self.restore_best = restore_best
        self.best: float | None = None
        self.best_iteration: int | None = None
        self.waited = 0
        self.stopped = False
        self._best_weights: dict[str, Any] | None = None
        self._warned = False

    def initialize(self, trainer: Trainer) -> None:
        """Keep a resumed run that had been stopped from going on."""
        if self.stopped:
            trainer.request_stop(self._reason())

    def __call__(self, trainer: Trainer) -> None:
        """Compare the value with the best."""
        value = scalar_of(trainer.observation.get(self.metric))
        if value is None:
            self._warn(trainer)
        elif trainer.epoch_detail >= self.start_from:
            self._judge(trainer, value)

    def _judge(self, trainer: Trainer, value: float) -> None:
        if is_better(value, self.best, self.mode, self.min_delta):
            self.best, self.best_iteration, self.waited = value, trainer.iteration, 0
            if self.restore_best:
                state = trainer.model.state_dict()
                self._best_weights = {name: tensor.clone() for name, tensor in state.items()}
            return
        self.waited += 1
        if self.waited >= max(self.patience, 1):
            self.stopped = True
            trainer.request_stop(self._reason())

    def finish(self, trainer: Trainer) -> None:
        """Give the model its best weights, if that is asked for."""
        complete = trainer.stop_reason != INTERRUPTED  # else it will be resumed where it stands
        if self.restore_best and complete and self._best_weights is not None:
            trainer.model.load_state_dict(self._best_weights)

    def _reason(self) -> str:
        return f"{self.metric} has not improved since iteration {self.best_iteration}"

    def _warn(self, trainer: Trainer) -> None:
        if not self._warned and self.best is None:
            self._warned = True
            known = ", ".join(trainer.observation)
            warnings.warn(
                f"EarlyStopping: {self.metric!r} was not observed; there are: {known}. Give it the "
                "trigger of the extension that reports the value",
                stacklevel=2,
            )


class NanStop(Extension):
    """Raise as soon as a loss is NaN or infinite, before anything is saved.

    keys         observed values to look at
    parameters   also look at all parameters, which costs a pass over them
    """

    trigger = (1, "iteration")
    priority = PRIORITY_GUARD

    def __init__(self, keys: Sequence[str] = ("train/loss",), *, parameters: bool = False) -> None:
        self.keys = (keys,) if isinstance(keys, str) else tuple(keys)
        self.parameters = parameters

    def __call__(self, trainer: Trainer) -> None:
        """Look at the values of this iteration."""
        for key in self.keys:
            value = scalar_of(trainer.observation.get(key))
            if value is not None and not math.isfinite(value):
                raise self._error(trainer, f"{key} is {value}")
        if self.parameters:
            for name, parameter in trainer.model.named_parameters():
                if not bool(parameter.detach().isfinite().all()):
                    raise self._error(trainer, f"the parameter {name} is not finite")

    def _error(self, trainer: Trainer, what: str) -> NonFiniteError:
        return NonFiniteError(
            f"{what} at iteration {trainer.iteration} (epoch {trainer.epoch_detail:.4g}); lower "
            "the learning rate, clip the gradients (clip_norm=...), or find the operation with "
            "wf.detect_anomaly()"
        )
