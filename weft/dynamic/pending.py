"""Where the values of a run lie: of operations that are about to run, and of those that have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .agenda import Ints, PutOffOperations
from .signatures import SignatureTable


class ClosedValues(NamedTuple):
    """Values that have run.

    start      the number of the first
    rows       where each lies in the store, within its type; -1: it was not kept
    unmerged   what was put off, if it ran in clusters
    """

    start: int
    store: Any
    rows: Ints
    unmerged: PutOffOperations | None


class PendingRows:
    """Operations that are about to run, and where values lie.

    rows   of each value since the run's first, within its type
    """

    def __init__(self, operations: PutOffOperations, rows: Ints, start: int) -> None:
        self.operations = operations
        self.start = start
        self.rows = np.concatenate((rows, np.full(operations.numbers, -1, np.int64)))
        self._refs = operations.refs - start
        self._starts = np.cumsum(operations.arity) - operations.arity
        self._firsts = operations.firsts - start

    def counts(self, table: SignatureTable) -> dict[int, int]:
        """Return how many results of each type there will be."""
        found: dict[int, int] = {}
        for i, count in enumerate(np.bincount(self.operations.signature).tolist()):
            for kind in table.all[i].outs if count else ():
                found[kind] = found.get(kind, 0) + count
        return found

    def operands(self, rows: Ints, arity: int) -> tuple[Ints, list[Ints]]:
        """Return where the operands of operations lie, the operations in the order of the first."""
        starts = self._starts[rows]
        found = [self.rows[self._refs[starts + i]] for i in range(arity)]
        if len(rows) > 1 and bool((found[0][1:] < found[0][:-1]).any()):
            order = np.argsort(found[0], kind="stable")
            rows, found = rows[order], [column[order] for column in found]
        return rows, found

    def place(self, rows: Ints, kinds: Sequence[int], begins: Sequence[int]) -> None:
        """Note where the results of a batch lie: side by side, one result after another."""
        size, seen = len(rows), dict[int, int]()
        firsts = self._firsts[rows]
        for i, (kind, begin) in enumerate(zip(kinds, begins, strict=True)):
            before = seen.get(kind, 0)
            seen[kind] = before + size
            self.rows[firsts + i] = np.arange(begin + before, begin + before + size)
