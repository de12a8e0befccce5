"""Values of a run: where those lie that have run, and which operations wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.modes import GradMode
from ..core.tensor import Tensor
from .agenda import Ints, PutOffOperations, alike, joined
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


class RowTable:
    """Where each value of a run lies within its type, as far as it has run; else -1."""

    def __init__(self) -> None:
        self.rows = np.empty(0, np.int64)  # with room behind the last value
        self._count = 0

    def extend(self, count: int) -> Ints:
        """Return the rows of so many values, of which some may be new."""
        if count > len(self.rows):
            grown = np.full(max(count, 2 * len(self.rows)), -1, np.int64)
            grown[: self._count] = self.rows[: self._count]
            self.rows = grown
        self._count = max(self._count, count)
        return self.known

    @property
    def known(self) -> Ints:
        """The rows of all values so far."""
        return self.rows[: self._count]


class WaitingOperations:
    """Operations that nobody has needed so far: they run when somebody does, or in the end."""

    def __init__(self) -> None:
        self._parts: list[PutOffOperations] = []

    def __bool__(self) -> bool:
        return bool(self._parts)

    def choose(
        self,
        new: PutOffOperations | None,
        wanted: Sequence[int] | None,
        table: SignatureTable,
        rows: Ints,
        start: int,
    ) -> PutOffOperations | None:
        """Return what is to run now; what is left of the new ones waits.

        wanted   the values that are needed; None for all. If one needs what has waited longer, all
                 run: nothing is looked through twice.
        """
        if wanted is not None and new is not None:
            chosen = self._needed(new, np.array(wanted, np.int64), table, rows, start)
            if chosen is not None:
                if not chosen.all():
                    self._parts.append(new.part(~chosen))
                return new.part(chosen)
        parts = self._parts if new is None else [*self._parts, new]
        self._parts = []
        return joined(parts) if parts else None

    def _needed(
        self, new: PutOffOperations, wanted: Ints, table: SignatureTable, rows: Ints, start: int
    ) -> Any:
        """Tell which new operations to run for some values; None if they need what waits."""
        if bool((wanted < new.first).any()):
            return None
        before = new.refs < new.first
        late = rows[new.refs[before] - start] < 0
        used = np.flatnonzero(np.bincount(new.signature)).tolist()
        if not late.any() and all(table.all[i].waits is False for i in used):
            return np.ones(len(new.signature), np.bool_)
        reader = np.repeat(np.arange(len(new.arity)), new.arity)
        chosen = alike(new, wanted, reader[before][late])
        if chosen is not None:
            runs = set(np.flatnonzero(np.bincount(new.signature[chosen])).tolist())
            for i in used:
                signature = table.all[i]
                signature.waits = i not in runs and signature.waits is not False
        return chosen


def recomputed(
    values: ClosedValues, index: int, table: SignatureTable, held: dict[int, Tensor]
) -> Tensor:
    """Return a value that was only computed on the way to others, inside of a cluster."""
    row = int(values.rows[index - values.start])
    operations = values.unmerged
    assert operations is not None, "all values were kept"
    maker = int(operations.makers()[index - operations.first])
    signature = table.all[int(operations.signature[maker])]
    which = index - int(operations.firsts[maker])
    if row >= 0:
        found: Tensor = values.store.row(signature.outs[which], row)
        return found
    begin = int(operations.arity[:maker].sum())
    refs = iter(operations.refs[begin : begin + signature.arity].tolist())
    given = [
        recomputed(values, next(refs), table, held)
        if spec.__class__ is int
        else None
        if spec is None
        else held[spec.index]
        for spec in signature.specs
    ]
    with GradMode(signature.grad):
        made: Any = signature.work.alone(tuple(given))
    again: Tensor = made[which] if isinstance(made, tuple) else made
    return again
