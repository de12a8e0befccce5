"""In which order put-off operations run, and which run as one: all of it on index arrays.

Operations of one signature at one depth form a bucket; what depends on what is asked of buckets,
of which there are few, and not of operations. Then, until all have run: of the signatures that have
buckets ready, the one whose operations lie least deep on average goes first (they unlock what is
deeper, and operations that only end a computation wait until all of their kind are there; Neubig,
Goldberg and Dyer 2017), and of equals the one that most operations wait for. All its ready buckets
are one batch.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class PutOffOperations(NamedTuple):
    """Put-off operations: columns of one row each.

    signature   the number of its signature
    level       how deep it lies
    refs        the values that operations read, one after another
    arity       how many of these each has
    outs        how many results each has
    firsts      the number of its first result; those of the others follow
    first       the least number of a result: values below were there before
    numbers     how many numbers there are from there on; not all are of results
    """

    signature: Ints
    level: Ints
    refs: Ints
    arity: Ints
    outs: Ints
    firsts: Ints
    first: int
    numbers: int

    def makers(self) -> Ints:
        """Return for each number from the first on the row that has it as a result, or -1."""
        found = np.full(self.numbers, -1, np.int64)
        rows = np.repeat(np.arange(len(self.outs)), self.outs)
        found[results_of(self.firsts, self.outs) - self.first] = rows
        return found


def results_of(firsts: Ints, outs: Ints) -> Ints:
    """Return the numbers of all results, from those of the first ones."""
    before = np.cumsum(outs) - outs
    return np.repeat(firsts - before, outs) + np.arange(int(outs.sum()))


def batches(operations: PutOffOperations) -> list[Ints]:
    """Return the rows of operations that run together, batch by batch in order."""
    count = len(operations.signature)
    if count == 0:
        return []
    depth = int(operations.level.max()) + 1
    keys = operations.signature * depth + operations.level
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    rows = np.split(order, starts[1:])
    if len(rows) == 1:
        return [order]
    bucket = np.empty(count, np.int64)
    bucket[order] = np.repeat(np.arange(len(rows)), np.diff(np.append(starts, count)))
    signature = operations.signature[order[starts]].tolist()
    before, after = _waiting(operations, bucket, len(rows))
    turns = _turns(signature, _mean_levels(operations), [*map(len, rows)], before, after)
    return [rows[t[0]] if len(t) == 1 else np.concatenate([rows[i] for i in t]) for t in turns]


def _mean_levels(operations: PutOffOperations) -> dict[int, float]:
    total = np.bincount(operations.signature, operations.level)
    count = np.bincount(operations.signature)
    present = np.flatnonzero(count)
    return dict(zip(present.tolist(), (total[present] / count[present]).tolist(), strict=True))


def _waiting(
    operations: PutOffOperations, bucket: Ints, size: int
) -> tuple[list[int], list[list[int]]]:
    """Return for each bucket how many others it waits for, and which wait for it."""
    maker = operations.makers()
    reader = np.repeat(np.arange(len(bucket)), operations.arity)
    inside = operations.refs >= operations.first  # others are there already
    made = bucket[maker[operations.refs[inside] - operations.first]]
    pairs = np.unique(made * size + bucket[reader[inside]])
    first, second = np.divmod(pairs, size)
    before = np.bincount(second, minlength=size).tolist()
    cuts = np.searchsorted(first, np.arange(1, size))
    return before, [part.tolist() for part in np.split(second, cuts)]


def _turns(
    signature: list[int],
    means: dict[int, float],
    sizes: list[int],
    before: list[int],
    after: list[list[int]],
) -> list[list[int]]:
    """Return the buckets that run together, turn by turn."""
    ready: dict[int, list[int]] = {}
    heap: list[tuple[float, int, int]] = []

    def add(i: int) -> None:
        s = signature[i]
        if s in ready:
            ready[s].append(i)
        else:
            ready[s] = [i]
            heappush(heap, (means[s], -sum([sizes[j] for j in after[i]]), s))

    for i, count in enumerate(before):
        if not count:
            add(i)
    turns = []
    while heap:
        turn = ready.pop(heappop(heap)[2])
        turns.append(turn)
        for i in turn:
            for j in after[i]:
                before[j] -= 1
                if not before[j]:
                    add(j)
    return turns
