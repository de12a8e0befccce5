"""Monitored sessions: they initialise or restore, run hooks around runs, and close cleanly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .checkpoint_files import latest_checkpoint
from .errors import OutOfRangeError
from .graph import Graph, get_default_graph
from .hooks import (
    CheckpointSaverHook,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from .keys import GraphKeys
from .queue_runner import Coordinator, start_queue_runners
from .saver import Saver
from .session import Session
from .summary import merge_all
from .watching_hooks import StepCounterHook, SummarySaverHook

__all__ = [
    "ChiefSessionCreator",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "Scaffold",
    "SingularMonitoredSession",
    "WorkerSessionCreator",
]

_DEFAULT = object()  # where no is another answer than none


class Scaffold:
    """What a monitored session needs of a graph: initialisers, the saver, the summaries."""

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Any = None,
        init_fn: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Any = None,
        local_init_feed_dict: Any = None,
    ) -> None:
        self.init_op, self.init_feed_dict, self.init_fn = init_op, init_feed_dict, init_fn
        self.local_init_op, self.local_init_feed_dict = local_init_op, local_init_feed_dict
        self.summary_op, self.saver = summary_op, saver

    def finalize(self) -> Scaffold:
        """Fill in what was not said, and let nothing be added to the graph any more."""
        graph = get_default_graph()
        if self.summary_op is None:
            known = graph.get_collection(GraphKeys.SUMMARY_OP)
            self.summary_op = known[0] if known else merge_all()
        if self.saver is None:
            known = graph.get_collection(GraphKeys.SAVERS)
            has_variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
            self.saver = known[0] if known else Saver(allow_empty=True) if has_variables else None
        graph.finalize()
        return self

    def initialize(self, session: Any, checkpoint: str | None) -> None:
        """Restore variables, or give them their first values."""
        graph = session.graph
        if checkpoint is not None and self.saver is not None:
            self.saver.restore(session, checkpoint)
        elif self.init_op is not None:
            session.run(self.init_op, self.init_feed_dict)
        else:
            _run_initializers(session, graph.get_collection(GraphKeys.GLOBAL_VARIABLES))
        if checkpoint is None and self.init_fn is not None:
            takes_scaffold = self.init_fn.__code__.co_argcount > 1
            self.init_fn(self, session) if takes_scaffold else self.init_fn(session)
        if self.local_init_op is not None:
            session.run(self.local_init_op, self.local_init_feed_dict)
        else:
            _run_initializers(session, graph.get_collection(GraphKeys.LOCAL_VARIABLES))
            tables = graph.get_collection(GraphKeys.TABLE_INITIALIZERS)
            if tables:
                session.run(tables)


def _run_initializers(session: Any, variables: Sequence[Any]) -> None:
    missing = [v.initializer for v in variables if not session.is_initialized(v)]
    if missing:
        session.run(missing)


class ChiefSessionCreator:
    """Makes the session of a monitored one: from a checkpoint if there is any."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: Any = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        self.scaffold = scaffold or Scaffold()
        self._master, self._config = master, config
        self._folder, self._file = checkpoint_dir, checkpoint_filename_with_path

    def create_session(self) -> Session:
        """Return the session, with values for all variables."""
        self.scaffold.finalize()
        session = Session(self._master, config=self._config)
        found = self._file
        if found is None and self._folder is not None:
            found = latest_checkpoint(self._folder)
        self.scaffold.initialize(session, found)
        return session


class WorkerSessionCreator(ChiefSessionCreator):
    """The same: there is one process."""


