"""ProgressBar: how far training is, how fast, and when it will be done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.imports import require
from ..extension import PRIORITY_READER, Extension
from ..summary import scalar_of
from ..triggers import Stop

if TYPE_CHECKING:
    from ..trainer import Trainer


class ProgressBar(Extension):
    """Show bars for the whole run and the current epoch, with speed and values (needs rich).

    keys        observed values to show beside the bar of the epoch
    console     a rich Console (default: the standard output)
    transient   remove the bars at the end

    Lines that other extensions print appear above the bars. Where the output is not a terminal,
    only the final state is printed.
    """

    priority = PRIORITY_READER

    def __init__(
        self,
        keys: Sequence[str] = ("train/loss",),
        *,
        console: Any = None,
        transient: bool = False,
    ) -> None:
        require("rich.progress", "progress", "ProgressBar")
        self.keys = (keys,) if isinstance(keys, str) else tuple(keys)
        self.console = console
        self.transient = transient
        self._progress: Any = None
        self._write: Any = None
        self._tasks: tuple[Any, Any] = (None, None)
        self._values: dict[str, float] = {}
        self._first = 0

    def initialize(self, trainer: Trainer) -> None:
        """Show the bars and print through their console."""
        self._first, self._values = trainer.iteration, {}
        self._progress = progress = _make_progress(self.console, self.transient)
        self._tasks = (
            progress.add_task("total", total=_total(trainer), note=""),
            progress.add_task("epoch", total=trainer.updater.epoch_iterations, note=""),
        )
        self._trainer, self._write = trainer, trainer.write
        trainer.write = self._print
        progress.start()
        self.observe(trainer)

    def observe(self, trainer: Trainer) -> None:
        """Move the bars; drawing happens in a thread, a few times a second."""
        for key in self.keys:
            value = scalar_of(trainer.observation.get(key))
            if value is not None:
                self._values[key] = value
        total, epoch = self._tasks
        self._progress.update(total, completed=_done(trainer), note=self._speed(trainer))
        self._progress.update(
            epoch,
            completed=_done_in_epoch(trainer),
            description=f"epoch {_current_epoch(trainer)}",
            note="  ".join(f"{key} {value:.4g}" for key, value in self._values.items()),
        )

    def _speed(self, trainer: Trainer) -> str:
        seconds = self._progress.tasks[0].elapsed or 0.0
        done = trainer.iteration - self._first
        return f"{done / seconds:.1f} it/s" if done and seconds else ""

    def _print(self, text: str) -> None:
        self._progress.console.print(
            text, markup=False, highlight=False, soft_wrap=True, crop=False
        )

    def finalize(self) -> None:
        """Stop drawing and give printing back."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
            self._trainer.write = self._write


def _make_progress(console: Any, transient: bool) -> Any:
    rich = require("rich.progress", "progress", "ProgressBar")
    return rich.Progress(
        rich.TextColumn("{task.description}", justify="right"),
        rich.BarColumn(bar_width=None),
        rich.TaskProgressColumn(),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
        rich.TextColumn("{task.fields[note]}"),
        console=console,
        transient=transient,
    )


def _total(trainer: Trainer) -> float | None:
    """Return the length of the run in its own unit, if it has an end."""
    return float(trainer.stop.count) if isinstance(trainer.stop, Stop) else None


def _done(trainer: Trainer) -> float:
    stop = trainer.stop
    in_epochs = isinstance(stop, Stop) and stop.unit == "epoch"
    return trainer.epoch_detail if in_epochs else trainer.iteration


def _done_in_epoch(trainer: Trainer) -> float:
    """Return the iterations done in the epoch; at its end the bar is full, not empty."""
    updater = trainer.updater
    if updater.iteration and updater.feed.index == 0:
        return float(updater.epoch_iterations or 0)
    return -(-updater.feed.index // updater.accumulate)


def _current_epoch(trainer: Trainer) -> int:
    at_end = trainer.iteration > 0 and trainer.updater.feed.index == 0
    return trainer.epoch if at_end else trainer.epoch + 1
