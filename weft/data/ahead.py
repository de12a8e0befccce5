"""Batches made ahead by a thread of this process, while the caller is in machine code.

Machine code runs without Python's lock, so that a thread makes the next batch meanwhile. That is
safe for all that draws its random numbers from the streams of a loader. A dataset that draws from a
global generator would draw at another time than the training step expects; so this is done where
it is asked for, and by faces only with what Weft itself brings (`is_of_weft`).
"""

from __future__ import annotations

import os
import threading
from contextvars import copy_context
from pathlib import PurePath
from queue import Empty, SimpleQueue
from typing import Any, Final

import numpy as np

from ..core.device import device
from ..core.placing import moved_tensors
from ..core.tensor import Tensor
from .errors import WorkerError
from .fetch import Fetcher, Job, Recipe

_GRACE_SECONDS: Final = 1.0  # user code that blocks must not block whoever stops reading
_PLAIN: Final = (type(None), bool, int, float, str, bytes, PurePath, np.generic, np.ndarray, Tensor)


class BatchThread:
    """A thread that makes batches of jobs, in their order, as one worker process would.

    With a device, it also starts their copies there, while the caller computes.
    """

    def __init__(self, recipe: Recipe, where: device | None = None) -> None:
        self.closed = False
        self._owner = os.getpid()
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._results: SimpleQueue[Any] = SimpleQueue()
        # The thread knows the queues alone: it does not keep alive whoever reads them.
        arguments = (Fetcher(recipe), where, self._jobs, self._results)
        self._thread = threading.Thread(
            target=_make_all, args=arguments, name="weft-data", daemon=True
        )
        self._thread.start()

    def submit(self, worker: int, job: Job) -> None:
        """Ask for a batch, made in the context (gradients, devices) of whoever asks."""
        self._jobs.put((copy_context(), job))

    def result(self, worker: int, job: Job) -> Any:
        """Return the oldest batch that was asked for; raise what making it raised."""
        if self._owner != os.getpid():
            raise WorkerError(
                "DataLoader: this iteration was begun before a fork, and the thread that makes its "
                "batches does not exist in the new process; iterate over the loader again there"
            )
        batch, error = self._results.get()
        if error is None:
            return batch
        self.close()
        try:
            raise error
        finally:
            del error  # its traceback knows this frame

    def close(self) -> None:
        """End the thread once it has left the dataset's code; what waits is not made."""
        if self.closed:
            return
        self.closed = True
        _drop_all(self._jobs)
        self._jobs.put(None)
        # A fork has no such thread; and the garbage collector may call from the thread itself.
        if self._owner == os.getpid() and threading.current_thread() is not self._thread:
            self._thread.join(_GRACE_SECONDS)


def _make_all(
    fetcher: Fetcher, where: device | None, jobs: SimpleQueue[Any], results: SimpleQueue[Any]
) -> None:
    while (asked := jobs.get()) is not None:
        context, job = asked
        try:
            batch = context.run(fetcher.fetch, job)
            results.put((batch if where is None else moved_tensors(batch, where), None))
        except BaseException as error:
            results.put((None, error))
        batch = None
        del asked, context


def _drop_all(jobs: SimpleQueue[Any]) -> None:
    while not jobs.empty():
        try:
            jobs.get_nowait()
        except Empty:  # the thread took it meanwhile
            return


def is_of_weft(value: Any) -> bool:
    """Tell whether batches are made by Weft's own code alone, down to every transform.

    >>> from weft.data import TensorDataset, transforms
    >>> data = TensorDataset([1.0, 2.0])
    >>> is_of_weft(data.map(transforms.Normalize(0.5, 0.5))), is_of_weft(data.map(lambda x: x))
    (True, False)
    """
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(is_of_weft, value))
    if isinstance(value, dict):
        return all(map(is_of_weft, value)) and all(map(is_of_weft, value.values()))
    if isinstance(value, _PLAIN):
        return True
    if not type(value).__module__.startswith(_OWN):
        return False
    return all(map(is_of_weft, getattr(value, "__dict__", {}).values()))


_OWN: Final = __name__.rpartition(".")[0] + "."
