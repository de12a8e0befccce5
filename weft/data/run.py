"""One walk through an epoch: here, by workers that share the batches, or by independent workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Protocol

from .fetch import END, Fetcher, Job, Recipe


class EpochRun(Protocol):
    """Gives the batches of an epoch one after another, and END after the last."""

    def next(self) -> Any:
        """Return the next batch."""

    def pause(self) -> None:
        """End the workers until the next batch is asked for."""

    def close(self) -> None:
        """Release what the run holds."""


class LocalRun:
    """Makes each batch in this process when it is asked for."""

    def __init__(self, recipe: Recipe, jobs: Iterator[Job]) -> None:
        self._fetcher = Fetcher(recipe)
        self._jobs = jobs

    def next(self) -> Any:
        """Return the next batch."""
        for job in self._jobs:
            return self._fetcher.fetch(job)
        return END

    def pause(self) -> None:
        """Do nothing: there are no workers."""

    def close(self) -> None:
        """Do nothing: there are no workers."""


class Workers(Protocol):
    """What makes batches elsewhere: processes, or a thread."""

    closed: bool

    def submit(self, worker: int, job: Job) -> None:
        """Give a worker its next job."""

    def result(self, worker: int, job: Job) -> Any:
        """Return the batch of a worker's oldest job; raise what it raised."""

    def close(self) -> None:
        """End the workers."""


StartWorkers = Callable[[], Workers]


class PooledRun:
    """Gives batch n to worker n modulo the number of workers, and reads them in that order."""

    def __init__(
        self, start: StartWorkers, jobs: Iterator[Job], workers: int, prefetch: int
    ) -> None:
        self._start = start
        self._pool = start()
        self._jobs = jobs
        self._workers = workers
        self._ahead = prefetch * workers
        self._waiting: deque[Job] = deque()

    def next(self) -> Any:
        """Return the next batch, and keep the workers supplied."""
        for job in islice(self._jobs, self._ahead - len(self._waiting)):
            self._submit(job)
        if not self._waiting:
            return END
        job = self._waiting.popleft()
        return self._pool.result(job.number % self._workers, job)

    def _submit(self, job: Job) -> None:
        if self._pool.closed:
            self._pool = self._start()
        self._pool.submit(job.number % self._workers, job)
        self._waiting.append(job)

    def pause(self) -> None:
        """End the workers; what they have made ahead is made again when it is asked for."""
        self._pool.close()
        self._jobs = chain(tuple(self._waiting), self._jobs)
        self._waiting.clear()

    def close(self) -> None:
        """End the workers."""
        self._pool.close()


@dataclass
class Rotation:
    """Whose turn it is among workers with streams of their own."""

    counts: list[int]  # batches delivered by each
    ended: list[bool]
    turn: int = 0

    @classmethod
    def of(cls, workers: int) -> Rotation:
        """Return the start of an epoch."""
        return cls([0] * workers, [False] * workers)

    @classmethod
    def from_state(cls, state: Any) -> Rotation:
        """Return the rotation that a state describes."""
        return cls(list(state["counts"]), [bool(e) for e in state["ended"]], int(state["turn"]))

    def state_dict(self) -> dict[str, Any]:
        """Return a copy as plain data."""
        return {"counts": list(self.counts), "ended": list(self.ended), "turn": self.turn}

    def advance(self) -> None:
        """Pass the turn on to the next worker that has not ended."""
        for _ in self.counts:
            self.turn = (self.turn + 1) % len(self.counts)
            if not self.ended[self.turn]:
                return


class ShardedRun:
    """Reads in turn from workers that each iterate over a part of a dataset that shards itself."""

    def __init__(self, start: StartWorkers, first: Job, rotation: Rotation, prefetch: int) -> None:
        self._start = start
        self._pool = start()
        self._first = first
        self._rotation = rotation
        self._prefetch = prefetch
        self._submitted = list(rotation.counts)

    def next(self) -> Any:
        """Return the next batch of the worker whose turn it is."""
        rotation = self._rotation
        if self._pool.closed:
            self._pool = self._start()
        self._supply()
        while not all(rotation.ended):
            worker = rotation.turn
            job = self._first._replace(number=rotation.counts[worker])
            batch = self._pool.result(worker, job)
            if batch is not END:
                rotation.counts[worker] += 1
                rotation.advance()
                return batch
            rotation.ended[worker] = True
            rotation.advance()
        return END

    def pause(self) -> None:
        """End the workers; what they have made ahead is made again when it is asked for."""
        self._pool.close()
        self._submitted = list(self._rotation.counts)

    def close(self) -> None:
        """End the workers."""
        self._pool.close()

    def _supply(self) -> None:
        rotation = self._rotation
        for worker, ended in enumerate(rotation.ended):
            while not ended and self._submitted[worker] < rotation.counts[worker] + self._prefetch:
                job = self._first._replace(number=self._submitted[worker])
                self._pool.submit(worker, job)
                self._submitted[worker] += 1
