"""Bounded staleness: no gradient is applied that is older than k updates.

A worker fetches the parameters of version v. Until its gradient is applied, others' are; the number
of those is the gradient's staleness. Each fetch sets a deadline: it must be applied as update
v + k + 1 at the latest. As one update is applied at a time, this is scheduling with deadlines
(earliest deadline first): a set of gradients under way can all be on time if the i-th of them, by
deadline, has i places before it. So

- a worker may fetch if at most k gradients are under way, since then there is a place for its own;
- a gradient may be applied before older ones if afterwards those can still be on time.

The oldest gradient may always be applied, so nothing waits in a circle. With k = 0 workers take
turns, and the result is that of one process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ...core.errors import ArgumentError


class Admission:
    """Who has fetched which version, and what follows for the others.

    staleness   most updates between a fetch and the update that its gradient makes
    version     how many updates there have been
    applied     counts of updates by their staleness
    """

    def __init__(self, staleness: Any) -> None:
        if isinstance(staleness, bool) or not isinstance(staleness, int) or staleness < 0:
            raise ArgumentError(
                f"staleness must be a number of updates, 0 or more. Received: {staleness!r}"
            )
        self.staleness: int = staleness
        self.version = 0
        self.applied: Counter[int] = Counter()
        self._under_way: dict[int, int] = {}  # worker -> version that it fetched

    def admit(self, worker: int) -> bool:
        """Let a worker fetch, if its gradient can be on time; tell whether it may."""
        if worker in self._under_way or len(self._under_way) > self.staleness:
            return False
        self._under_way[worker] = self.version
        return True

    def may_apply(self, worker: int) -> bool:
        """Tell whether all others can still be on time after this worker's gradient."""
        others = sorted(v for w, v in self._under_way.items() if w != worker)
        next_version = self.version + 1
        return all(next_version + i <= v + self.staleness for i, v in enumerate(others))

    def choose(self, delivered: Iterable[int]) -> int | None:
        """Return whose gradient is to be applied next: the oldest of those that may be."""
        ready = sorted(delivered, key=lambda worker: (self._under_way[worker], worker))
        return next((worker for worker in ready if self.may_apply(worker)), None)

    def apply(self, worker: int) -> int:
        """Count an update; return its staleness."""
        stale = self.version - self._under_way.pop(worker)
        assert stale <= self.staleness, "admission keeps what it promises"
        self.version += 1
        self.applied[stale] += 1
        return stale

    def forget(self, worker: int) -> None:
        """Forget a worker that is lost, or that gives its gradient up."""
        self._under_way.pop(worker, None)

    def is_under_way(self, worker: int) -> bool:
        """Tell whether a worker has fetched, and its gradient was not applied yet."""
        return worker in self._under_way
