"""The base of schedules.

Most schedules are chainable: from one step to the next they multiply the current rate, so that
several may act on the same optimizer, and a rate that the user changes stays changed. A jump to a
given epoch uses the closed form instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.modes import current_recorder, modes
from ..groups import number
from ..optimizer import Optimizer


class LRScheduler(ABC):
    """Base of schedules; a subclass gives `next_lr`, and `lr_at` if it has a closed form.

    last_epoch   -1 to begin; the number of steps already made to continue a run, in which case the
                 groups must hold `initial_lr`
    """

    # What a subclass computes with and need not save: it is given again when a run continues.
    _unsaved: tuple[str, ...] = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(
                f"{type(self).__name__} takes an optimizer. Received: {type(optimizer).__name__}"
            )
        self.optimizer = optimizer
        _keep_initial_rates(optimizer, last_epoch)
        self.base_lrs: list[float] = [g["initial_lr"] for g in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.begin()

    def begin(self) -> None:
        """Set the rates of the first epoch."""
        self.step()

    def rewind(self) -> None:
        """Go back to the time before the first epoch."""
        self.last_epoch = -1

    @abstractmethod
    def next_lr(self, lr: float, base: float) -> float:
        """Return the rate for `last_epoch`, given that of the step before and the initial one."""

    def lr_at(self, lr: float, base: float) -> float:
        """Return the rate for `last_epoch` after a jump; the same as `next_lr` by default."""
        return self.next_lr(lr, base)

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or jump to a given one, and set the rates."""
        if modes.interpreters and epoch is None and self._is_put_off():
            return
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        rule = self.next_lr if epoch is None else self.lr_at
        for index, group in enumerate(self.optimizer.param_groups):
            group["lr"] = rule(group["lr"], self._base(index))

    def _is_put_off(self) -> bool:
        """Leave a step to the end of each call, if one is recorded that does not need its rates."""
        recorder = current_recorder()
        if recorder is None or not type(self).__module__.startswith("weft."):  # a user's does more
            return False
        recorder.put_off(partial(LRScheduler.step, self), self, self.optimizer)
        return True

    def _base(self, index: int) -> float:
        """Return the initial rate of a group, also of one that was added later."""
        while len(self.base_lrs) <= index:
            group = self.optimizer.param_groups[len(self.base_lrs)]
            group.setdefault("initial_lr", group["lr"])
            self.base_lrs.append(group["initial_lr"])
        return self.base_lrs[index]

    def get_last_lr(self) -> list[float]:
        """Return the current rate of each group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer and functions."""
        skipped = self._unsaved
        state = {k: v for k, v in self.__dict__.items() if k not in skipped and not callable(v)}
        return {name: list(v) if isinstance(v, list) else v for name, v in state.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned; the rates themselves are the optimizer's state."""
        check_state(self, state)
        self.__dict__.update({n: list(v) if isinstance(v, list) else v for n, v in state.items()})


def check_state(schedule: Any, state: Any) -> None:
    """Raise unless a state has the entries that this kind of schedule saves."""
    wanted = schedule.state_dict().keys()
    if not isinstance(state, Mapping) or wanted != state.keys():
        found = sorted(state) if isinstance(state, Mapping) else type(state).__name__
        raise ArgumentError(
            f"this is not the state of a {type(schedule).__name__}: expected {sorted(wanted)}. "
            f"Received: {found}"
        )


def per_group(name: str, value: Any, optimizer: Optimizer) -> list[float]:
    """Return one number for each parameter group, from one number or a list."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [number(name, value)] * count
    return [number(name, item) for item in same_count(name, value, count)]


def same_count(name: str, values: Sequence[Any], count: int) -> list[Any]:
    """Return a sequence as a list if it has one entry for each group."""
    if len(values) != count:
        raise ArgumentError(f"{name} has {len(values)} entries for {count} parameter groups")
    return list(values)


def _keep_initial_rates(optimizer: Optimizer, last_epoch: int) -> None:
    for index, group in enumerate(optimizer.param_groups):
        if "lr" not in group:
            raise ArgumentError(f"group {index} of the optimizer has no learning rate 'lr'")
        if last_epoch == -1:
            group.setdefault("initial_lr", group["lr"])
        elif "initial_lr" not in group:
            raise ArgumentError(
                f"last_epoch={last_epoch} continues a schedule, but group {index} holds no "
                "'initial_lr'; load the optimizer's state first"
            )
