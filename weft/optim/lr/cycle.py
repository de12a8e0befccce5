"""Cycles of the learning rate and, against it, the momentum (Smith 2017, 2018)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...core.errors import ArgumentError
from ..groups import number, positive_int, share
from ..optimizer import Optimizer
from .base import LRScheduler, per_group


class Phase(NamedTuple):
    """A stretch of the one-cycle policy: where it ends and what it goes from and to."""

    end: float
    lr: tuple[str, str]
    momentum: tuple[str, str]


RISE = (("initial", "top"), ("high", "low"))
FALL = (("top", "initial"), ("low", "high"))
DIE_OUT = (("initial", "least"), ("high", "high"))
PLUNGE = (("top", "least"), ("low", "high"))


class OneCycleLR(LRScheduler):
    """Rise to `max_lr`, then fall far below the start, once (Smith & Topin 2018).

    The length is `total_steps`, or `epochs * steps_per_epoch`; step it after every batch. With
    `cycle_momentum`, momentum (or the first beta) moves the other way.
    """

    def __init__(  # noqa: PLR0913, PLR0917  (PyTorch's signature)
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if anneal_strategy not in CURVES:
            raise ArgumentError(
                f"anneal_strategy must be 'cos' or 'linear'. Received: {anneal_strategy!r}"
            )
        self.anneal_strategy = anneal_strategy
        self.pct_start = share("pct_start", pct_start)
        self.three_phase = three_phase
        tops = per_group("max_lr", max_lr, optimizer)
        self.levels = [_rate_levels(top, div_factor, final_div_factor) for top in tops]
        self.momentum = _Momentum(optimizer, cycle_momentum, base_momentum, max_momentum)
        if last_epoch == -1:
            for group, level in zip(optimizer.param_groups, self.levels, strict=True):
                group["initial_lr"] = group["lr"] = level["initial"]
        super().__init__(optimizer, last_epoch)

    _unsaved = ("optimizer", "momentum")

    def step(self, epoch: float | None = None) -> None:
        """Go to the next batch, or to a given one, and set rates and momentum."""
        position = self.last_epoch + 1 if epoch is None else int(epoch)
        if position > self.total_steps:
            raise ArgumentError(
                f"OneCycleLR was made for {self.total_steps} steps; this would be step {position}"
            )
        self.last_epoch = position
        phase, share = self._phase()
        curve = CURVES[self.anneal_strategy]
        for group, level in zip(self.optimizer.param_groups, self.levels, strict=True):
            group["lr"] = curve(level[phase.lr[0]], level[phase.lr[1]], share)
        self.momentum.set(lambda m: curve(m[phase.momentum[0]], m[phase.momentum[1]], share))

    def next_lr(self, lr: float, base: float) -> float:
        """Return the current rate: `step` sets all of them."""
        return lr

    def phases(self) -> list[Phase]:
        """Return the phases with the steps at which they end."""
        peak = self.pct_start * self.total_steps - 1
        last = self.total_steps - 1
        if self.three_phase:
            return [Phase(peak, *RISE), Phase(2 * peak, *FALL), Phase(last, *DIE_OUT)]
        return [Phase(peak, *RISE), Phase(last, *PLUNGE)]

    def _phase(self) -> tuple[Phase, float]:
        """Return the current phase and the share of it that has passed."""
        start, phases = 0.0, self.phases()
        for phase in phases:
            if self.last_epoch <= phase.end or phase is phases[-1]:
                length = phase.end - start
                return phase, (self.last_epoch - start) / length if length else 1.0
            start = phase.end
        raise AssertionError("the last phase always matches")


class CyclicLR(LRScheduler):
    """Move between `base_lr` and `max_lr` in triangles (Smith 2017); step it after every batch.

    mode        "triangular", "triangular2" (each cycle half as high) or "exp_range" (the height is
                multiplied by gamma**iteration)
    scale_fn    a function of the cycle or iteration (`scale_mode`) in place of a mode; not saved
    """

    def __init__(  # noqa: PLR0913, PLR0917  (PyTorch's signature)
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if scale_fn is None and mode not in SCALES:
            raise ArgumentError(f"mode must be one of {', '.join(SCALES)}. Received: {mode!r}")
        if scale_mode not in ("cycle", "iterations"):
            raise ArgumentError(
                f"scale_mode must be 'cycle' or 'iterations'. Received: {scale_mode!r}"
            )
        self.step_size_up = positive_int("step_size_up", step_size_up)
        down = step_size_up if step_size_down is None else step_size_down
        self.step_size_down = positive_int("step_size_down", down)
        self.mode, self.gamma = mode, number("gamma", gamma)
        self.scale_fn = scale_fn
        self.scale_mode: str = scale_mode if scale_fn is not None else SCALES[mode]
        self.max_lrs = per_group("max_lr", max_lr, optimizer)
        self.momentum = _Momentum(optimizer, cycle_momentum, base_momentum, max_momentum)
        bases = per_group("base_lr", base_lr, optimizer)
        if last_epoch == -1:
            for group, base in zip(optimizer.param_groups, bases, strict=True):
                group["initial_lr"] = group["lr"] = base
        super().__init__(optimizer, last_epoch)

    _unsaved = ("optimizer", "momentum", "scale_fn")

    def step(self, epoch: float | None = None) -> None:
        """Go to the next batch, or to a given one, and set rates and momentum."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        height = self._height()
        groups = zip(self.optimizer.param_groups, self.base_lrs, self.max_lrs, strict=True)
        for group, base, top in groups:
            group["lr"] = base + (top - base) * height
        self.momentum.set(lambda m: m["high"] - (m["high"] - m["low"]) * height)

    def next_lr(self, lr: float, base: float) -> float:
        """Return the current rate: `step` sets all of them."""
        return lr

    def _height(self) -> float:
        """Return the height of the triangle at this step, times the scale of its cycle."""
        length = self.step_size_up + self.step_size_down
        cycle, position = divmod(self.last_epoch, length)
        up = position / self.step_size_up
        down = (length - position) / self.step_size_down
        return min(up, down) * self._scale(cycle + 1)

    def _scale(self, cycle: int) -> float:
        argument = cycle if self.scale_mode == "cycle" else self.last_epoch
        if self.scale_fn is not None:
            return self.scale_fn(argument)
        if self.mode == "triangular2":
            return 1.0 / 2.0 ** (cycle - 1)
        return float(self.gamma**argument) if self.mode == "exp_range" else 1.0


