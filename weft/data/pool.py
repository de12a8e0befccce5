"""The main process's side of the workers: start them, give them jobs, read results, end them.

Each worker has two pipes of its own, one for jobs and one for results. Results are read only when
the batch is due, from the worker that has it, so batches come in order without any sorting.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any, Final, NoReturn

from ..core.errors import ArgumentError, ArgumentTypeError
from .channel import receive, remember_main_end, widen
from .errors import WorkerError, WorkerTimeoutError, WorkerTraceback
from .fetch import Job, Recipe
from .worker import Failure, WorkerResult, WorkerSetup, run_worker

_GRACE_SECONDS: Final = 1.0  # how long a worker may finish its item before it is terminated


class WorkerPool:
    """The worker processes of one loader."""

    def __init__(
        self,
        recipe: Recipe,
        workers: int,
        *,
        context: Any = None,
        init: Callable[[int], Any] | None = None,
        timeout: float = 0.0,
    ) -> None:
        self._owner = os.getpid()
        self._timeout = timeout
        self._workers: list[_Worker] = []
        self.closed = False
        try:
            for i in range(workers):
                setup = WorkerSetup(recipe, i, workers, init)
                self._workers.append(_Worker(context_of(context), setup))
        except BaseException:
            self.close()
            raise

    def submit(self, worker: int, job: Job) -> None:
        """Give a worker its next job."""
        try:
            self._workers[worker].jobs.send(job)
        except OSError:
            self._fail(worker, job.number)
        except BaseException:
            self.close()  # the message may be half written
            raise

    def result(self, worker: int, job: Job) -> Any:
        """Return the batch that a worker made of its oldest job; raise what it raised."""
        try:
            while True:
                self._wait(worker, job)
                result: WorkerResult = receive(self._workers[worker].results)
                if result.iteration == job.iteration:  # others were asked for and then abandoned
                    break
        except (EOFError, ConnectionError):
            self._fail(worker, job.number)
        except BaseException:
            self.close()  # the message may be half read
            raise
        if result.error is not None:
            self.close()
            raise_failure(result.error, f"DataLoader worker {worker}")
        return result.batch

    def close(self) -> None:
        """End the workers: their pipes are closed, and who does not leave is terminated."""
        if self.closed or self._owner != os.getpid():  # a forked child holds copies, nothing more
            return
        self.closed = True
        for worker in self._workers:
            worker.hang_up()
        deadline = time.monotonic() + _GRACE_SECONDS
        for worker in self._workers:
            worker.end(deadline)

    @property
    def pids(self) -> list[int | None]:
        """Return the process ids of the workers."""
        return [worker.process.pid for worker in self._workers] if not self.closed else []

    def _wait(self, worker: int, job: Job) -> None:
        one = self._workers[worker]
        ready = wait([one.results, one.process.sentinel], self._timeout or None)
        if not ready:
            pid = one.process.pid
            self.close()
            raise WorkerTimeoutError(
                f"DataLoader worker {worker} (pid {pid}) did not deliver batch "
                f"{job.number} of epoch {job.epoch} within timeout={self._timeout:g} seconds; "
                "its dataset is slow or stuck: raise the timeout, or look at the items "
                f"{job.items!r:.60}"
            )
        if one.results not in ready and not one.results.poll():
            self._fail(worker, job.number)

    def _fail(self, worker: int, number: int) -> NoReturn:
        """Raise what became of a worker that is gone."""
        process = self._workers[worker].process
        process.join(_GRACE_SECONDS)
        pid, code = process.pid, process.exitcode
        self.close()
        raise WorkerError(
            f"DataLoader worker {worker} (pid {pid}) ended before it delivered batch {number}: "
            f"{_cause(code)}"
        )


class _Worker:
    """A process and the main process's ends of its pipes."""

    def __init__(self, context: Any, setup: WorkerSetup) -> None:
        its_jobs, self.jobs = context.Pipe(duplex=False)
        self.results, its_results = context.Pipe(duplex=False)
        widen(self.results)
        remember_main_end(self.jobs)
        remember_main_end(self.results)
        self.process = context.Process(
            target=run_worker,
            args=(setup, its_jobs, its_results),
            name=f"weft-data-{setup.id}",
            daemon=True,
        )
        try:
            with _interrupts_blocked(), warnings.catch_warnings():
                # Python 3.12 warns of locks that other threads hold at a fork. Weft's own are
                # taken around it (core/rng.py), and a worker starts from its own stack.
                warnings.filterwarnings("ignore", r".*multi-threaded.*fork", DeprecationWarning)
                _start(self.process, context)
        except BaseException:
            self.hang_up()
            raise
        finally:
            # Only the worker may hold its ends, or the end of it would not show.
            its_jobs.close()
            its_results.close()

    def hang_up(self) -> None:
        self.jobs.close()
        self.results.close()

    def end(self, deadline: float) -> None:
        self.process.join(max(0.0, deadline - time.monotonic()))
        for force in (self.process.terminate, self.process.kill):
            if self.process.exitcode is None:
                force()
                self.process.join(_GRACE_SECONDS)
        with contextlib.suppress(ValueError):  # still there: the system reaps it with us
            self.process.close()


