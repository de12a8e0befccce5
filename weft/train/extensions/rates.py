"""Learning rates: step a schedule, and report the rate."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ...core.errors import ArgumentTypeError
from ..extension import PRIORITY_EDITOR, PRIORITY_WRITER, Extension
from ..summary import scalar_of

if TYPE_CHECKING:
    from ..trainer import Trainer


class LearningRate(Extension):
    """Report the learning rate that the iteration used, as "lr" (with a number for each group)."""

    trigger = (1, "iteration")
    priority = PRIORITY_WRITER

    def __call__(self, trainer: Trainer) -> None:
        """Put the rate of each group into the observation."""
        groups = trainer.updater.optimizer.param_groups
        for index, group in enumerate(groups):
            key = "lr" if len(groups) == 1 else f"lr/{group.get('name', index)}"
            trainer.observation[key] = float(group["lr"])


class Schedule(Extension):
    """Step a learning-rate schedule when the trigger fires.

    schedule   from weft.optim.lr
    metric     the observed value to give to schedules that look at one (ReduceLROnPlateau)

    An iteration is stepped after its update, so the first one uses the schedule's initial rate.
    """

    trigger = (1, "epoch")
    priority = PRIORITY_EDITOR
    _saved = ("schedule",)

    def __init__(self, schedule: Any, *, metric: str | None = None) -> None:
        if not hasattr(schedule, "step") or not hasattr(schedule, "state_dict"):
            raise ArgumentTypeError(
                f"a schedule has step() and state_dict(). Received: {type(schedule).__name__}"
            )
        self.schedule = schedule
        self.metric = metric
        self._warned = False

    def __call__(self, trainer: Trainer) -> None:
        """Step, with the metric if there is one."""
        if self.metric is None:
            self.schedule.step()
            return
        value = scalar_of(trainer.observation.get(self.metric))
        if value is not None:
            self.schedule.step(value)
        elif not self._warned:
            self._warned = True
            warnings.warn(
                f"Schedule: {self.metric!r} was not observed; there are: "
                f"{', '.join(trainer.observation)}",
                stacklevel=2,
            )