class MonitoredSession:
    """A session with hooks: `while not sess.should_stop(): sess.run(train_op)`."""

    def __init__(
        self,
        session_creator: Any = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        creator = session_creator or ChiefSessionCreator()
        self._hooks = list(hooks or ())
        for hook in self._hooks:
            hook.begin()
        self._session: Any = creator.create_session()
        self._coordinator = Coordinator()
        self._seconds = stop_grace_period_secs
        self._entered: Any = None
        start_queue_runners(self._session, self._coordinator)
        for hook in self._hooks:
            hook.after_create_session(self._session, self._coordinator)

    @property
    def graph(self) -> Graph:
        """Return the graph."""
        found: Graph = self._raw().graph
        return found

    def raw_session(self) -> Session:
        """Return the session itself."""
        found: Session = self._raw()
        return found

    _tf_sess = raw_session

    def _raw(self) -> Any:
        if self._session is None:
            raise RuntimeError("Attempted to use a closed session.")
        return self._session

    def should_stop(self) -> bool:
        """Tell whether a hook, or the end of the input, stops the session."""
        return self._session is None or self._coordinator.should_stop()

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Return the values of tensors, as a session does; hooks see each run."""
        session = self._raw()
        if self._coordinator.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), session)
        asked = [(hook, hook.before_run(context)) for hook in self._hooks]
        wanted = {i: a.fetches for i, (_, a) in enumerate(asked) if a and a.fetches is not None}
        feeds = dict(feed_dict or {})
        for _, arguments in asked:
            for key, value in (arguments.feed_dict or {}).items() if arguments else ():
                if key in feeds:
                    raise RuntimeError(
                        "Same tensor is fed by two hooks, or by a hook and the user."
                    )
                feeds[key] = value
        try:
            found = session.run({"caller": fetches, "hooks": wanted}, feeds or None)
        except OutOfRangeError:
            self._coordinator.request_stop()
            raise
        for i, (hook, _) in enumerate(asked):
            hook.after_run(context, SessionRunValues(found["hooks"].get(i)))
        if context.stop_requested:
            self._coordinator.request_stop()
        return found["caller"]

    def run_step_fn(self, step_fn: Any) -> Any:
        """Call a function with something that runs with hooks, and without."""
        return step_fn(_StepContext(self))

    def close(self) -> None:
        """End the hooks and close the session."""
        self._close(None)

    def _close(self, error: BaseException | None) -> None:
        if self._session is None:
            return
        try:
            if error is None:
                for hook in self._hooks:
                    hook.end(self._session)
        finally:
            self._coordinator.request_stop()
            self._coordinator.join(stop_grace_period_secs=self._seconds, ignore_live_threads=True)
            self._session.close()
            self._session = None

    def __enter__(self) -> MonitoredSession:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, at: Any) -> bool:
        """Close the session; the end of the input is no error."""
        ended = isinstance(error, (OutOfRangeError, StopIteration))
        self._close(None if ended else error)
        return ended


class SingularMonitoredSession(MonitoredSession):
    """The same; it never recovers by itself."""

    def __init__(
        self,
        hooks: Any = None,
        scaffold: Any = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: Any = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(
            scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path
        )
        super().__init__(creator, hooks, stop_grace_period_secs)


class _StepContext:
    """What a step function is called with."""

    def __init__(self, owner: MonitoredSession) -> None:
        self._owner = owner
        self.session = owner.raw_session()

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """Run with the hooks."""
        return self._owner.run(*args, **kwargs)

    def request_stop(self) -> None:
        """End the loop around the function."""
        raise StopIteration("step_fn has requested the iterations to stop.")


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: Any = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = _DEFAULT,
    save_summaries_steps: Any = _DEFAULT,
    save_summaries_secs: Any = _DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = _DEFAULT,
    summary_dir: Any = None,
) -> MonitoredSession:
    """Return a session that restores, saves checkpoints and summaries, and runs hooks.

    By default it saves a checkpoint every 600 seconds and summaries every 100 steps, if there is a
    `checkpoint_dir`.
    """
    checkpoint_seconds, checkpoint_steps = _choice(
        save_checkpoint_secs, save_checkpoint_steps, (600, None)
    )
    summary_seconds, summary_steps = _choice(save_summaries_secs, save_summaries_steps, (None, 100))
    known = scaffold or Scaffold()
    all_hooks: list[SessionRunHook] = [*(hooks or ()), *(chief_only_hooks or ())]
    folder = summary_dir or checkpoint_dir
    if folder is not None:
        if log_step_count_steps:
            all_hooks.append(StepCounterHook(log_step_count_steps, output_dir=folder))
        if summary_seconds or summary_steps:
            all_hooks.append(
                SummarySaverHook(summary_steps, summary_seconds, folder, scaffold=known)
            )
    if checkpoint_dir is not None and (checkpoint_seconds or checkpoint_steps):
        all_hooks.append(
            CheckpointSaverHook(
                checkpoint_dir, checkpoint_seconds, checkpoint_steps, scaffold=known
            )
        )
    creator = ChiefSessionCreator(known, master, config, checkpoint_dir)
    return MonitoredSession(creator, all_hooks, stop_grace_period_secs)


def _choice(seconds: Any, steps: Any, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return seconds and steps: what was said, or the default if neither was."""
    if seconds is _DEFAULT and steps is _DEFAULT:
        return default
    return (None if seconds is _DEFAULT else seconds), (None if steps is _DEFAULT else steps)
