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
from .choices import ForeignValueError, OwnNumbers, choices_of
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
        return [self._plan(rows, x, table) for x in ended]

    def _owner_of(self, numbers: Ints) -> Ints:
        found: Ints = np.array(self._owners)[np.searchsorted(self._firsts, numbers, "right") - 1]
        return found

    def _plan(self, rows: _OwnedRows, x: EndedExample, table: SignatureTable) -> ExamplePlan | None:
        owner, reads = x.state.owner, x.state.reads
        if reads is None or rows.is_mixed[owner]:
            return None
        own = rows.numbers_of(owner)
        choices = choices_of(reads, own)
        try:
            leaves = x.leaves.renumbered(own.one)
        except ForeignValueError:
            return None
        if choices is None:
            return None
        plan = ExamplePlan(None, rows.counts[owner], leaves)
        plan.choices, plan.looks = choices, x.state.looks
        plan.take(*rows.cut(owner))
        for kind, payload in rows.data(table).get(owner, {}).items():
            plan.add_data(kind, kept_data(payload, x.state, table.types[kind].dtype))
        return plan


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
        self._signature, self._arity, outs, firsts = (
            x[order] for x in (signature, arity, outs, firsts)
        )
        refs, owner = refs[spans(begins[order], self._arity)], owner[order]
        # Numbers in the order of examples, and within each of its values.
        number = np.full(count, -1, np.int64)
        number[spans(firsts, outs)] = np.arange(int(outs.sum()))
        self._number = number
        self._edges = np.searchsorted(owner, np.arange(owners + 1))
        values = np.concatenate(([0], np.cumsum(outs)))
        self._begins = values[self._edges]
        self.counts = np.diff(self._begins).tolist()
        self._firsts, self._refs = number[firsts], number[refs]
        self._reads = np.concatenate(([0], np.cumsum(self._arity)))[self._edges]
        self.is_mixed = self._mixed(owner, owners)
        self._level = batch_depths(
            np.maximum(self._refs, 0), self._arity, outs, self._firsts, len(number)
        )
        self._data: dict[int, dict[int, list[Any]]] | None = None

    def _mixed(self, owner: Ints, owners: int) -> Any:
        """Tell which examples read values that are not their own."""
        reader = np.repeat(owner, self._arity)
        begin, end = self._begins[reader], self._begins[reader + 1]
        found = np.zeros(owners, np.bool_)
        found[reader[(self._refs < begin) | (self._refs >= end)]] = True
        return found

    def numbers_of(self, owner: int) -> OwnNumbers:
        """Return an example's own numbers of values."""
        return OwnNumbers(self._number, *self._begins[owner : owner + 2].tolist())

    def cut(self, owner: int) -> tuple[Ints, Ints, int]:
        """Return the columns of an example, what it reads, and how deep it is."""
        rows = slice(*self._edges[owner : owner + 2].tolist())
        reads = slice(*self._reads[owner : owner + 2].tolist())
        begin = self._begins[owner]
        level = self._level[rows]
        columns = np.stack((self._signature[rows], level, self._firsts[rows] - begin))
        return columns, self._refs[reads] - begin, int(level.max(initial=0))

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
