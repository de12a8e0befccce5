"""In which order put-off operations run, and which run as one: all of it on index arrays.

Operations of one signature at one depth form a bucket; what depends on what is asked of buckets,
of which there are few, and not of operations. Then, until all have run: of the signatures that have
buckets ready, the one whose operations lie least deep on average goes first (they unlock what is
deeper, and operations that only end a computation wait until all of their kind are there; Neubig,
Goldberg and Dyer 2017), and of equals the one that most operations wait for. All its ready buckets
are one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
FEW_KEYS = 1 << 16  # so many are sorted digit by digit, in linear time
MOST_PAIRS = 1 << 20  # of buckets, up to which all of them have a place in a table


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
    sources     the row that makes each value which is read, if that is known of all of them
    """

    signature: Ints
    level: Ints
    refs: Ints
    arity: Ints
    outs: Ints
    firsts: Ints
    first: int
    numbers: int
    sources: Ints | None = None

    def makers(self) -> Ints:
        """Return for each number from the first on the row that has it as a result, or -1."""
        found = np.full(self.numbers, -1, np.int64)
        rows = np.repeat(np.arange(len(self.outs)), self.outs)
        found[spans(self.firsts, self.outs) - self.first] = rows
        return found

    def edges(self) -> tuple[Ints, Ints]:
        """Return for each operand that one of these makes the rows that read and make it."""
        if self.sources is not None:
            return np.repeat(np.arange(len(self.arity)), self.arity), self.sources
        inside = np.flatnonzero(self.refs >= self.first)  # others are there already
        made = self.makers()[self.refs[inside] - self.first]
        reader = np.repeat(np.arange(len(self.arity)), self.arity)[inside]
        missing = made < 0
        return (reader[~missing], made[~missing]) if missing.any() else (reader, made)

    def ordered(self, order: Ints) -> PutOffOperations:
        """Return them in another order."""
        begins, arity = np.cumsum(self.arity) - self.arity, self.arity[order]
        return self._replace(
            signature=self.signature[order],
            level=self.level[order],
            refs=self.refs[spans(begins[order], arity)],
            arity=arity,
            outs=self.outs[order],
            firsts=self.firsts[order],
            sources=None,
        )

    def part(self, chosen: NDArray[np.bool_]) -> PutOffOperations:
        """Return some of them."""
        return self._replace(
            signature=self.signature[chosen],
            level=self.level[chosen],
            refs=self.refs[np.repeat(chosen, self.arity)],
            arity=self.arity[chosen],
            outs=self.outs[chosen],
            firsts=self.firsts[chosen],
            sources=None,
        )


def joined(parts: Sequence[PutOffOperations]) -> PutOffOperations:
    """Return operations of several times as one, in their order.

    Levels begin anew each time: here those of later ones lie behind.
    """
    if len(parts) == 1:
        return parts[0]
    depths = [int(part.level.max(initial=0)) + 1 for part in parts]
    before = [0, *accumulate(depths)]
    first = min(part.first for part in parts)
    end = max(part.first + part.numbers for part in parts)
    return PutOffOperations(
        np.concatenate([part.signature for part in parts]),
        np.concatenate([part.level + n for part, n in zip(parts, before, strict=False)]),
        np.concatenate([part.refs for part in parts]),
        np.concatenate([part.arity for part in parts]),
        np.concatenate([part.outs for part in parts]),
        np.concatenate([part.firsts for part in parts]),
        first,
        end - first,
    )


def spans(starts: Ints, lengths: Ints) -> Ints:
    """Return the numbers of several ranges, one after another."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


class RunOrder(NamedTuple):
    """The rows of operations in the order in which they run, and how many each batch has."""

    rows: Ints
    sizes: Ints


def batches(operations: PutOffOperations) -> RunOrder:
    """Return the rows of operations that run together, batch by batch in order."""
    count = len(operations.signature)
    depth = int(operations.level.max(initial=0)) + 1
    keys = operations.signature * depth + operations.level
    small = int(operations.signature.max(initial=0) + 1) * depth <= FEW_KEYS
    order = np.argsort(keys.astype(np.uint16) if small else keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    if count == 0 or len(starts) == 1:
        return RunOrder(order, np.full(min(count, 1), count))
    sizes = np.diff(starts, append=count)
    bucket = np.empty(count, np.int64)
    bucket[order] = np.repeat(np.arange(len(starts)), sizes)
    signature = operations.signature[order[starts]].tolist()
    before, after = _waiting(operations, bucket, len(starts))
    turns = _turns(signature, _mean_levels(operations), sizes.tolist(), before, after)
    chosen = np.array([i for turn in turns for i in turn])
    lengths = sizes[chosen]
    ends = np.cumsum([len(turn) for turn in turns])
    begins = np.concatenate(([0], ends[:-1]))
    return RunOrder(order[spans(starts[chosen], lengths)], np.add.reduceat(lengths, begins))


def _mean_levels(operations: PutOffOperations) -> dict[int, float]:
    total = np.bincount(operations.signature, operations.level)
    count = np.bincount(operations.signature)
    present = np.flatnonzero(count)
    return dict(zip(present.tolist(), (total[present] / count[present]).tolist(), strict=True))


def _waiting(
    operations: PutOffOperations, bucket: Ints, size: int
) -> tuple[list[int], list[list[int]]]:
    """Return for each bucket how many others it waits for, and which wait for it."""
    reader, made = operations.edges()
    pairs = _distinct(bucket[made] * size + bucket[reader], size * size)
    first, second = np.divmod(pairs, size)
    before = np.bincount(second, minlength=size).tolist()
    bounds = np.searchsorted(first, np.arange(size + 1)).tolist()
    waiting = second.tolist()
    return before, [waiting[begin:end] for begin, end in pairwise(bounds)]


def _distinct(keys: Ints, end: int) -> Ints:
    """Return keys below an end in order, each once."""
    if end > MOST_PAIRS:
        return np.unique(keys)
    there = np.zeros(end, np.bool_)
    there[keys] = True
    return np.flatnonzero(there)


def alike(operations: PutOffOperations, numbers: Ints, late: Ints) -> NDArray[np.bool_] | None:
    """Tell which operations to run for certain values: those they need, and others of their kind.

    What waits is of signatures that nothing needs so far, or behind such.

    late   the rows that read what runs later; None is returned if one of them is needed
    """
    needed = ancestors(operations, numbers)
    if bool(needed[late].any()):
        return None
    kinds = np.zeros(int(operations.signature.max()) + 1, np.bool_)
    kinds[operations.signature[needed | (operations.arity == 0)]] = True
    waits = ~kinds[operations.signature]
    waits[late] = True
    reader, made = operations.edges()
    ahead = waits
    while bool(ahead.any()):
        behind = np.zeros(len(waits), np.bool_)
        behind[reader[ahead[made]]] = True
        ahead = behind & ~waits
        waits |= ahead
    return ~waits


def ancestors(operations: PutOffOperations, numbers: Ints) -> NDArray[np.bool_]:
    """Tell which of some operations certain values depend on."""
    maker = operations.makers()
    starts = np.cumsum(operations.arity) - operations.arity
    found = np.zeros(len(operations.signature), np.bool_)
    ahead = maker[numbers - operations.first]
    while len(ahead):
        found[ahead] = True
        refs = operations.refs[spans(starts[ahead], operations.arity[ahead])]
        rows = maker[refs[refs >= operations.first] - operations.first]
        rows = rows[rows >= 0]
        ahead = _distinct(rows[~found[rows]], len(found))
    return found


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
    assert not any(before), "an operation lies no deeper than what it reads"
    return turns
