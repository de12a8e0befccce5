"""Reduce the learning rate when a metric has stopped improving."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...core.errors import ArgumentError, ArgumentTypeError
from ..groups import number
from ..optimizer import Optimizer
from .base import check_state, per_group


class ReduceLROnPlateau:
    """Multiply the rate by `factor` after more than `patience` epochs without improvement.

    mode             "min" or "max": which way the metric improves
    threshold        the least change that counts, relative ("rel") or absolute ("abs")
    cooldown         epochs after a reduction in which none are counted
    min_lr           lower bound of the rate, one number or one for each group
    eps              reductions smaller than this are not made

    >>> import weft as wf
    >>> w = wf.tensor([1.0], requires_grad=True)
    >>> optimizer = wf.optim.SGD([w], lr=0.1)
    >>> schedule = ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in [1.0, 1.0, 1.0]:
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.01]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(
                f"ReduceLROnPlateau takes an optimizer. Received: {type(optimizer).__name__}"
            )
        if not number("factor", factor) < 1.0:
            raise ArgumentError(f"factor must be less than 1. Received: {factor!r}")
        _check_choice("mode", mode, ("min", "max"))
        _check_choice("threshold_mode", threshold_mode, ("rel", "abs"))
        self.optimizer = optimizer
        self.mode, self.threshold_mode = mode, threshold_mode
        self.factor, self.threshold, self.eps = float(factor), float(threshold), float(eps)
        self.patience, self.cooldown = patience, cooldown
        self.min_lrs = per_group("min_lr", min_lr, optimizer)
        self.last_epoch = 0
        self.reset()

    def reset(self) -> None:
        """Forget the best value and start counting anew."""
        self.best = _worst(self.mode)
        self.num_bad_epochs = 0
        self.cooldown_counter = 0

    def step(self, metrics: Any) -> None:
        """Take the metric of an epoch; a NaN counts as no improvement."""
        value = float(metrics)
        self.last_epoch += 1
        if self.is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def is_better(self, value: float) -> bool:
        """Tell whether a value improves on the best so far by more than the threshold."""
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "abs":
            return sign * value > sign * self.best + self.threshold
        return sign * value > sign * self.best * (1.0 + sign * self.threshold)

    def _reduce(self) -> None:
        for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            reduced = max(group["lr"] * self.factor, least)
            if group["lr"] - reduced > self.eps:
                group["lr"] = reduced

    def get_last_lr(self) -> list[float]:
        """Return the current rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer; an infinite best value is None."""
        state = {name: value for name, value in self.__dict__.items() if name != "optimizer"}
        best = self.best if math.isfinite(self.best) else None  # JSON knows no infinity
        return {**state, "best": best, "min_lrs": list(self.min_lrs)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        check_state(self, state)
        self.__dict__.update(state)
        if state["best"] is None:
            self.best = _worst(self.mode)


def _worst(mode: str) -> float:
    return math.inf if mode == "min" else -math.inf


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArgumentError(f"{name} must be one of {choices}. Received: {value!r}")
