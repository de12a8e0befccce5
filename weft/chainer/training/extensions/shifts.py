"""Changes of an optimizer's numbers while training goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..extension import Extension


class _Shift(Extension):
    """Set an attribute of an optimizer to a function of the number of calls."""

    def __init__(
        self,
        attr: str,
        init: float | None = None,
        target: float | None = None,
        optimizer: Any = None,
    ) -> None:
        self._attr, self._init, self._target, self._optimizer = attr, init, target, optimizer
        self._t = 0
        self._last: float | None = None

    def value_at(self, init: float, t: int) -> float:
        """Return the value after so many calls; each shift says it."""
        raise NotImplementedError

    def initialize(self, trainer: Any) -> None:
        """Take the value to begin with, and set it."""
        optimizer = self._of(trainer)
        if self._init is None:
            self._init = float(getattr(optimizer, self._attr))
        self._set(
            optimizer,
            self._last if self._last is not None else self._bounded(self.value_at(self._init, 0)),
        )

    def __call__(self, trainer: Any) -> None:
        """Set the next value."""
        self._t += 1
        optimizer = self._of(trainer)
        init = self._init if self._init is not None else float(getattr(optimizer, self._attr))
        self._set(optimizer, self._bounded(self.value_at(init, self._t)))

    def _bounded(self, value: float) -> float:
        if self._target is None or self._init is None:
            return value
        return max(value, self._target) if self._target < self._init else min(value, self._target)

    def _of(self, trainer: Any) -> Any:
        return self._optimizer or trainer.updater.get_optimizer("main")

    def _set(self, optimizer: Any, value: float) -> None:
        setattr(optimizer, self._attr, value)
        self._last = value

    def serialize(self, serializer: Any) -> None:
        """Write the number of calls to a serializer, or read it from one."""
        self._t = int(serializer("_t", self._t))
        nothing = float("nan")
        found = float(serializer("_last_value", nothing if self._last is None else self._last))
        self._last = None if found != found else found  # noqa: PLR0124  (NaN)


class ExponentialShift(_Shift):
    """Multiply by a rate at each call."""

    def __init__(
        self,
        attr: str,
        rate: float,
        init: float | None = None,
        target: float | None = None,
        optimizer: Any = None,
    ) -> None:
        if rate < 0:
            raise ValueError("ExponentialShift does not support negative rate")
        super().__init__(attr, init, target, optimizer)
        self._rate = rate

    def value_at(self, init: float, t: int) -> float:
        """Return init * rate^t."""
        return init * self._rate**t


class LinearShift(_Shift):
    """Move evenly from one value to another between two times."""

    def __init__(
        self,
        attr: str,
        value_range: Sequence[float],
        time_range: Sequence[int],
        optimizer: Any = None,
    ) -> None:
        super().__init__(attr, None, None, optimizer)
        self._values, self._times = value_range, time_range

    def value_at(self, init: float, t: int) -> float:
        """Return the value on the line, or at its ends."""
        (v1, v2), (t1, t2) = self._values, self._times
        share = min(max((t - t1) / (t2 - t1), 0.0), 1.0)
        return v1 + share * (v2 - v1)


class InverseShift(_Shift):
    """init * (1 + gamma t)^-power."""

    def __init__(
        self,
        attr: str,
        gamma: float,
        power: float,
        init: float | None = None,
        target: float | None = None,
        optimizer: Any = None,
    ) -> None:
        super().__init__(attr, init, target, optimizer)
        self._gamma, self._power = gamma, power

    def value_at(self, init: float, t: int) -> float:
        """Return init * (1 + gamma t)^-power."""
        return init * (1 + self._gamma * t) ** -self._power


class PolynomialShift(_Shift):
    """init * (1 - t / max_count)^rate."""

    def __init__(
        self,
        attr: str,
        rate: float,
        max_count: int,
        init: float | None = None,
        target: float | None = None,
        optimizer: Any = None,
    ) -> None:
        super().__init__(attr, init, target, optimizer)
        self._rate, self._count = rate, max_count

    def value_at(self, init: float, t: int) -> float:
        """Return init * (1 - t / max_count)^rate."""
        return init * max(1 - t / self._count, 0.0) ** self._rate


class StepShift(_Shift):
    """Multiply by gamma every `step` calls."""

    def __init__(
        self,
        attr: str,
        gamma: float,
        step: int,
        init: float | None = None,
        target: float | None = None,
        optimizer: Any = None,
    ) -> None:
        super().__init__(attr, init, target, optimizer)
        self._gamma, self._step = gamma, step

    def value_at(self, init: float, t: int) -> float:
        """Return init * gamma^(t // step)."""
        return init * self._gamma ** (t // self._step)


class MultistepShift(_Shift):
    """Multiply by gamma at given calls."""

    def __init__(
        self, attr: str, gamma: float, step_value: Sequence[int], init: float, optimizer: Any = None
    ) -> None:
        super().__init__(attr, init, None, optimizer)
        self._gamma, self._steps = gamma, sorted(step_value)

    def value_at(self, init: float, t: int) -> float:
        """Return init * gamma for each step that is passed."""
        return init * self._gamma ** sum(t >= step for step in self._steps)


class WarmupShift(_Shift):
    """Move evenly from a small value to the first one."""

    def __init__(
        self, attr: str, warmup_start: float, warmup_iter: int, init: float, optimizer: Any = None
    ) -> None:
        super().__init__(attr, init, None, optimizer)
        self._start, self._count = warmup_start, warmup_iter

    def value_at(self, init: float, t: int) -> float:
        """Return the value on the way, then the first one."""
        return self._start + (init - self._start) * min(t / self._count, 1.0)
