"""Which rows of each batch a process has, where several processes share every batch.

Batches, their order and their random numbers are those that one process would have. So the position
in an epoch says nothing of processes, and training may go on with another number of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.imports import injected
from .iterable import IterableDataset
from .sampler import Indices, as_list

_place = injected("process_place")
_agreed = injected("agreed_object")


class BatchPart(NamedTuple):
    """Part `place` of the `parts` of every batch; `together` if `wf.distributed` says which.

    turns   every batch belongs to one process as a whole, in turns, instead
    """

    place: int = 0
    parts: int = 1
    together: bool = False
    turns: bool = False

    def turn(self, number: int) -> int | None:
        """Return which of this process's batches a batch of the epoch is; None: another's."""
        if not self.turns:
            return number
        return number // self.parts if number % self.parts == self.place else None

    def length(self, batches: int) -> int:
        """Return how many of the batches of an epoch this process has."""
        return len(range(self.place, batches, self.parts)) if self.turns else batches

    def rows(self, indices: Indices) -> tuple[int, Indices]:
        """Return how many rows come before this part's, and its rows.

        A batch that cannot be divided is filled up from its beginning, so that all have as many.
        """
        if self.parts == 1 or self.turns:
            return 0, indices
        items = as_list(indices)
        size = -(-len(items) // self.parts)
        start = self.place * size
        return start, [items[i % len(items)] for i in range(start, start + size)]


WHOLE = BatchPart()


def part_of(loader: Any, shard: Any) -> BatchPart:
    """Return the part of each batch that a loader gives, as its argument `shard` says."""
    if shard is False:
        return WHOLE
    part = _together() if shard is True else _given(shard)
    if isinstance(loader.dataset, IterableDataset):
        raise ArgumentError(
            "DataLoader: shard divides batches of items by index; let a stream give each process "
            "its own part"
        )
    if loader.batch_size is not None and loader.batch_size % part.parts and part.parts > 1:
        raise ArgumentError(
            f"DataLoader: {part.parts} processes share each batch, and must divide its size. "
            f"Received: batch_size {loader.batch_size}"
        )
    return part


def _together() -> BatchPart:
    place, parts = _place()
    return BatchPart(place, parts, together=True)


def _given(shard: Any) -> BatchPart:
    whole = isinstance(shard, tuple) and len(shard) == 2 and all(isinstance(n, int) for n in shard)
    if not whole or not 0 <= shard[0] < shard[1]:
        raise ArgumentTypeError(
            "DataLoader: shard must be True, False or (index, count) with index below count. "
            f"Received: {shard!r:.60}"
        )
    return BatchPart(*shard)


def agreed(seed: int, part: BatchPart) -> int:
    """Return a seed that all processes which share batches have."""
    if not part.together or part.parts == 1:
        return seed
    found: int = _agreed(seed)
    return found
