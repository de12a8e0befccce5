"""A thread for work that can wait: compiling what eager mode will use later.

Jobs run one after another. A fork happens between two of them and takes none along; the end of the
process waits for the running job and drops the others.

That a fork waits for a job saves the child half of its work (operations counted as under way, say).
It is not what makes the fork safe, which are the locks (locks.py): a job that takes long, or that
waits for a lock which the forking thread holds, is left behind.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from ..core.locks import fork_safe_lock, stop_for_forks

Job = Callable[[], None]

PATIENCE = 1.0  # seconds that a fork waits for a job

_starting = fork_safe_lock("background")


class Background:
    """The queue of a process and the thread that serves it, started by the first job."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.thread: threading.Thread | None = None
        self.ended = False
        # A job runs under the second, which it takes under the first; who holds the first waits
        # for one job only.
        self._turn, self._running = threading.RLock(), threading.RLock()
        self._stops: list[list[threading.RLock]] = []

    def submit(self, job: Job) -> bool:
        """Have a job done later; return False where no thread can do it."""
        if self.ended or not self._has_thread():
            return False
        self.jobs.put(job)
        return True

    def is_here(self) -> bool:
        """Tell whether the caller is part of a job."""
        return threading.current_thread() is self.thread

    def end(self) -> None:
        """Finish the running job, and take no more."""
        self.ended = True
        if self.thread is not None:
            self.jobs.put(None)
            self.thread.join()

    def _has_thread(self) -> bool:
        """Start the thread if there is none; tell whether there is one then."""
        if self.thread is None:
            with _starting:
                if self.thread is None:
                    self._start()
        return self.thread is not None

    def _start(self) -> None:
        thread = threading.Thread(target=self._serve, name="weft-background", daemon=True)
        # The system may allow no more threads, or the process be ending.
        with suppress(RuntimeError):
            thread.start()
            self.thread = thread

    def _serve(self) -> None:
        jobs, turn, running = self.jobs, self._turn, self._running
        while self.jobs is jobs and (job := jobs.get()) is not None:  # else a job has forked
            with turn:
                running.acquire()
            try:
                if not self.ended:
                    job()
            except BaseException:  # the next job has nothing to do with it
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), self.thread)))
            finally:
                running.release()

    def _stop(self) -> None:
        """Wait for the running job, if it does not take long, and let no other one begin."""
        held: list[threading.RLock] = []
        try:
            both = (self._turn, self._running)
            held.extend(lock for lock in both if lock.acquire(timeout=PATIENCE))
        except BaseException:
            for lock in held:
                lock.release()
            raise
        self._stops.append(held)

    def _go_on(self) -> None:
        if self._stops:  # else a fork inside this one has made the child forget it
            for lock in self._stops.pop():
                lock.release()


background = Background()
atexit.register(background.end)
stop_for_forks("jobs", background._stop, background._go_on)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=background._forget)
