"""Plans of examples that were suspended: what each of them put off, between others, as one.

While examples wait for values their operations stand between those of others, in several rounds,
and some wait for the end. Each turn of an example numbers its values side by side, so the numbers
tell whose an operation is. What the code found of the values that it read stands beside its plan
(choices.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..backends.cpu.runtime.batch_order import batch_depths
from .agenda import Ints, PutOffOperations, spans
from .choices import ForeignValueError, OwnNumbers, PathChoices, choices_of
from .clusters import clustered
from .example_state import ExampleState
from .plans import ExamplePlan, ResultLeaves, kept_data
from .records import Records, each_of, joined_column
from .signatures import SignatureTable


class EndedExample(NamedTuple):
    """An example that has ended: its state, and the leaves of its result by the run's numbers."""

    state: ExampleState
    leaves: ResultLeaves


class PassedPart(NamedTuple):
    """Operations that ran together, and the records that they stood in."""

    operations: PutOffOperations
    records: Records


class Turns:
    """Whose operations a run has put off, and all of these."""

    def __init__(self) -> None:
        self._firsts = [0]  # the number of the first value of each turn
        self._owners = [0]  # and the number of its example; before there were turns it is nobody's
        self._count = 1  # of examples
        self._parts: list[PassedPart] = []

    def begin(self, state: ExampleState, first: int) -> None:
        """Let values be those of an example, from a number on."""
        self._firsts.append(first)
        if state.owner < 0:
            state.owner, self._count = self._count, self._count + 1
        self._owners.append(state.owner)

    def ran(self, operations: PutOffOperations, records: Records) -> None:
        """Note operations that run."""
        self._parts.append(PassedPart(operations, records))

    def plans(
        self, ended: Sequence[EndedExample], table: SignatureTable, count: int
    ) -> list[ExamplePlan | None]:
        """Return the plans of examples whose run is complete; None of those that have none.

        count   how many values were numbered
        """
        if not self._parts:
            return [None] * len(ended)
        wanted = np.zeros(self._count, np.bool_)
        wanted[[x.state.owner for x in ended]] = True
        rows = _OwnedRows(self._parts, self._owner_of, count, wanted)
        found = [_found_by(x, rows) for x in ended]
        rows.cluster(table, [x.needed for x in found if x is not None])
        return [
            None if own is None else rows.plan(x.state, own, table)
            for x, own in zip(ended, found, strict=True)
        ]

    def _owner_of(self, numbers: Ints) -> Ints:
        found: Ints = np.array(self._owners)[np.searchsorted(self._firsts, numbers, "right") - 1]
        return found


class FoundByCode(NamedTuple):
    """What an example's code found and returns, by its own numbers; and what of it is needed."""

    choices: PathChoices
    leaves: ResultLeaves
    needed: Ints


def _found_by(x: EndedExample, rows: _OwnedRows) -> FoundByCode | None:
    """Return what a plan says of an example besides its rows; None if it can have none."""
    reads, own = x.state.reads, rows.numbers_of(x.state.owner)
    if reads is None or rows.is_mixed[x.state.owner]:
        return None
    try:
        choices, leaves = choices_of(reads, own), x.leaves.renumbered(own.one)
    except ForeignValueError:
        return None
    if choices is None:
        return None
    needed = np.concatenate((choices.values(), np.array(leaves.numbers(), np.int64)))
    return FoundByCode(choices, leaves, needed + own.begin)


