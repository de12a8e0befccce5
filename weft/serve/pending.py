"""From the thread that runs batches back to the event loop, where results are waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from ..core.dtype import Array
from .batching import ServeJob


class Pending:
    """A request whose jobs are in the queue.

    done    is called once, on the event loop: when all of them are done, or when time is over
    """

    __slots__ = ("_done", "_left", "ended", "jobs", "late", "loop")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, jobs: list[ServeJob], done: Callable[[], None]
    ) -> None:
        self.loop, self.jobs = loop, jobs
        self.ended = self.late = False
        self._done, self._left = done, len(jobs)
        for job in jobs:
            job.owner = self

    def finish_one(self) -> None:
        """Count a job that is done."""
        self._left -= 1
        if not self._left:
            self._end()

    def expire(self) -> None:
        """Stop waiting: the time is over."""
        if not self.ended:
            self.late = True
            self.abandon()
            self._end()

    def abandon(self) -> None:
        """Let jobs that still wait be passed over."""
        for job in self.jobs:
            job.abandoned = True

    def error(self) -> BaseException | None:
        """Return what a job failed with, if one has."""
        return next((job.error for job in self.jobs if job.error is not None), None)

    def results(self) -> list[Array]:
        """Return the outputs of all jobs, which have not failed."""
        found = [job.results or [] for job in self.jobs]
        if len(found) == 1:
            return found[0]
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def _end(self) -> None:
        if not self.ended:
            self.ended = True
            self._done()


def deliver(jobs: Sequence[ServeJob]) -> None:
    """Tell the event loops of jobs that they are done: one call for a batch, not one for a job."""
    for loop in {job.owner.loop for job in jobs}:
        mine = [job.owner for job in jobs if job.owner.loop is loop]
        with suppress(RuntimeError):  # the loop was closed: nobody waits
            loop.call_soon_threadsafe(_finish, mine)


def _finish(pending: Sequence[Pending]) -> None:
    for one in pending:
        one.finish_one()
