"""Hooks: what happens around the runs of a monitored session."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .graph import Graph, get_default_graph
from .keys import GraphKeys
from .saver import Saver

__all__ = [
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "FeedFnHook",
    "FinalOpsHook",
    "SecondOrStepTimer",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "StopAtStepHook",
]

_log = logging.getLogger("tensorflow")


class SessionRunArgs(NamedTuple):
    """What a hook adds to a run."""

    fetches: Any
    feed_dict: Any = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """What a run gave for what a hook added."""

    results: Any
    options: Any = None
    run_metadata: Any = None


class SessionRunContext:
    """What hooks know of a run, and how they stop the session."""

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        self.original_args = original_args
        self.session = session
        self._stop = False

    @property
    def stop_requested(self) -> bool:
        """Tell whether a stop was asked for."""
        return self._stop

    def request_stop(self) -> None:
        """Let this run be the last one."""
        self._stop = True


class SessionRunHook:
    """What happens around runs; classes of programs override its methods."""

    def begin(self) -> None:
        """Add operations, before the graph is finished."""

    def after_create_session(self, session: Any, coord: Any) -> None:
        """See the session once its variables have values."""

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Return what is to be fetched and fed besides."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """See what was fetched."""

    def end(self, session: Any) -> None:
        """See the session before it is closed."""


def global_step_of(graph: Graph | None = None) -> Any:
    """Return the variable that counts the steps of a graph; None if there is none."""
    found = graph or get_default_graph()
    listed = found.get_collection(GraphKeys.GLOBAL_STEP)
    if listed:
        return listed[-1]
    variables = found.get_collection(GraphKeys.GLOBAL_VARIABLES)
    return next((v for v in variables if v.name == "global_step:0"), None)


def step_value(session: Any, step: Any) -> int:
    """Return the number of steps that were made in a session."""
    value = session.read_variable(step) if hasattr(step, "initializer") else session.run(step)
    return int(value)


def needed_step(owner: object) -> Any:
    """Return the variable that counts the steps; say what to do if there is none."""
    found = global_step_of()
    if found is None:
        raise RuntimeError(
            f"Global step should be created to use {type(owner).__name__}: call "
            "tf.train.get_or_create_global_step()"
        )
    return found


class SecondOrStepTimer:
    """Tells when something is due: after so many steps, or so many seconds."""

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if (every_secs is None) == (every_steps is None):
            raise ValueError("exactly one of every_secs and every_steps should be provided.")
        self._seconds, self._steps = every_secs, every_steps
        self.reset()

    def reset(self) -> None:
        """Begin anew: it is due at once."""
        self._last: tuple[float, int] | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Tell whether it is due at a step."""
        if self._last is None:
            return True
        then, last = self._last
        if step == last:
            return False
        if self._seconds is not None:
            return time.monotonic() >= then + self._seconds
        return step >= last + (self._steps or 1)

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Note that it happened; return the seconds and the steps since the last time."""
        now, before = time.monotonic(), self._last
        self._last = (now, step)
        return (None, None) if before is None else (now - before[0], step - before[1])

    def last_triggered_step(self) -> int | None:
        """Return when it happened last."""
        return None if self._last is None else self._last[1]


class StopAtStepHook(SessionRunHook):
    """Stops after so many steps, or at a step."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            raise ValueError("Exactly one of num_steps and last_step must be specified.")
        self._count, self._last = num_steps, last_step

    def begin(self) -> None:
        """Find the step."""
        self._step = needed_step(self)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """See from where the steps are counted."""
        if self._last is None:
            self._last = step_value(session, self._step) + (self._count or 0)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Stop if it is time."""
        if step_value(run_context.session, self._step) >= (self._last or 0):
            run_context.request_stop()


class CheckpointSaverListener:
    """What happens around the saving of checkpoints."""

    def begin(self) -> None:
        """Be there before the session."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Be there before a checkpoint is written."""

    def after_save(self, session: Any, global_step_value: int) -> Any:
        """Be there after it was."""

    def end(self, session: Any, global_step_value: int) -> None:
        """Be there at the end."""


class CheckpointSaverHook(SessionRunHook):
    """Saves checkpoints every so many steps or seconds, at the beginning and at the end."""

    def __init__(
        self,
        checkpoint_dir: Any,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Any = None,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._folder = str(os.fspath(checkpoint_dir))
        self._path = os.path.join(self._folder, checkpoint_basename)
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._saver, self._scaffold = saver, scaffold
        self._listeners = list(listeners or ())

    def begin(self) -> None:
        """Find the step and the saver."""
        self._step = needed_step(self)
        os.makedirs(self._folder, exist_ok=True)
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Save what the session begins with."""
        step = step_value(session, self._step)
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Save if it is time."""
        step = step_value(run_context.session, self._step)
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        """Save what is left."""
        step = step_value(session, self._step)
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Any, step: int) -> bool:
        """Save; return whether a listener wants to stop."""
        _log.info("Saving checkpoints for %d into %s.", step, self._path)
        for listener in self._listeners:
            listener.before_save(session, step)
        self._chosen_saver(session).save(session, self._path, global_step=step)
        answers = [bool(listener.after_save(session, step)) for listener in self._listeners]
        return any(answers)

    def _chosen_saver(self, session: Any) -> Any:
        if self._saver is None:
            found = None if self._scaffold is None else self._scaffold.saver
            with session.graph.as_default():
                self._saver = Saver() if found is None else found
        return self._saver


class FeedFnHook(SessionRunHook):
    """Feeds every run with what a function returns."""

    def __init__(self, feed_fn: Callable[[], Any]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask the function."""
        return SessionRunArgs(None, self.feed_fn())


class FinalOpsHook(SessionRunHook):
    """Runs operations at the end, and keeps what they gave."""

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._operations, self._feeds = final_ops, final_ops_feed_dict
        self.final_ops_values: Any = None

    def end(self, session: Any) -> None:
        """Run them."""
        if self._operations is not None:
            self.final_ops_values = session.run(self._operations, self._feeds)
