"""A thread for work that can wait: compiling what eager mode will use later.

Jobs run one after another. A fork waits for the running job and takes none of them along; the end
of the process waits for the running job and drops the others.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue

from .locks import fork_safe_lock

Job = Callable[[], None]

# Held while a job runs: a child must not start with half an import, or a lock of LLVM's that
# belongs to a thread it does not have.
_running = fork_safe_lock()


class Background:
    """The queue of a process and the thread that serves it, started by the first job."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.thread: threading.Thread | None = None
        self.ended = False

    def submit(self, job: Job) -> bool:
        """Have a job done later; return False where no thread can do it."""
        if self.ended or not (self.thread or self._start()):
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

    def _start(self) -> bool:
        thread = threading.Thread(target=self._serve, name="weft-background", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system allows no more threads, or the process is ending
            return False
        self.thread = thread
        return True

    def _serve(self) -> None:
        while (job := self.jobs.get()) is not None and not self.ended:
            with _running:
                try:
                    job()
                except BaseException:  # the next job has nothing to do with it
                    threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), self.thread)))


background = Background()
atexit.register(background.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=background._forget)
