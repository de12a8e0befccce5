"""Schedules made of schedules: one after another, or several at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.errors import ArgumentError
from ..optimizer import Optimizer
from .base import LRScheduler, check_state


class SequentialLR(LRScheduler):
    """Follow one schedule until a milestone, then the next, each from its own beginning.

    >>> import weft as wf
    >>> from weft.optim.lr import ExponentialLR, LinearLR
    >>> optimizer = wf.optim.SGD([wf.tensor([1.0], requires_grad=True)], lr=1.0)
    >>> warmup = LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> schedule = SequentialLR(optimizer, [warmup, ExponentialLR(optimizer, 0.1)], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     schedule.step()
    >>> rates
    [0.5, 0.75, 1.0, 0.1]
    """

    _unsaved = ("optimizer", "schedulers")

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        self.schedulers = _checked(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1 or list(milestones) != sorted(milestones):
            raise ArgumentError(
                f"{len(schedulers)} schedules need {len(schedulers) - 1} rising milestones. "
                f"Received: {list(milestones)}"
            )
        self.milestones = list(milestones)
        super().__init__(optimizer, last_epoch)

    def begin(self) -> None:
        """Undo what the schedules did when they were made; let only the first one begin."""
        self.last_epoch += 1
        if self.last_epoch > 0:
            return
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for schedule in self.schedulers:
            schedule.rewind()
        self.schedulers[0].begin()

    def step(self, epoch: float | None = None) -> None:
        """Step the schedule whose turn it is."""
        if epoch is not None:
            raise ArgumentError("SequentialLR goes step by step and cannot jump to an epoch")
        self.last_epoch += 1
        index = bisect_right(self.milestones, self.last_epoch)
        entering = index > 0 and self.milestones[index - 1] == self.last_epoch
        self.schedulers[index].step(*([0] if entering else []))

    def next_lr(self, lr: float, base: float) -> float:
        """Return the current rate: the schedules set it."""
        return lr

    def state_dict(self) -> dict[str, Any]:
        """Return the position and the states of all schedules."""
        return {**super().state_dict(), "schedulers": [s.state_dict() for s in self.schedulers]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        check_state(self, state)
        _load_all(self.schedulers, state["schedulers"])
        self.milestones = list(state["milestones"])
        self.base_lrs = list(state["base_lrs"])
        self.last_epoch = int(state["last_epoch"])


class ChainedScheduler:
    """Step several schedules together; their factors multiply."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if not schedulers:
            raise ArgumentError("ChainedScheduler needs at least one schedule. Received: none")
        self.optimizer = optimizer or schedulers[0].optimizer
        self.schedulers = _checked(schedulers, self.optimizer)

    def step(self) -> None:
        """Step all schedules in order."""
        for schedule in self.schedulers:
            schedule.step()

    def get_last_lr(self) -> list[float]:
        """Return the current rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all schedules."""
        return {"schedulers": [schedule.state_dict() for schedule in self.schedulers]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        check_state(self, state)
        _load_all(self.schedulers, state["schedulers"])


def _checked(schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> list[LRScheduler]:
    if not schedulers:
        raise ArgumentError("at least one schedule is needed. Received: none")
    for position, schedule in enumerate(schedulers):
        if not isinstance(schedule, LRScheduler):
            raise ArgumentError(
                f"schedule {position} cannot be combined. Received: {type(schedule).__name__}"
            )
        if schedule.optimizer is not optimizer:
            raise ArgumentError(f"schedule {position} belongs to another optimizer")
    return list(schedulers)


def _load_all(schedulers: Sequence[LRScheduler], states: Sequence[Mapping[str, Any]]) -> None:
    if len(states) != len(schedulers):
        raise ArgumentError(f"{len(schedulers)} schedules, but {len(states)} saved states")
    for schedule, state in zip(schedulers, states, strict=True):
        schedule.load_state_dict(state)