class _OwnedRows:
    """The operations of some examples of a run, one after another, with their own numbers.

    counts     how many values each example has
    is_mixed   whether an example reads values of others
    """

    def __init__(
        self,
        parts: Sequence[PassedPart],
        owner_of: Callable[[Ints], Ints],
        count: int,
        wanted: NDArray[np.bool_],
    ) -> None:
        self._parts, self._owner_of, owners = parts, owner_of, len(wanted)
        columns = [part.operations for part in parts]
        signature, refs, arity, outs, firsts = (
            np.concatenate([getattr(x, name) for x in columns])
            for name in ("signature", "refs", "arity", "outs", "firsts")
        )
        owner = owner_of(firsts)
        chosen = np.flatnonzero(wanted[owner])
        order = chosen[np.lexsort((firsts[chosen], owner[chosen]))]
        begins = np.cumsum(arity) - arity
        signature, lengths, outs, firsts = (x[order] for x in (signature, arity, outs, firsts))
        refs, owner = refs[spans(begins[order], lengths)], owner[order]
        # Numbers in the order of examples, and within each of its values.
        number = np.full(count, -1, np.int64)
        number[spans(firsts, outs)] = np.arange(int(outs.sum()))
        self._number = number
        values = np.concatenate(([0], np.cumsum(outs)))
        self._begins = values[np.searchsorted(owner, np.arange(owners + 1))]
        self.counts = np.diff(self._begins).tolist()
        firsts, refs = number[firsts], number[refs]
        self.is_mixed = self._mixed(np.repeat(owner, lengths), refs)
        level = batch_depths(np.maximum(refs, 0), lengths, outs, firsts, len(number))
        made = signature, level, refs, lengths, outs, firsts
        self._rows = PutOffOperations(*made, 0, int(values[-1]))
        self._cut_rows()
        self._data: dict[int, dict[int, list[Any]]] | None = None

    def _mixed(self, reader: Ints, refs: Ints) -> NDArray[np.bool_]:
        """Tell which examples read values that are not their own."""
        found = np.zeros(len(self.counts), np.bool_)
        found[reader[(refs < self._begins[reader]) | (refs >= self._begins[reader + 1])]] = True
        return found

    def _cut_rows(self) -> None:
        """Find where the operations of each example begin, and what they read."""
        self._edges = np.searchsorted(self._rows.firsts, self._begins)
        self._reads = np.concatenate(([0], np.cumsum(self._rows.arity)))[self._edges]

    def cluster(self, table: SignatureTable, needed: Sequence[Ints]) -> None:
        """Let operations that come together be one, as where nobody reads; some stay results."""
        if needed and not self.is_mixed.any():
            self._rows = clustered(self._rows, table, np.unique(np.concatenate(needed)))
            self._cut_rows()

    def numbers_of(self, owner: int) -> OwnNumbers:
        """Return an example's own numbers of values."""
        return OwnNumbers(self._number, *self._begins[owner : owner + 2].tolist())

    def plan(self, state: ExampleState, found: FoundByCode, table: SignatureTable) -> ExamplePlan:
        """Return the plan of an example."""
        owner = state.owner
        plan = ExamplePlan(None, self.counts[owner], found.leaves)
        plan.choices, plan.looks, plan.places = found.choices, state.looks, state.places
        plan.take(*self._cut(owner))
        for kind, payload in self.data(table).get(owner, {}).items():
            plan.add_data(kind, kept_data(payload, state, table.types[kind].dtype))
        return plan

    def _cut(self, owner: int) -> tuple[Ints, Ints, int]:
        """Return the columns of an example, what it reads, and how deep it is."""
        rows = slice(*self._edges[owner : owner + 2].tolist())
        reads = slice(*self._reads[owner : owner + 2].tolist())
        begin, level = self._begins[owner], self._rows.level[rows]
        columns = np.stack((self._rows.signature[rows], level, self._rows.firsts[rows] - begin))
        return columns, self._rows.refs[reads] - begin, int(level.max(initial=0))

    def data(self, table: SignatureTable) -> dict[int, dict[int, list[Any]]]:
        """Return what examples brought: by example and type, in order."""
        if self._data is None:
            self._data = {}
            chunks = [c for part in self._parts for c in part.records.chunks if c.is_new]
            signature = joined_column([chunk.signatures for chunk in chunks])
            firsts = joined_column([chunk.firsts for chunk in chunks])
            for kind in dict.fromkeys([kind for chunk in chunks for kind in chunk.data]):
                owners = self._owner_of(firsts[signature == table.data(kind).index]).tolist()
                for owner, x in zip(owners, each_of(chunks, kind), strict=True):
                    self._data.setdefault(owner, {}).setdefault(kind, []).append(x)
        return self._data
