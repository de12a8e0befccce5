"""CheckpointManager: the checkpoints of one run, in one directory.

Each is a directory `step-00000100`. They are ordered by when they were written, not by step: who
goes back to an earlier step, or starts anew in the same directory, continues from what was written
last. One process writes; any number may read.
"""

from __future__ import annotations

import math
import operator
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, SupportsIndex

from ..core.errors import ArgumentError, ArgumentTypeError
from .disk import StrPath, recover, remove_directory, resolve_target, sweep
from .errors import CheckpointError, CheckpointWarning, FileFormatError, ReadError
from .state import load_state, read_manifest, save_state, verify

_NAME: Final = re.compile(r"step-(\d{8,})")
_PREVIOUS: Final = re.compile(r"\.(step-\d{8,})\.previous")


class Checkpoint(NamedTuple):
    """One saved checkpoint: where it is, its step, its metrics, and its place in the order."""

    path: Path
    step: int
    metrics: dict[str, float]
    sequence: int


class CheckpointManager:
    """Save, find, keep and remove the checkpoints of a run.

    After each save only the `keep_last` newest and the `keep_best` best by `metric` are kept (None
    keeps all); `mode` says whether small ("min") or large ("max") values are better.

    >>> import tempfile
    >>> manager = CheckpointManager(tempfile.mkdtemp(), keep_last=1, keep_best=1, metric="loss")
    >>> for step, loss in [(10, 0.5), (20, 0.3), (30, 0.4)]:
    ...     _ = manager.save(step, {"step": step}, {"loss": loss})
    >>> [checkpoint.step for checkpoint in manager.checkpoints()]
    [20, 30]
    >>> manager.load(), manager.load(manager.best())
    ({'step': 30}, {'step': 20})
    """

    def __init__(
        self,
        directory: StrPath,
        *,
        keep_last: int | None = 3,
        keep_best: int | None = 0,
        metric: str | None = None,
        mode: Literal["min", "max"] = "min",
    ) -> None:
        self.directory = resolve_target(directory)
        self.keep_last = _checked_count("keep_last", keep_last, 1)
        self.keep_best = _checked_count("keep_best", keep_best, 0)
        self.metric = metric
        self.mode = mode
        if mode not in ("min", "max"):
            raise ArgumentError(f"mode must be 'min' or 'max'. Received: {mode!r}")
        if metric is None and keep_best != 0:
            raise ArgumentError("keep_best needs the name of a metric, e.g. metric='val/loss'")

    def save(
        self, step: SupportsIndex, state: Any, metrics: Mapping[str, Any] | None = None
    ) -> Path:
        """Write a checkpoint, remove those no longer kept, and return its path.

        An error (a full disk, say) leaves all earlier checkpoints as they are.
        """
        path, metadata = self.next_save(step, metrics)
        save_state(path, state, metadata)
        self.remove_others(path)
        return path

    def next_save(
        self, step: SupportsIndex, metrics: Mapping[str, Any] | None = None
    ) -> tuple[Path, dict[str, Any]]:
        """Return where the next checkpoint goes, and the metadata by which it is found again."""
        number = _checked_step(step)
        recover(self.directory)
        return self.directory / f"step-{number:08d}", {
            "step": number,
            "metrics": _checked_metrics(metrics),
            "sequence": 1 + max((known.sequence for known in self._scan({})), default=0),
        }

    def checkpoints(self) -> list[Checkpoint]:
        """Return what is saved, oldest first; unreadable ones are left out with a warning."""
        problems: dict[Path, str] = {}
        found = self._scan(problems)
        _warn_skipped(problems)
        return found

    def latest(self) -> Path | None:
        """Return the newest good checkpoint; damaged ones are skipped with a warning."""
        return _first_good(reversed(self.checkpoints()))

    def best(self) -> Path | None:
        """Return the good checkpoint with the best metric, the newest of equals."""
        if self.metric is None:
            raise ArgumentError("best() needs CheckpointManager(..., metric='name')")
        return _first_good(self._ranked(self.checkpoints()))

    def load(self, path: StrPath | None = None) -> Any:
        """Return the state saved at a path, by default the latest good one."""
        found = self.latest() if path is None else path
        if found is None:
            raise CheckpointError(f"there is no good checkpoint in {self.directory}")
        return load_state(found)

    # -- what is there -----------------------------------------------------------------------------

    def _scan(self, problems: dict[Path, str]) -> list[Checkpoint]:
        found = []
        for path in self._candidates():
            try:
                found.append(_read_checkpoint(path))
            except (FileFormatError, ReadError) as error:
                if path.is_dir():  # else the writer has just removed it
                    problems[path] = str(error)
        return sorted(found, key=lambda checkpoint: (checkpoint.sequence, checkpoint.step))

    def _candidates(self) -> list[Path]:
        """Return all directories of checkpoints, with those whose replacement was interrupted."""
        if not self.directory.is_dir():
            return []
        try:
            names = sorted(entry.name for entry in self.directory.iterdir() if entry.is_dir())
        except OSError as error:
            raise ReadError(f"cannot read {self.directory}: {error}") from error
        present = {name for name in names if _NAME.fullmatch(name)}
        interrupted = {
            name
            for name in names
            if (match := _PREVIOUS.fullmatch(name)) and match[1] not in present
        }
        return [self.directory / name for name in sorted(present | interrupted)]

    def _ranked(self, checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
        """Return the checkpoints that have the metric, best first; NaN is no value."""
        sign = 1.0 if self.mode == "min" else -1.0
        scored = [
            (sign * value, -checkpoint.sequence, checkpoint)
            for checkpoint in checkpoints
            if not math.isnan(value := checkpoint.metrics.get(self.metric or "", math.nan))
        ]
        return [checkpoint for _, _, checkpoint in sorted(scored, key=operator.itemgetter(0, 1))]

    # -- removing ----------------------------------------------------------------------------------

    def remove_others(self, newest: Path) -> None:
        """Remove the checkpoints that are kept no longer once the newest is there."""
        if self.keep_last is None:
            return
        checkpoints = self._scan({})
        kept = {newest, *(checkpoint.path for checkpoint in checkpoints[-self.keep_last :])}
        kept.update(checkpoint.path for checkpoint in self._ranked(checkpoints)[: self.keep_best])
        for checkpoint in checkpoints:
            if checkpoint.path not in kept:
                _remove(checkpoint.path)
        sweep(self.directory)


def _read_checkpoint(path: Path) -> Checkpoint:
    metadata = read_manifest(path)
    step, metrics, sequence = (metadata.get(key) for key in ("step", "metrics", "sequence"))
    if not (isinstance(step, int) and isinstance(metrics, dict) and isinstance(sequence, int)):
        raise CheckpointError(f"{path} was not written by a CheckpointManager")
    return Checkpoint(path, step, metrics, sequence)


def _first_good(checkpoints: Iterable[Checkpoint]) -> Path | None:
    for checkpoint in checkpoints:
        try:
            verify(checkpoint.path)
        except (FileFormatError, ReadError) as error:
            if checkpoint.path.is_dir():  # else the writer has just removed it
                _warn_skipped({checkpoint.path: str(error)})
        else:
            return checkpoint.path
    return None


def _warn_skipped(problems: Mapping[Path, str]) -> None:
    for path, reason in problems.items():
        warnings.warn(f"skipped the checkpoint {path.name}: {reason}", CheckpointWarning, 3)


def _remove(path: Path) -> None:
    try:
        remove_directory(path)
    except OSError as error:
        warnings.warn(f"cannot remove the old checkpoint {path}: {error}", CheckpointWarning, 4)


# -- arguments -------------------------------------------------------------------------------------


def _checked_count(name: str, value: Any, least: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentError(
            f"{name} must be an integer from {least} on, or None for all. Received: {value!r}"
        )
    return value


def _checked_step(step: SupportsIndex) -> int:
    try:
        number = operator.index(step)
    except TypeError:
        raise ArgumentTypeError(f"step must be an integer. Received: {step!r}") from None
    if number < 0:
        raise ArgumentError(f"step must not be negative. Received: {number}")
    return number


def _checked_metrics(metrics: Mapping[str, Any] | None) -> dict[str, float]:
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping):
        raise ArgumentTypeError(
            f"metrics must be a dictionary of numbers. Received: {type(metrics).__name__}"
        )
    try:
        return {str(name): float(value) for name, value in metrics.items()}
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"metrics must be numbers: {error}. Received: {metrics!r}"
        ) from None
