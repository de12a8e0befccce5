"""Average: follow the weights with an exponential moving average."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ...core.errors import ArgumentError
from ...optim import EMA, WeightAverage
from ..extension import PRIORITY_AVERAGE, Extension
from ..interrupts import INTERRUPTED

if TYPE_CHECKING:
    from ..trainer import Trainer


class Average(Extension):
    """Take the weights into an average after each update.

    average   a WeightAverage, e.g. EMA or SWA; or the decay of an EMA of the trainer's model
    keep      give the averages to the model at the end of the run

    Evaluate it by `Evaluator(loader, average=this)`, or inside `with this.applied():`.
    """

    trigger = (1, "iteration")
    priority = PRIORITY_AVERAGE

    def __init__(self, average: WeightAverage | float = 0.999, *, keep: bool = False) -> None:
        self.average = average if isinstance(average, WeightAverage) else None
        self._decay = average
        self.keep = keep
        self._pending: Mapping[str, Any] | None = None

    def initialize(self, trainer: Trainer) -> None:
        """Make the average of the trainer's model, if none was given."""
        if self.average is None:
            self.average = EMA(trainer.model, decay=self._decay, use_buffers=True)  # type: ignore[arg-type]  # a number, as the other case has an average
        if self._pending is not None:
            self.average.load_state_dict(self._pending)
            self._pending = None

    def __call__(self, trainer: Trainer) -> None:
        """Take in the current weights."""
        assert self.average is not None
        self.average.update()

    def applied(self) -> AbstractContextManager[Any]:
        """Return a context in which the model has the averaged weights."""
        if self.average is None:
            raise ArgumentError("the average is made when training starts")
        return self.average.applied()

    def finish(self, trainer: Trainer) -> None:
        """Give the averages to the model, if that is asked for and the run is complete."""
        if self.keep and self.average is not None and trainer.stop_reason != INTERRUPTED:
            self.average.copy_to_source()

    def state_dict(self) -> dict[str, Any]:
        """Return the averages."""
        return {"average": None if self.average is None else self.average.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self._pending = state["average"]
        if self.average is not None and self._pending is not None:
            self.average.load_state_dict(self._pending)
            self._pending = None
