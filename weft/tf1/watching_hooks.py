"""Hooks that watch: values that are printed, losses, steps a second, summaries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .graph import get_default_graph
from .hooks import (
    SecondOrStepTimer,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    needed_step,
    step_value,
)
from .summary import FileWriter, FileWriterCache, Summary

__all__ = [
    "LoggingTensorHook",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "StepCounterHook",
    "SummarySaverHook",
]

_log = logging.getLogger("tensorflow")


class LoggingTensorHook(SessionRunHook):
    """Prints the values of tensors every so many runs or seconds, or at the end."""

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[Mapping[str, Any]], str] | None = None,
    ) -> None:
        if (every_n_iter is None) == (every_n_secs is None) and not (
            at_end and every_n_iter is None
        ):
            raise ValueError("either at_end and/or exactly one of every_n_iter and every_n_secs")
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        named = tensors if isinstance(tensors, Mapping) else {str(_tag(x)): x for x in tensors}
        self._given = dict(named)
        self._formatter = formatter
        only_end = every_n_iter is None and every_n_secs is None
        self._timer = None if only_end else SecondOrStepTimer(every_n_secs, every_n_iter)
        self._at_end = at_end
        self._count = 0

    def begin(self) -> None:
        """Find the tensors."""
        graph = get_default_graph()
        self._tensors = {tag: graph.as_graph_element(x) for tag, x in self._given.items()}
        self._count = 0

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Ask for the values if they are printed."""
        self._due = self._timer is not None and self._timer.should_trigger_for_step(self._count)
        return SessionRunArgs(self._tensors) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Print them."""
        if self._due:
            self._print(run_values.results)
        self._count += 1

    def end(self, session: Any) -> None:
        """Print them once more."""
        if self._at_end:
            self._print(session.run(self._tensors))

    def _print(self, values: Mapping[str, Any]) -> None:
        seconds = None
        if self._timer is not None:
            seconds, _ = self._timer.update_last_triggered_step(self._count)
        if self._formatter is not None:
            _log.info("%s", self._formatter(values))
            return
        shown = ", ".join(f"{tag} = {values[tag]}" for tag in self._given)
        _log.info("%s" if seconds is None else f"%s ({seconds:.3f} sec)", shown)


def _tag(x: Any) -> Any:
    return x if isinstance(x, str) else x.name


class NanLossDuringTrainingError(RuntimeError):
    """The loss is not a number."""

    def __init__(self) -> None:
        super().__init__("NaN loss during training.")


class NanTensorHook(SessionRunHook):
    """Stops, or raises, when a loss is not a number."""

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss, self._fail = loss_tensor, fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the loss."""
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Look at it."""
        if np.isnan(run_values.results).any():
            _log.error("Model diverged with loss = NaN.")
            if self._fail:
                raise NanLossDuringTrainingError
            run_context.request_stop()


class StepCounterHook(SessionRunHook):
    """Prints, and writes down, how many steps a second takes."""

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: Any = None,
        summary_writer: Any = None,
    ) -> None:
        self._timer = SecondOrStepTimer(
            every_n_secs, None if every_n_secs is not None else every_n_steps
        )
        self._folder, self._writer = output_dir, summary_writer

    def begin(self) -> None:
        """Find the step."""
        self._step = needed_step(self)
        if self._writer is None and self._folder is not None:
            self._writer = FileWriterCache.get(self._folder)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Print if it is time."""
        step = step_value(run_context.session, self._step)
        if not self._timer.should_trigger_for_step(step):
            return
        seconds, steps = self._timer.update_last_triggered_step(step)
        if not seconds or steps is None:
            return
        rate = steps / seconds
        _log.info("global_step/sec: %g", rate)
        if self._writer is not None:
            value = Summary.Value(tag="global_step/sec", simple_value=rate)
            self._writer.add_summary(Summary([value]), step)


class SummarySaverHook(SessionRunHook):
    """Writes summaries every so many steps or seconds."""

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: Any = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._folder, self._writer = output_dir, summary_writer
        self._scaffold, self._summary = scaffold, summary_op

    def begin(self) -> None:
        """Find the step and the writer."""
        self._step = needed_step(self)
        if self._writer is None and self._folder is not None:
            self._writer = FileWriter(self._folder)
        self._count = -1

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Ask for the summaries if it is time."""
        summary = self._summary if self._scaffold is None else self._scaffold.summary_op
        step = step_value(run_context.session, self._step)
        self._due = summary is not None and self._timer.should_trigger_for_step(step)
        return SessionRunArgs(summary) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Write them."""
        if not self._due:
            return
        step = step_value(run_context.session, self._step)
        self._timer.update_last_triggered_step(step)
        found = run_values.results
        for content in found if isinstance(found, (list, tuple)) else [found]:
            if self._writer is not None:
                self._writer.add_summary(content, step)

    def end(self, session: Any) -> None:
        """Put everything into the file."""
        if self._writer is not None:
            self._writer.flush()
