"""Triggers: when an extension runs, and when training stops.

A trigger is a function of the trainer that returns True or False after each iteration. Those that
count iterations or epochs compare the position before the iteration with the one after it, in exact
fractions: a period of 0.1 epochs fires ten times an epoch, and a resumed run fires where an
uninterrupted one does. Whole periods need no fractions, only what is complete of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..core.errors import ArgumentError, ArgumentTypeError
from .saved import Saved
from .summary import scalar_of

if TYPE_CHECKING:
    from .trainer import Trainer

UNITS = ("iteration", "epoch")
MODES = ("min", "max")
TriggerFunction = Callable[["Trainer"], bool]


class Trigger(Saved):
    """Base of triggers that have a state; any function of the trainer will do otherwise."""

    def __call__(self, trainer: Trainer) -> bool:
        """Tell whether to run after this iteration."""
        raise ArgumentTypeError(f"{type(self).__name__} defines no __call__(trainer)")


class IntervalTrigger(Trigger):
    """Fire each time a multiple of the period has been reached or passed.

    >>> IntervalTrigger(0.5, "epoch")
    IntervalTrigger(0.5, 'epoch')
    """

    def __init__(self, period: float, unit: str) -> None:
        self.unit = _checked_unit(unit)
        self.period = as_fraction("a period", period)
        if self.period <= 0:
            raise ArgumentError(f"a period must be greater than 0. Received: {period!r}")
        self._whole = _whole(self.period)

    @property
    def at_epochs(self) -> bool:
        """Tell whether it fires only after iterations that complete an epoch."""
        return self._whole is not None and self.unit == "epoch"

    def __call__(self, trainer: Trainer) -> bool:
        """Compare how many periods have passed before and after the iteration."""
        whole = self._whole
        if whole is not None:  # floor(x / n) = floor(floor(x) / n) of a whole n
            before, now = completed(trainer, self.unit)
            return before // whole != now // whole
        began, stands = positions(trainer, self.unit)
        return began // self.period != stands // self.period

    def __repr__(self) -> str:
        return f"IntervalTrigger({_shown(self.period)}, {self.unit!r})"


class ManualTrigger(Trigger):
    """Fire at the given points, e.g. `ManualTrigger([1, 2.5, 10], "epoch")`."""

    def __init__(self, points: float | Iterable[float], unit: str) -> None:
        self.unit = _checked_unit(unit)
        listed = points if isinstance(points, Iterable) else [points]
        self.points = sorted(as_fraction("a point", point) for point in listed)

    def __call__(self, trainer: Trainer) -> bool:
        """Tell whether the iteration reached or passed a point."""
        before, now = positions(trainer, self.unit)
        return any(before < point <= now for point in self.points)

    def __repr__(self) -> str:
        return f"ManualTrigger({[_shown(point) for point in self.points]}, {self.unit!r})"


class TimeTrigger(Trigger):
    """Fire when the given number of seconds of training has passed since it last did."""

    _saved = ("next_time",)

    def __init__(self, seconds: float) -> None:
        self.seconds = float(as_fraction("seconds", seconds))
        if self.seconds <= 0:
            raise ArgumentError(f"seconds must be greater than 0. Received: {seconds!r}")
        self.next_time = self.seconds

    def __call__(self, trainer: Trainer) -> bool:
        """Compare the time of training, earlier runs included, with the next appointment."""
        now = trainer.elapsed_time
        if now < self.next_time:
            return False
        self.next_time = now + self.seconds
        return True


class OnceTrigger(Trigger):
    """Fire after the first iteration only; not again in a resumed run."""

    _saved = ("fired",)

    def __init__(self) -> None:
        self.fired = False

    def __call__(self, trainer: Trainer) -> bool:
        """Tell whether this is the first call."""
        first, self.fired = not self.fired, True
        return first


class BestTrigger(Trigger):
    """Fire when an observed value is better than ever before.

    >>> BestTrigger("val/accuracy", mode="max").mode
    'max'
    """

    _saved = ("best",)

    def __init__(self, key: str, mode: str = "min") -> None:
        self.key = key
        self.mode = checked_mode(mode)
        self.best: float | None = None

    def __call__(self, trainer: Trainer) -> bool:
        """Tell whether the value is there, is a number, and is the best so far."""
        value = scalar_of(trainer.observation.get(self.key))
        if value is None or math.isnan(value) or not is_better(value, self.best, self.mode):
            return False
        self.best = value
        return True


class Stop(Trigger):
    """Stop when a number of iterations or epochs is reached, however the run came there."""

    def __init__(self, count: float, unit: str) -> None:
        self.unit = _checked_unit(unit)
        self.count = as_fraction("the end of training", count)
        if self.count < 0:
            raise ArgumentError(f"training must not end before it begins. Received: {count!r}")
        self._whole = _whole(self.count)

    def __call__(self, trainer: Trainer) -> bool:
        """Tell whether the position is at or beyond the end."""
        whole, updater = self._whole, trainer.updater
        if whole is not None:
            return (updater.epoch if self.unit == "epoch" else updater.iteration) >= whole
        return positions(trainer, self.unit)[1] >= self.count


def as_trigger(trigger: Any) -> TriggerFunction:
    """Return a trigger from (period, unit) or from a function of the trainer."""
    if callable(trigger):
        return trigger  # type: ignore[no-any-return]  # any function of the trainer
    return IntervalTrigger(*_checked_pair(trigger, "a trigger"))


def as_stop(stop: Any) -> TriggerFunction | None:
    """Return when to stop from (count, unit) or from a function; None means: only on request."""
    if stop is None or callable(stop):
        return stop  # type: ignore[no-any-return]  # any function of the trainer
    return Stop(*_checked_pair(stop, "stop"))


def positions(trainer: Trainer, unit: str) -> tuple[Fraction | int, Fraction | int]:
    """Return where training stood before the latest iteration and where it stands now."""
    updater = trainer.updater
    if unit == "epoch":
        return updater.previous_position, updater.position
    return max(0, updater.iteration - 1), updater.iteration


def completed(trainer: Trainer, unit: str) -> tuple[int, int]:
    """Return how many were complete before the latest iteration, and how many are now."""
    updater = trainer.updater
    if unit == "epoch":
        return updater.previous_epoch, updater.epoch
    return max(0, updater.iteration - 1), updater.iteration


def is_better(value: float, best: float | None, mode: str, margin: float = 0.0) -> bool:
    """Tell whether a value improves on the best one by more than a margin."""
    if best is None or math.isnan(best):
        return not math.isnan(value)
    return value < best - margin if mode == "min" else value > best + margin


def checked_mode(mode: Any) -> str:
    """Return "min" or "max"; refuse anything else."""
    if mode not in MODES:
        raise ArgumentError(f"mode must be 'min' or 'max'. Received: {mode!r}")
    return str(mode)


def as_fraction(what: str, value: Any) -> Fraction:
    """Return the number that was written: 0.1 is one tenth, not the nearest binary fraction."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ArgumentTypeError(f"{what} must be a finite number. Received: {value!r}")
    return Fraction(repr(value))


def _checked_pair(pair: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ArgumentTypeError(
            f"{what} must be a pair such as (1, 'epoch') or a function of the trainer. "
            f"Received: {pair!r}"
        )
    return pair[0], pair[1]


def _checked_unit(unit: Any) -> str:
    if unit not in UNITS:
        raise ArgumentError(f"a unit must be 'iteration' or 'epoch'. Received: {unit!r}")
    return str(unit)


def _whole(value: Fraction) -> int | None:
    """Return a number without a fraction, which is compared quickly; None of others."""
    return value.numerator if value.denominator == 1 else None


def _shown(value: Fraction) -> float:
    return int(value) if value.denominator == 1 else float(value)
