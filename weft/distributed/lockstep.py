"""Several runs of one function in one process, in step: where they meet, all of them wait.

Virtual shards of a batch are computed one after another. Where a layer needs something of all
shards (the statistics of batch normalisation, and their gradients), each shard comes to the same
exchange and waits there, until the others have come too. Each run has a thread of its own, of which
one works at a time, in order: the results are those of one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any

from ..ops.collective.exchange import SUMS
from .errors import MismatchError
from .exchanges import ExchangeSignature
from .transport import Array, tree_sum
from .world import ProcessGroup


@dataclass(frozen=True)
class ShardPlace:
    """Which shard of a process runs, and how many shards all processes have."""

    steps: LockstepRuns
    index: int

    @property
    def count(self) -> int:
        """Return how many shards the global batch has."""
        return self.steps.count

    def exchange(self, array: Array, signature: ExchangeSignature, group: ProcessGroup) -> Array:
        """Return what becomes of the arrays of all shards of all processes."""
        return self.steps.meet(self.index, (array, signature, group))


_place: ContextVar[ShardPlace | None] = ContextVar("weft_shard_place", default=None)
current_shard = _place.get


class LockstepRuns:
    """Runs functions in turns.

    count     shards of all processes
    save      returns what belongs to the run that works now, and others would change
    restore   puts it back
    """

    def __init__(self, count: int, save: Callable[[], Any], restore: Callable[[Any], None]) -> None:
        self.count, self._save, self._restore = count, save, restore
        self._runs: list[_Run] = []

    def run(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """Return what functions return; the first error ends all of them."""
        start = self._save()
        self._runs = [_Run(ShardPlace(self, i), work, start) for i, work in enumerate(works)]
        try:
            while not all(run.is_done for run in self._runs):
                for run in self._runs:
                    self._let_go(run)
                self._bring_together()
        finally:
            for run in self._runs:
                run.abandon()
        return [run.result for run in self._runs]

    def _let_go(self, run: _Run) -> None:
        """Let one run work until it meets the others or ends."""
        if not run.is_done:
            self._restore(run.state)
            run.turn()
            run.state = self._save()
            if run.error is not None:
                raise run.error

    def _bring_together(self) -> None:
        """Do what all runs wait for."""
        waiting = [run for run in self._runs if not run.is_done]
        if not waiting:
            return
        if len(waiting) < len(self._runs):
            raise MismatchError(
                f"of {len(self._runs)} shards of this process {len(waiting)} wait for the others "
                f"in an exchange ({waiting[0].brought[1]}), which have ended"
            )
        result = joined([run.brought for run in waiting], self.count)
        for run in waiting:
            run.given = result

    def meet(self, index: int, brought: Any) -> Array:
        """Wait, in a run, until all have come; return what they have made together."""
        met: Array = self._runs[index].meet(brought)
        return met


def joined(brought: Sequence[tuple[Array, ExchangeSignature, ProcessGroup]], count: int) -> Array:
    """Return the sum, or the mean, of the arrays of all shards, added as a balanced tree."""
    _, signature, group = brought[0]
    for _, other, _ in brought[1:]:
        if other != signature:
            raise MismatchError(f"shards do not do the same: {signature}; {other}")
    if signature.how not in SUMS:
        raise MismatchError(
            f"parallel(shards=...): shards can be added and averaged together, and a layer asks "
            f"for {signature}"
        )
    own = tree_sum([array for array, _, _ in brought])
    total = group.exchanges.exchange(own, signature._replace(how="pairwise"))
    return total / total.dtype.type(count) if signature.how == "mean" else total


class _AbandonedRunError(BaseException):
    """Ends the thread of a run that nobody waits for any more; no error of the user's."""


class _Run:
    """One function in its thread."""

    def __init__(self, place: ShardPlace, work: Callable[[], Any], state: Any) -> None:
        self.state = state
        self.brought: Any = None
        self.given: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        self._place, self._work = place, work
        self._is_abandoned = False
        self._mine, self._others = threading.Semaphore(0), threading.Semaphore(0)
        context = copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._live,), daemon=True)
        self._thread.start()

    def turn(self) -> None:
        """Let it work until it waits or ends."""
        self._mine.release()
        self._others.acquire()

    def meet(self, brought: Any) -> Any:
        """Wait for the others."""
        self.brought = brought
        self._others.release()
        self._mine.acquire()
        if self._is_abandoned:
            raise _AbandonedRunError
        return self.given.copy()

    def abandon(self) -> None:
        """End the thread, wherever it waits."""
        if self._thread.is_alive():
            self._is_abandoned = True
            self._mine.release()
            self._thread.join()

    def _live(self) -> None:
        self._mine.acquire()
        try:
            if not self._is_abandoned:
                _place.set(self._place)
                self.result = self._work()
        except BaseException as error:
            self.error = error
        self.is_done = True
        self._others.release()
