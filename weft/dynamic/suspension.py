"""Examples that wait for one another: whoever reads a value is suspended until all others do too.

Then everything that was put off runs at once, and each goes on by its own branch. With the package
greenlet an example runs in a greenlet, else in a thread; both have copies of the context variables.
Where an example is neither, reading a value simply runs what was put off so far.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import cache
from threading import Semaphore, Thread
from types import FrameType
from typing import Any, Protocol

from ..core.errors import is_weft_code
from ..core.imports import is_available, require

Work = Callable[[], Any]


class Task(Protocol):
    """One example that runs, is suspended, or has ended."""

    def resume(self) -> bool:
        """Let it run until it is suspended or ends; tell whether it is suspended."""

    def suspend(self) -> None:
        """Come back when it is resumed: called by itself."""

    def stop(self) -> None:
        """End it where it is suspended."""

    def frame(self) -> FrameType | None:
        """Return the frame in which it is suspended."""


class StoppedError(BaseException):
    """Ends an example that is suspended when another one has failed."""


class GreenletTask:
    """An example in a greenlet.

    It may be suspended within another one: in an example of a batched function that it calls.
    """

    def __init__(self, work: Work) -> None:
        greenlets = _greenlets()
        self._current = greenlets.getcurrent
        self._hub = self._current()
        self._greenlet = self._place = greenlets.greenlet(work)
        self._greenlet.gr_context = copy_context()

    def resume(self) -> bool:
        """Let it run until it is suspended or ends; tell whether it is suspended."""
        hub, own = self._current(), self._greenlet
        if hub is not self._hub:
            self._hub = own.parent = hub
        self._place.switch()
        return not own.dead

    def suspend(self) -> None:
        """Come back when it is resumed."""
        self._place = self._current()
        self._hub.switch()

    def stop(self) -> None:
        """End it where it is suspended."""
        try:
            self._place.throw(StoppedError)
        except StoppedError:
            return

    def frame(self) -> FrameType | None:
        """Return the frame in which it is suspended."""
        frame: FrameType | None = self._greenlet.gr_frame
        return frame


class ThreadTask:
    """An example in a thread; only one of them runs at a time."""

    def __init__(self, work: Work) -> None:
        self._context: Context = copy_context()
        self._work = work
        self._go, self._back = Semaphore(0), Semaphore(0)
        self._ended = self._stopped = False
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._started = False

    def _run(self) -> None:
        try:
            self._context.run(self._work)
        except BaseException as error:
            self._error = error
        self._ended = True
        self._back.release()

    def resume(self) -> bool:
        """Let it run until it is suspended or ends; tell whether it is suspended."""
        if self._started:
            self._go.release()
        else:
            self._started = True
            self._thread.start()
        self._back.acquire()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return not self._ended

    def suspend(self) -> None:
        """Come back when it is resumed."""
        self._back.release()
        self._go.acquire()
        if self._stopped:
            raise StoppedError

    def stop(self) -> None:
        """End it where it is suspended."""
        self._stopped = True
        try:
            self.resume()
        except StoppedError:
            return

    def frame(self) -> FrameType | None:
        """Return the frame in which it is suspended."""
        ident = self._thread.ident
        return None if ident is None else sys._current_frames().get(ident)


@cache
def _greenlets() -> Any:
    return require("greenlet", "batching", "suspending an example")


@cache
def task_class() -> type[GreenletTask] | type[ThreadTask]:
    """Return what examples run in."""
    return GreenletTask if is_available("greenlet") else ThreadTask


def line_of(task: Task) -> str:
    """Return " at file.py:12", the user's line at which an example is suspended."""
    frame = task.frame()
    while frame is not None and is_weft_code(frame.f_code):
        frame = frame.f_back
    if frame is None:
        return ""
    name = frame.f_code.co_filename.rpartition("/")[2]
    return f" at {name}:{frame.f_lineno}"
