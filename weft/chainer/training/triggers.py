"""`chainer.training.triggers`: when extensions run, on Weft's triggers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...train.triggers import IntervalTrigger as WeftInterval
from ...train.triggers import ManualTrigger, positions
from ...train.triggers import OnceTrigger as WeftOnce
from ...train.triggers import TimeTrigger as WeftTime
from ..reporter import DictSummary

__all__ = [
    "BestValueTrigger",
    "EarlyStoppingTrigger",
    "IntervalTrigger",
    "ManualScheduleTrigger",
    "MaxValueTrigger",
    "MinValueTrigger",
    "OnceTrigger",
    "TimeTrigger",
]


class IntervalTrigger(WeftInterval):
    """Fire every so many epochs or iterations; as the end of training, when they are reached."""

    def is_reached(self, trainer: Any) -> bool:
        """Tell whether training stands at or beyond the period."""
        return positions(trainer, self.unit)[1] >= self.period

    def serialize(self, serializer: Any) -> None:
        """Do nothing: it has no state."""


class ManualScheduleTrigger(ManualTrigger):
    """Fire at given epochs or iterations."""


class TimeTrigger(WeftTime):
    """Fire when so many seconds have passed."""


class OnceTrigger(WeftOnce):
    """Fire once."""

    def __init__(self, call_on_resume: bool = False) -> None:
        super().__init__()


class BestValueTrigger:
    """Fire when the mean of a value since the last look is the best so far."""

    def __init__(
        self, key: str, compare: Callable[[float, float], bool], trigger: Any = (1, "epoch")
    ) -> None:
        self._key, self._compare = key, compare
        self._interval = as_trigger(trigger)
        self._best: float | None = None
        self._summary = DictSummary()

    def __call__(self, trainer: Any) -> bool:
        """Tell whether to fire after this iteration."""
        if self._key in trainer.observation:
            self._summary.add({self._key: trainer.observation[self._key]})
        if not self._interval(trainer):
            return False
        means = self._summary.compute_mean()
        self._summary = DictSummary()
        if self._key not in means:
            return False
        value = means[self._key]
        if self._best is not None and not self._compare(self._best, value):
            return False
        self._best = value
        return True

    @property
    def best_value(self) -> float | None:
        """The best value so far."""
        return self._best

    def serialize(self, serializer: Any) -> None:
        """Write the best value to a serializer, or read it from one."""
        found = serializer("best_value", float("nan") if self._best is None else self._best)
        self._best = None if found is None or found != found else float(found)  # noqa: PLR0124  (NaN)


class MaxValueTrigger(BestValueTrigger):
    """Fire when a value is the largest so far."""

    def __init__(self, key: str, trigger: Any = (1, "epoch")) -> None:
        super().__init__(key, lambda best, new: new > best, trigger)


class MinValueTrigger(BestValueTrigger):
    """Fire when a value is the smallest so far."""

    def __init__(self, key: str, trigger: Any = (1, "epoch")) -> None:
        super().__init__(key, lambda best, new: new < best, trigger)


class EarlyStoppingTrigger:
    """End training when a value has not become better for some time, or at `max_trigger`."""

    def __init__(
        self,
        check_trigger: Any = (1, "epoch"),
        monitor: str = "main/loss",
        patience: int = 3,
        mode: str = "auto",
        verbose: bool = False,
        max_trigger: Any = (100, "epoch"),
        patients: int | None = None,
    ) -> None:
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"mode must be 'auto', 'min' or 'max'. Received: {mode!r}")
        self.monitor, self.patience, self.verbose = monitor, patients or patience, verbose
        rising = mode == "max" or (mode == "auto" and "accuracy" in monitor)
        self._better: Callable[[float, float], bool] = (
            (lambda a, b: a > b) if rising else (lambda a, b: a < b)
        )
        self._check, self._end = as_trigger(check_trigger), as_trigger(max_trigger)
        self._best: float | None = None
        self._count = 0
        self._summary = DictSummary()

    def __call__(self, trainer: Any) -> bool:
        """Tell whether to fire after this iteration."""
        return self.is_reached(trainer)

    def is_reached(self, trainer: Any) -> bool:
        """Tell whether training should end."""
        if trainer.updater.iteration == 0:
            return False
        if self.monitor in trainer.observation:
            self._summary.add({self.monitor: trainer.observation[self.monitor]})
        if self._end.is_reached(trainer):
            return True
        if not self._check(trainer):
            return False
        means = self._summary.compute_mean()
        self._summary = DictSummary()
        if self.monitor not in means:
            return False
        value = means[self.monitor]
        if self._best is None or self._better(value, self._best):
            self._best, self._count = value, 0
        else:
            self._count += 1
        return self._count >= self.patience


def as_trigger(trigger: Any) -> Any:
    """Return a trigger from a pair, or a function of the trainer."""
    if trigger is None:
        return lambda trainer: False
    if callable(trigger):
        return trigger
    return IntervalTrigger(*trigger)


get_trigger = as_trigger