SCALES = {"triangular": "cycle", "triangular2": "cycle", "exp_range": "iterations"}


class _Momentum:
    """The momentum of each group, wherever the optimizer keeps it, between two levels."""

    def __init__(self, optimizer: Optimizer, active: bool, low: Any, high: Any) -> None:
        self._optimizer = optimizer
        self._levels: list[dict[str, float]] = []
        if not active:
            return
        if not {"momentum", "betas"} & optimizer.defaults.keys():
            raise ArgumentError(
                f"{type(optimizer).__name__} has neither momentum nor betas to cycle; pass "
                "cycle_momentum=False"
            )
        lows = per_group("base_momentum", low, optimizer)
        highs = per_group("max_momentum", high, optimizer)
        self._levels = [{"low": a, "high": b} for a, b in zip(lows, highs, strict=True)]

    def set(self, level_of: Callable[[Mapping[str, float]], float]) -> None:
        for group, levels in zip(self._optimizer.param_groups, self._levels, strict=False):
            value = level_of(levels)
            if "betas" in group:
                group["betas"] = (value, *group["betas"][1:])
            else:
                group["momentum"] = value


def _total_steps(total: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total is not None:
        return positive_int("total_steps", total)
    if epochs is None or steps_per_epoch is None:
        raise ArgumentError("OneCycleLR needs total_steps, or epochs and steps_per_epoch")
    return positive_int("epochs", epochs) * positive_int("steps_per_epoch", steps_per_epoch)


def _rate_levels(top: float, div_factor: float, final_div_factor: float) -> dict[str, float]:
    initial = top / div_factor
    return {"top": top, "initial": initial, "least": initial / final_div_factor}


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2.0 * (1.0 + math.cos(math.pi * share))


def _line(start: float, end: float, share: float) -> float:
    return start + (end - start) * share


CURVES = {"cos": _cosine, "linear": _line}