def _start(process: Any, context: Any) -> None:
    try:
        process.start()
    except AssertionError as error:  # multiprocessing says so when daemons start processes
        raise ArgumentError(
            f"DataLoader: workers cannot be started here ({error}); inside a worker or another "
            "daemonic process use num_workers=0"
        ) from None
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ArgumentTypeError(
            f"DataLoader: the dataset or a function given to the loader cannot be sent to a "
            f"worker started by {context.get_start_method()!r}: {error}. Define functions and "
            "classes at the top of a module (no lambdas), and open files in the worker"
        ) from error


def context_of(choice: Any) -> Any:
    """Return the multiprocessing context that is named.

    None is what the program has set, else fork on Linux, which starts in milliseconds and takes
    any dataset, else the platform's default.
    """
    if choice is None:
        choice = multiprocessing.get_start_method(allow_none=True)
    if choice is None and sys.platform == "linux":
        choice = "fork"
    if choice is None or isinstance(choice, str):
        try:
            return multiprocessing.get_context(choice)
        except ValueError:
            known = ", ".join(map(repr, multiprocessing.get_all_start_methods()))
            raise ArgumentError(
                f"DataLoader: multiprocessing_context must be one of {known} here. "
                f"Received: {choice!r}"
            ) from None
    if hasattr(choice, "Process") and hasattr(choice, "Pipe"):
        return choice
    raise ArgumentTypeError(
        "DataLoader: multiprocessing_context must be the name of a start method or a "
        f"multiprocessing context. Received: {type(choice).__name__}"
    )


def raise_failure(failure: Failure, where: str) -> NoReturn:
    """Raise a worker's exception again, with the worker's traceback as its cause."""
    cause = WorkerTraceback(failure.text)
    error: Exception | None = None
    if failure.pickled is not None:
        error = pickle.loads(failure.pickled)
    if error is None:
        error = WorkerError(failure.summary)
    have = getattr(error, "__notes__", ())
    for note in (*failure.notes, f"raised in {where}"):
        if note not in have:
            error.add_note(note)
    raise error from cause


def _cause(code: int | None) -> str:
    if code is None:
        return "it closed its pipe"
    if code >= 0:
        return f"it exited with code {code}; see its output above"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = {
        "SIGKILL": "; the system kills processes when memory runs out: use fewer workers or "
        "smaller batches",
        "SIGSEGV": "; a library used by the dataset crashed: try num_workers=0 to find where",
    }.get(name, "")
    return f"it was killed by {name}{hint}"


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Hold Ctrl-C back, so that it finds no worker that does not ignore it yet."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
