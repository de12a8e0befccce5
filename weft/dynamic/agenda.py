"""Put-off operations as columns, in which order they run, and which run as one.

Operations of one signature at one depth form a bucket; what depends on what is asked of buckets,
of which there are few, and not of operations. Then, until all have run: of the signatures that have
buckets ready, the one whose operations lie least deep on average goes first (they unlock what is
deeper, and operations that only end a computation wait until all of their kind are there; Neubig,
Goldberg and Dyer 2017), and of equals the one that most operations wait for. All its ready buckets
are one batch. The loops of it are native (backends/cpu/runtime/batch_order.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ..backends.cpu.runtime.batch_order import FoundOrder, OperationColumns, batch_order

Ints = NDArray[np.int64]


class PutOffOperations(OperationColumns):
    """Put-off operations: columns of one row each.

    Values below the first number were there before, and not all numbers from there on are of
    results.
    """

    __slots__ = ()

    def makers(self) -> Ints:
        """Return for each number from the first on the row that has it as a result, or -1."""
        found = np.full(self.numbers, -1, np.int64)
        rows = np.repeat(np.arange(len(self.outs)), self.outs)
        found[spans(self.firsts, self.outs) - self.first] = rows
        return found

    def edges(self) -> tuple[Ints, Ints]:
        """Return for each operand that one of these makes the rows that read and make it."""
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


def batches(operations: PutOffOperations) -> FoundOrder:
    """Return the rows of operations that run together, batch by batch in order."""
    found = batch_order(operations)
    assert found is not None, "an operation lies no deeper than what it reads"
    return found


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


def _distinct(numbers: Ints, end: int) -> Ints:
    """Return numbers below an end in order, each once."""
    there = np.zeros(end, np.bool_)
    there[numbers] = True
    return np.flatnonzero(there)
