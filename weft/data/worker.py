"""What runs in a worker process: take a job, make the batch, hand it to the sending thread.

The thread lets the worker go on with its next job while the main process has not yet read the last
batch. The main process never gives a worker more than a few jobs, which bounds what can wait here.
"""

from __future__ import annotations

import pickle
import queue
import random
import signal
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ..core import random as kernels
from ..core.rng import Generator, default_generator
from .channel import Packed, close_main_ends, pack, send
from .fetch import Fetcher, Job, Recipe
from .streams import WorkerInfo, set_worker


@dataclass(frozen=True)
class WorkerResult:
    """What came of a job: the batch (or END), or an error."""

    iteration: int
    number: int
    batch: Any = None
    error: Failure | None = None


@dataclass(frozen=True)
class Failure:
    """An exception of a worker: pickled where that is possible, and as text."""

    pickled: bytes | None
    summary: str
    text: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class WorkerSetup:
    """What a worker process is started with."""

    recipe: Recipe
    id: int
    workers: int
    init: Callable[[int], Any] | None


def run_worker(setup: WorkerSetup, jobs: Connection, results: Connection) -> None:
    """Serve jobs until the main process closes the pipe."""
    _own_the_signals()
    close_main_ends()
    outbox: queue.SimpleQueue[Packed | None] = queue.SimpleQueue()
    sender = threading.Thread(target=_send_all, args=(results, outbox), daemon=True)
    sender.start()
    try:
        _serve(setup, jobs, outbox)
    finally:
        outbox.put(None)
        sender.join()


def _own_the_signals() -> None:
    """Leave Ctrl-C to the main process, and let no handler of its run here.

    Both may have been inherited; SIGINT is blocked until this is done (see pool.py).
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _serve(setup: WorkerSetup, jobs: Connection, outbox: Any) -> None:
    runner = _Runner(setup)
    while True:
        try:
            job = jobs.recv()
        except (EOFError, OSError):  # the main process is done, or gone
            return
        outbox.put(runner.run(job))


def _send_all(results: Connection, outbox: Any) -> None:
    try:
        while (packed := outbox.get()) is not None:
            send(results, packed)
    except OSError:  # the main process reads no more
        return


class _Runner:
    """Runs jobs; an error, whatever it is, becomes part of the result."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._setup = setup
        self._fetcher: Fetcher | None = None
        self._epoch: int | None = None

    def run(self, job: Job) -> Packed:
        """Return the packed result of a job."""
        try:
            return pack(WorkerResult(job.iteration, job.number, self._batch(job)))
        except BaseException as error:
            failure = describe(error)
            return pack(WorkerResult(job.iteration, job.number, error=failure))

    def _batch(self, job: Job) -> Any:
        setup = self._setup
        if job.epoch != self._epoch:
            self._epoch = job.epoch
            set_worker(self._info(job.epoch))
        if self._fetcher is None:
            if setup.init is not None:
                setup.init(setup.id)
            self._fetcher = Fetcher(setup.recipe, setup.id, setup.workers)
        _seed_everything(self._fetcher.batch_generator(job))
        return self._fetcher.fetch(job)

    def _info(self, epoch: int) -> WorkerInfo:
        generator = (
            Generator(self._setup.recipe.seed).fork(epoch).fork(1 << 48).fork(self._setup.id)
        )
        return WorkerInfo(self._setup.id, self._setup.workers, _seed_of(generator), epoch)


def _seed_everything(generator: Generator) -> None:
    """Seed the generators that a dataset may use behind Weft's back, for each batch anew.

    Forked workers would otherwise all draw the same numbers, and a resumed epoch would draw others.
    """
    own = generator.fork(0)
    seed = _seed_of(own)
    default_generator.set_state(own.get_state())
    random.seed(seed)
    np.random.seed(seed & 0xFFFF_FFFF)  # noqa: NPY002  (the one that old datasets still use)


def _seed_of(generator: Generator) -> int:
    key, counter = generator.reserve(1)
    return int(kernels.randint(key, counter, (), low=0, high=1 << 64, dtype="uint64"))


def describe(error: BaseException) -> Failure:
    """Return an exception in a form that reaches the main process in any case."""
    text = "".join(traceback.format_exception(error))
    summary = f"{type(error).__name__}: {error}"
    notes = tuple(getattr(error, "__notes__", ()))
    return Failure(_pickled(error), summary, text, notes)


def _pickled(error: BaseException) -> bytes | None:
    """Return the pickled exception, or None if it would not come back."""
    if not isinstance(error, Exception):  # SystemExit must not end the main process
        return None
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:
        return None
    return data
