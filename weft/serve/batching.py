"""The queue: requests of equal shapes are collected, run as one batch, and answered one by one.

One thread runs batches. A group of jobs is due when it fills a batch, or when its oldest job has
waited long enough for others; of the groups that are due, the one with the oldest job runs. So no
shape waits for ever behind another that comes more often.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from .limits import ServeLimits
from .metrics import Metrics

Array = np.ndarray[Any, Any]
Run = Callable[[Sequence[Array]], Sequence[Array]]  # of columns: items along the first axis


class QueueFull(Exception):  # noqa: N818  (says what happened)
    """More items wait than the limit allows."""

    def __init__(self, waiting: int, most: int, retry_after: float) -> None:
        super().__init__(f"{waiting} items are waiting, the most is {most}")
        self.retry_after = retry_after


class QueueClosed(Exception):  # noqa: N818  (likewise)
    """The server is ending and takes nothing new."""


class Expired(Exception):  # noqa: N818  (likewise)
    """A job was still waiting when its time was over."""


class ServeJob:
    """Some items that belong together: a request, or a part of a large one.

    columns     an array for each input, items along the first axis
    deadline    on the clock of `time.monotonic`; later nobody waits for the result
    owner       whatever the one who waits for it wants to know it by
    results     an array for each output, when it is done
    error       what was raised instead
    """

    __slots__ = (
        *("abandoned", "columns", "deadline", "error", "group", "owner", "results", "rows"),
        "since",
    )

    def __init__(self, columns: Sequence[Array], deadline: float) -> None:
        self.columns = columns
        self.rows = len(columns[0])
        self.group: Hashable = tuple([column.shape[1:] for column in columns])
        self.deadline = deadline
        self.owner: Any = None
        self.since = 0.0
        self.abandoned = False
        self.results: list[Array] | None = None
        self.error: BaseException | None = None


Deliver = Callable[[list[ServeJob]], None]


class Batcher:
    """A queue of jobs and the thread that runs them in batches.

    run       computes columns of outputs from columns of inputs
    deliver   is given the jobs that are done, in the thread that ran them
    """

    def __init__(self, run: Run, limits: ServeLimits, metrics: Metrics, deliver: Deliver) -> None:
        self._run, self._deliver = run, deliver
        self._limits, self._metrics = limits, metrics
        self._changed = threading.Condition()
        self._groups: dict[Hashable, deque[ServeJob]] = {}
        self._rows: dict[Hashable, int] = {}
        self._idle = False  # whether the thread sleeps until something comes
        self._closed = False
        self._rate = 0.0  # items a second, as of late
        self.waiting = 0  # items
        self._thread = threading.Thread(target=self._work, name="weft-serve", daemon=True)

    def start(self, first: Callable[[], None] | None = None) -> None:
        """Start the thread, which calls a function before it takes jobs."""
        self._first = first
        self._thread.start()

    def submit(self, jobs: Sequence[ServeJob]) -> None:
        """Put jobs in the queue, all of them or none."""
        rows = sum([job.rows for job in jobs])
        with self._changed:
            if self._closed:
                raise QueueClosed("the server is ending")
            if self.waiting + rows > self._limits.max_queue:
                raise QueueFull(self.waiting, self._limits.max_queue, self._retry_after())
            now = time.monotonic()
            for job in jobs:
                self._add(job, now)
            self.waiting += rows
            # Waking the thread for each job would cost more than most jobs do.
            if self._idle or self._rows[jobs[-1].group] >= self._limits.max_batch:
                self._changed.notify()

    def close(self, timeout: float | None = None) -> bool:
        """Refuse new jobs, finish those that wait, and end; tell whether that was in time."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    # -- the queue ---------------------------------------------------------------------------------

    def _add(self, job: ServeJob, now: float) -> None:
        job.since = now
        self._groups.setdefault(job.group, deque()).append(job)
        self._rows[job.group] = self._rows.get(job.group, 0) + job.rows

    def _retry_after(self) -> float:
        return self.waiting / self._rate if self._rate else 1.0

    def _due(self, now: float) -> tuple[Hashable | None, float]:
        """Return the group to run, if one is due, and how long to wait for one otherwise."""
        limits = self._limits
        found, oldest, wait = None, float("inf"), float("inf")
        for group, jobs in self._groups.items():
            since = jobs[0].since
            left = since + limits.max_wait - now
            if left <= 0 or self._rows[group] >= limits.max_batch or self._closed:
                if since < oldest:
                    found, oldest = group, since
            else:
                wait = min(wait, left)
        return found, wait

    def _next(self) -> list[ServeJob] | None:
        """Return the jobs of the next batch, waiting for them; None at the end."""
        with self._changed:
            while True:
                if not self._groups:
                    if self._closed:
                        return None
                    self._idle = True
                    self._changed.wait()
                    self._idle = False
                    continue
                group, wait = self._due(time.monotonic())
                if group is not None:
                    return self._taken(group)
                self._changed.wait(wait)

    def _taken(self, group: Hashable) -> list[ServeJob]:
        """Take jobs of a group, oldest first, as many as fit in a batch."""
        jobs, rows = self._groups[group], 0
        taken: list[ServeJob] = []
        while jobs and (not taken or rows + jobs[0].rows <= self._limits.max_batch):
            job = jobs.popleft()
            taken.append(job)
            rows += job.rows
        self.waiting -= rows
        self._rows[group] -= rows
        if not jobs:
            del self._groups[group], self._rows[group]
        return taken

    # -- the thread --------------------------------------------------------------------------------

    def _work(self) -> None:
        if self._first is not None:
            self._first()
        while (jobs := self._next()) is not None:
            now = time.monotonic()
            wanted = [job for job in jobs if not job.abandoned and job.deadline > now]
            for job in jobs:
                if job.deadline <= now:
                    job.error = Expired()
            if wanted:
                self._compute(wanted, now)
            self._deliver(jobs)

    def _compute(self, jobs: list[ServeJob], started: float) -> None:
        """Run jobs as one batch; if that fails, each alone, lest one fail the others."""
        rows = sum([job.rows for job in jobs])
        try:
            self._run_together(jobs)
        except Exception as error:  # whatever the model raises is an answer, not the server's end
            if len(jobs) == 1:
                jobs[0].error = error
            else:
                self._metrics.split_batches.add()
                for job in jobs:
                    self._compute_alone(job)
        took = time.monotonic() - started
        self._rate = 0.8 * self._rate + 0.2 * rows / max(took, 1e-9)
        self._metrics.observe_batch(rows, took, [started - job.since for job in jobs])

    def _compute_alone(self, job: ServeJob) -> None:
        try:
            self._run_together([job])
        except Exception as error:  # as above
            job.error = error

    def _run_together(self, jobs: list[ServeJob]) -> None:
        if len(jobs) == 1:
            jobs[0].results = list(self._run(jobs[0].columns))
            return
        columns = [np.concatenate(parts) for parts in zip(*[j.columns for j in jobs], strict=True)]
        outputs = self._run(columns)
        start = 0
        for job in jobs:
            end = start + job.rows
            job.results = [output[start:end] for output in outputs]
            start = end
