"""Checkpoint: save everything that a resumed run needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...distributed import DistributedCheckpointManager
from ...io import CheckpointManager
from ..extension import PRIORITY_SAVER, Extension
from ..summary import scalars_of

if TYPE_CHECKING:
    from ..trainer import Trainer


class Checkpoint(Extension):
    """Save model, optimizer, position in the data, random numbers and extensions.

    directory   within the output directory
    keep_last   how many of the newest to keep (None: all)
    keep_best   how many of the best by `metric` to keep besides
    metric      an observed value, e.g. "val/loss"; `mode` says which way it improves

    It saves when its trigger fires and at the end of every run that ends without an error, also
    after Ctrl-C. `trainer.run(resume="auto")` continues from the latest good one.
    """

    trigger = (1, "epoch")
    priority = PRIORITY_SAVER

    def __init__(
        self,
        directory: str | Path = "checkpoints",
        *,
        keep_last: int | None = 3,
        keep_best: int | None = 0,
        metric: str | None = None,
        mode: Literal["min", "max"] = "min",
    ) -> None:
        self.directory = Path(directory)
        self._options: dict[str, Any] = {
            "keep_last": keep_last,
            "keep_best": keep_best,
            "metric": metric,
            "mode": mode,
        }
        CheckpointManager(self.directory, **self._options)  # so that a mistake is found at once
        self._saved_at: int | None = None

    def manager(self, trainer: Trainer) -> CheckpointManager:
        """Return the manager of the checkpoints of a trainer: of all processes, if they train."""
        together = getattr(trainer.updater, "parallel", None) is not None
        kind = DistributedCheckpointManager if together else CheckpointManager
        return kind(trainer.out_path(self.directory), **self._options)

    def initialize(self, trainer: Trainer) -> None:
        """Note where the run begins: there is nothing new to save before its first iteration."""
        self._saved_at = trainer.iteration

    def __call__(self, trainer: Trainer) -> None:
        """Save."""
        self._saved_at = trainer.iteration
        if getattr(trainer.updater, "writes", True):
            self.manager(trainer).save(
                trainer.iteration, trainer.state_dict(), scalars_of(trainer.observation)
            )

    def finish(self, trainer: Trainer) -> None:
        """Save the end of the run if that has not been done."""
        if self._saved_at != trainer.iteration:
            self(trainer)

    def load_checkpoint(self, trainer: Trainer, source: Any) -> Mapping[str, Any] | None:
        """Return the state in a checkpoint: of a path, or the latest good one for "auto"."""
        manager = self.manager(trainer)
        path = manager.latest() if source == "auto" else Path(source)
        if path is None:
            return None
        state: Mapping[str, Any]
        if isinstance(manager, DistributedCheckpointManager):  # of what is spread, its own part
            state = manager.load(path, like=trainer.state_dict())
        else:
            state = manager.load(path)
        return state
