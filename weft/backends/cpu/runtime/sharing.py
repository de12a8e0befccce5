"""What executables share that compute in the same memory: a lock, and code for many sizes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any, NamedTuple

from ....core.dim import Condition, SizeVar
from ....core.errors import GraphError
from ....plan.run_plan import RunPlan
from ...states import STATES
from .arena import aligned_empty
from .linking import Library
from .memory import SizedMemory

CALLED_INSIDE = (
    "a program is called from inside its own run, by an operator of it or by the handler of a "
    "signal; it has the memory of one run. Call it when the run has ended"
)


class RunLock:
    """What lets one executable run at a time, of those that share an arena."""

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.running = False

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Be the run that is inside, when no other thread is."""
        with self.lock:
            if self.running:
                raise GraphError(CALLED_INSIDE)
            self.running = True
            try:
                yield
            finally:
                self.running = False


def run_lock_of(plan: RunPlan) -> RunLock:
    """Return the lock of all that shares the memory of a program."""
    return RunLock(STATES if plan.writes else RLock())


class Sized(NamedTuple):
    """What the executables of one program for many sizes share, and the sizes of this one.

    conditions   under which the code is right for other sizes too
    """

    library: Library
    memory: SizedMemory
    run_lock: RunLock
    sizes: Mapping[SizeVar, int]
    conditions: Collection[Condition]

    def apart(self) -> Sized:
        """Return the same with memory of its own."""
        arena = aligned_empty(len(self.memory.arena))
        return self._replace(memory=self.memory._replace(arena=arena), run_lock=RunLock(RLock()))
