"""Queue runners and coordinators: `tf.train.start_queue_runners`, `tf.train.Coordinator`.

No threads are started: a queue runs what fills it when elements are taken (see queues.py). A
coordinator still stops and joins threads of the program's own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from .context import sessions
from .errors import CancelledError, OutOfRangeError
from .graph import get_default_graph
from .keys import GraphKeys

__all__ = ["Coordinator", "LooperThread", "QueueRunner", "add_queue_runner", "start_queue_runners"]


class QueueRunner:
    """Operations that fill a queue, and what closes it."""

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: Any = None,
        queue_runner_def: Any = None,
        import_scope: Any = None,
    ) -> None:
        if queue is None or not enqueue_ops:
            raise ValueError("QueueRunner: give a queue and operations that fill it")
        self.queue = queue
        self.enqueue_ops = list(enqueue_ops)
        self.close_op, self.cancel_op = close_op, cancel_op
        self._ended = queue_closed_exception_types or (OutOfRangeError,)
        self._running: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """Return the name of the queue."""
        return str(self.queue.name)

    def create_threads(
        self, sess: Any, coord: Any = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """Let the queue be filled in a session from now on; return no threads."""
        content = self.queue.content(sess)
        if self not in content.runners:
            content.runners.append(self)
            self._running[sess] = list(self.enqueue_ops)
        if coord is not None:
            coord.add_cleanup(lambda: self._stop(sess))
        return []

    def run_once(self, session: Any, queue: Any) -> None:
        """Put something in; the queue is closed where there is nothing more."""
        running = self._running[session]
        operation = running.pop(0)
        try:
            session.run(operation)
            running.append(operation)
        except (*self._ended, CancelledError):
            if not running:
                self._stop(session)
                if not queue.content(session).runners:
                    queue.shut(session)

    def _stop(self, session: Any) -> None:
        content = self.queue.content(session)
        if self in content.runners:
            content.runners.remove(self)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Add a queue runner to the graph, which `start_queue_runners` starts."""
    get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None,
    coord: Any = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Let the queues of the graph be filled in a session from now on."""
    session = sessions.top() if sess is None else sess
    if session is None:
        raise ValueError(
            "Cannot start queue runners: No default session is registered. Use `with "
            "sess.as_default()` or pass an explicit session to tf.start_queue_runners(sess=sess)"
        )
    for runner in session.graph.get_collection(collection):
        runner.create_threads(session, coord=coord)
    return []


class Coordinator:
    """Tells threads when to stop, waits for them, and raises what they raised."""

    def __init__(self, clean_stop_exception_types: Any = None) -> None:
        self._clean = tuple(clean_stop_exception_types or (OutOfRangeError,))
        self._event = threading.Event()
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._cleanups: list[Any] = []
        self._joined = False

    def should_stop(self) -> bool:
        """Tell whether threads should stop."""
        return self._event.is_set()

    def request_stop(self, ex: Any = None) -> None:
        """Ask all threads to stop; an error that is given is raised by `join`."""
        error = ex[1] if isinstance(ex, tuple) else ex
        if error is not None and not isinstance(error, self._clean) and self._error is None:
            self._error = error
        self._event.set()

    def clear_stop(self) -> None:
        """Forget that a stop was asked for."""
        self._event.clear()
        self._error, self._joined = None, False

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until a stop is asked for."""
        return self._event.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Let `join` wait for a thread."""
        self._threads.append(thread)

    def add_cleanup(self, call: Any) -> None:
        """Let `join` call something."""
        self._cleanups.append(call)

    @property
    def joined(self) -> bool:
        """Tell whether `join` was called."""
        return self._joined

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Ask for a stop when the block raises."""
        try:
            yield
        except Exception as error:
            self.request_stop(error)

    def join(
        self,
        threads: Any = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait for threads to end; raise what one of them raised."""
        waited = [*self._threads, *(threads or ())]
        while any(thread.is_alive() for thread in waited) and not self.should_stop():
            time.sleep(0.01)
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            thread.join(max(0.0, deadline - time.monotonic()))
        for call in self._cleanups:
            call()
        self._cleanups.clear()
        self._joined = True
        if self._error is not None:
            raise self._error
        alive = [thread.name for thread in waited if thread.is_alive()]
        if alive and not ignore_live_threads:
            raise RuntimeError(f"Coordinator stopped with threads still running: {' '.join(alive)}")

    def raise_requested_exception(self) -> None:
        """Raise the error that a stop was asked with."""
        if self._error is not None:
            raise self._error


class LooperThread(threading.Thread):
    """A thread that does something again and again until a coordinator says stop."""

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None = None,
        target: Any = None,
        args: Sequence[Any] = (),
        kwargs: Any = None,
    ) -> None:
        super().__init__(daemon=True)
        self._coord, self._seconds = coord, timer_interval_secs
        self._call, self._args, self._options = target, args, kwargs or {}
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Any,
        args: Sequence[Any] = (),
        kwargs: Any = None,
    ) -> LooperThread:
        """Start such a thread."""
        thread = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        thread.start()
        return thread

    def run(self) -> None:
        """Do it until a stop is asked for."""
        with self._coord.stop_on_exception():
            while not self._coord.should_stop():
                self.run_loop()
                if self._seconds:
                    self._coord.wait_for_stop(self._seconds)

    def run_loop(self) -> None:
        """Do it once."""
        if self._call is not None:
            self._call(*self._args, **self._options)
