"""How put-off operations run, and where their values are: what is under the interpreter.

Rows of operations wait in records. When a value is needed, those run that it needs, and others of
their kind, batch by batch; at the end all do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from ..core.anomaly import detecting_anomaly
from ..core.errors import ArgumentError
from ..core.modes import interpret_with, is_grad_enabled, modes
from ..core.op import F
from ..core.tensor import Tensor
from .agenda import Ints, PutOffOperations, joined
from .arenas import Arenas
from .blocks import Blocks
from .choices import RanValues
from .clusters import clustered
from .deferred import DeferredTensor, become, stand
from .example_state import ExampleState
from .paths import Turns
from .pending import ClosedValues, RowTable, WaitingOperations, recomputed
from .placed_blocks import PlacedBlocks
from .records import Records
from .schedule import BatchSchedule, scheduled
from .sharing import SharedTensors
from .signatures import BatchSignature, SignatureTable
from .statistics import BatchPlan
from .written_calls import LATE

_index = attrgetter("index")
LOOKED = "the code reads the value of a tensor that it did not compute"
INSIDE = "the code calls a batched function"
SIZES = "the code computes a tensor whose size follows from values"


class PutOffRun:
    """Operations of one call or context, and the values of those that have run."""

    def __init__(self, table: SignatureTable, below: Any) -> None:
        self.table = table
        self.below = below
        self.count = 0  # of values
        self.plan = BatchPlan(table)
        self.has_read = False  # whether a value was read
        self.has_looked = False  # whether all examples see what no plan knows
        self.is_broken = False  # whether an operation has failed: what it was to give is not there
        self.shared = SharedTensors(self)
        self.closed: list[ClosedValues] = []
        self.is_plain = True  # whether values are looked at all at once: no transform is around
        self.turns: Turns | None = None  # whose operations there are, if that is to be known
        self._settled: dict[int, Tensor] = {}  # plain tensors that stood for values, by identity
        self._open()
        self.state = ExampleState(0, self)

    def _open(self) -> None:
        """Begin with no values."""
        self.is_plain = self.below is None and not detecting_anomaly()
        self.store: Any = Arenas(self.table) if self.is_plain else Blocks(self.table)
        self.start = self.count
        self._rows = RowTable()  # of the values since then
        self._unmerged: PutOffOperations | None = None
        self._waiting = WaitingOperations()
        self.records = Records(self.count)
        self.late = Records(self.count)  # what nobody reads while examples wait for values
        self._awaits_late = False  # whether one of these is read after all

    def grad(self) -> bool:
        """Tell whether gradients are recorded here."""
        return not modes.grad_overrides or is_grad_enabled()

    # -- running -----------------------------------------------------------------------------------

    def flush(
        self, needed: Sequence[int] | None = None, wanted: Sequence[int] | None = None
    ) -> None:
        """Run what was put off.

        needed   the values that are looked at afterwards, if that is known: others need not be
                 kept, so that operations can run in clusters
        wanted   the values that somebody waits for: only what these need runs, and the rest is put
                 off further, until there is more of it
        """
        records = self.records
        records.cut(self.count)
        operations = records.operations(self.table) if records.chunks else None
        if operations is not None and self.turns is not None:
            self.turns.ran(operations, records)
        late = wanted is None or self._is_late()
        self.records = Records(self.count)
        if needed is not None and operations is not None and records.is_new:
            operations = self._clustered(operations, records, needed)
        rows = self._rows.extend(self.count - self.start)
        if wanted and not late and operations is not None:
            new = min(wanted) >= operations.first  # and none of what has waited longer
            if new and self._run_round(operations, rows, records):
                return
        chosen = self._waiting.choose(
            operations, None if late else wanted, self.table, rows, self.start
        )
        parts = [] if chosen is None else [chosen]
        if late and self.late.signatures:
            parts.append(self._late_operations())
        if parts:
            self._run(joined(parts), rows, records)

    def _is_late(self) -> bool:
        """Tell whether values are needed that nobody was to need: then none of them waits again."""
        found, self._awaits_late = self._awaits_late, False
        if found:
            for i in set(self.late.signatures):
                self.table.all[i].waits = False
        return found

    def _run_round(self, operations: PutOffOperations, rows: Any, records: Records) -> bool:
        """Run what was put off since values were read last, if none of it waits; tell whether."""
        used = {i for chunk in records.chunks for i in chunk.signatures}
        if any(self.table.all[i].waits is not False for i in used):
            return False
        before = operations.refs[operations.refs < operations.first]
        if bool((rows[before - self.start] < 0).any()):  # a value that nobody was to need
            return False
        self._run(operations, rows, records)
        return True

    def _late_operations(self) -> PutOffOperations:
        records, self.late = self.late, Records(self.count)
        records.cut(self.count)
        operations = records.operations(self.table)
        if self.turns is not None:
            self.turns.ran(operations, records)
        return operations._replace(level=operations.level - LATE)

    def _clustered(self, operations: Any, records: Records, needed: Sequence[int]) -> Any:
        """Return operations in clusters, if these are all that the run has put off."""
        if records.first != self.start or self.late.signatures:
            return operations
        self._unmerged = operations
        known = np.array([i for i in needed if i >= self.start], np.int64)
        operations = clustered(operations, self.table, known)
        return records.arranged(operations)

    def _run(self, operations: PutOffOperations, rows: Any, records: Records) -> None:
        plan = scheduled(operations, self.table, rows, self.start, self.store.size)
        try:
            self._run_batches(plan, records)
        except BaseException:
            self.is_broken = True
            raise

    def _run_batches(self, plan: BatchSchedule, records: Records) -> None:
        known = dict[BatchSignature, list[Any]]()
        self.plan.rounds += 1
        with interpret_with(self.below):
            store = self._store_for(plan.counts)
            store.prepare(plan.counts)
            for batch in plan.batches:
                signature = batch.signature
                if signature.work is None:
                    store.add(signature.outs[0], records.payload(signature.outs[0]))
                    continue
                shared = known.get(signature)
                if shared is None:
                    shared = known[signature] = self._shared_operands(signature)
                if batch.splits is not None:
                    shared = [*shared[:-1], batch.splits]
                store.run(batch, shared)
                self.plan.ran(signature, batch.size)
            store.launch()

    def _store_for(self, kinds: Iterable[int]) -> Any:
        """Return what holds the values: tensors, once some of them are on a device."""
        if self.store.__class__ is Arenas and self.table.any_elsewhere(kinds):
            self.store = PlacedBlocks(self.store)
        return self.store

    def _shared_operands(self, signature: BatchSignature) -> list[Any]:
        """Return what members of its batches share, in the places of these operands."""
        found: list[Any] = [None] * len(signature.specs)
        for place, slot in signature.slots:
            found[place] = self.shared.held[slot]
        return found

    # -- values ------------------------------------------------------------------------------------

    def is_there(self, index: int) -> bool:
        """Tell whether a value has run."""
        place, rows = index - self.start, self._rows.rows
        return place < 0 or (place < len(rows) and bool(rows[place] >= 0))

    def _values_at(self, x: DeferredTensor) -> ClosedValues:
        """Return the values among which one is that was put off."""
        index = x.index
        if index >= self.start:
            if not self.is_there(index):
                self.wait(x)
            return ClosedValues(self.start, self.store, self._rows.known, self._unmerged)
        found: ClosedValues = next(v for v in reversed(self.closed) if index >= v.start)
        return found

    def place(self, x: DeferredTensor) -> tuple[Any, int]:
        """Return where a value lies, when it has run."""
        if x.index >= self.start and self.is_there(x.index):
            return self.store, int(self._rows.rows[x.index - self.start])
        values = self._values_at(x)
        return values.store, int(values.rows[x.index - values.start])

    def _again(self, x: DeferredTensor) -> Tensor:
        """Return a value that was only computed on the way to others, inside of a cluster."""
        return recomputed(self._values_at(x), x.index, self.table, self.shared.held)

    def read(self, x: DeferredTensor) -> np.ndarray[Any, Any]:
        """Return the value of what stands for one: what it needs runs first."""
        if not self.is_there(x.index):
            known = None if self.state.ahead is None else self._known_ahead(x)
            if known is not None:
                return known
            self.wait(x)
        store, place = self.store, x.index - self.start
        if place >= 0 and store.__class__ is Arenas:  # thousands are read
            row = self._rows.rows[place]
            if row >= 0:
                array: np.ndarray[Any, Any] = store.arrays[x.kind][row]
                return array
        store, row = self.place(x)
        with interpret_with(self.below):
            if row < 0:
                return self._again(x)._read()
            found: np.ndarray[Any, Any] = store.read(x.kind, row)
        return found

    def _known_ahead(self, x: DeferredTensor) -> np.ndarray[Any, Any] | None:
        """Return a value that is known before it runs here, as long as its example has not waited.

        Until then the values of an example are numbered side by side.
        """
        self.has_read = True
        state, found = self.state, None
        if state.ahead.places == self.table.data_places:
            found = state.ahead.value(x.index - state.first, x.kind)
        return found

    def wait(self, x: DeferredTensor) -> None:
        """Come back when a value has run."""
        self.state.ahead = None
        self.has_read = True
        state, index = self.state, x.index
        if x.level >= LATE:
            self._awaits_late = True
        if state.task is None:
            self.flush(wanted=[index])
            return
        state.awaited = index
        while not self.is_there(index):  # until somebody has run it
            state.task.suspend()

    def settle(self, x: DeferredTensor) -> None:
        """Let what stands for a value be a plain tensor."""
        if x.index >= self.start:
            self.close()
        store, row = self.place(x)
        with interpret_with(self.below):
            self.become(x, self._again(x) if row < 0 else store.row(x.kind, row))

    def settle_all(self, values: Sequence[DeferredTensor], kind: int) -> None:
        """Let what stands for values of one type be plain tensors, the rows of one."""
        together = self._together(values)
        if together is None:
            for x in values:
                self.settle(x)
            return
        store, rows = together
        with interpret_with(self.below):
            for x, row in zip(values, store.apart(kind, rows), strict=True):
                become(x, row)

    def ran_values(self) -> RanValues:
        """Return the values of a run that is complete, from when it was closed before."""
        values = self.closed[-1]
        return RanValues(values.store.arrays, values.rows, values.start)

    def block(self, values: Sequence[DeferredTensor], kind: int) -> Tensor | None:
        """Return values of one type as the rows of a tensor; None if they lie in no one place."""
        together = self._together(values)
        if together is None:
            return None
        store, rows = together
        with interpret_with(self.below):
            found: Tensor = store.take(kind, rows)
        return found

    def _together(self, values: Sequence[DeferredTensor]) -> tuple[Any, Ints] | None:
        """Return the store that values of one type lie in, and where; None if in no one place."""
        among = self._values_at(values[0])
        places = np.array([x.index for x in values]) - among.start
        if any(self._values_at(x).store is not among.store for x in _ends(values)):
            return None
        rows = among.rows[places]
        return None if bool((rows < 0).any()) else (among.store, rows)

    def become(self, x: DeferredTensor, tensor: Tensor) -> None:
        """Let what stands for a value be a plain tensor, which code may write as before."""
        become(x, tensor)
        self._settled[id(x)] = x

    def detached(self, x: DeferredTensor) -> Tensor:
        """Return a value cut off from the tape."""
        result: Tensor = F.stop_gradient(x)
        return result

    def write(self, target: Tensor, x: DeferredTensor) -> None:
        """Let a tensor stand for a value if it did before; one from outside belongs to all."""
        if self._settled.pop(id(target), None) is not None:
            self.before_write(target)
            self.close()  # what waits needs the value of before
            self.state.data.pop(id(target), None)
            stand(target, F.positive(x))
            return
        raise ArgumentError(
            "a parameter, a buffer or another tensor from outside is shared by all examples and "
            "cannot take the value of one; return the value from the function instead"
        )

    def looked_at(self, x: Tensor, *, value: bool) -> None:
        """Note that code looks at a tensor that is not put off.

        A plan knows what it found only if it is the value of a tensor in the example.
        """
        if value and self.state.looks_at(x):
            return
        self.state.has_looked = True
        self.plan.reason = self.plan.reason or LOOKED

    def calls_inside(self) -> None:
        """Note that code calls a batched function: what that does in another call is not known."""
        self.state.has_looked = True
        self.plan.reason = self.plan.reason or INSIDE

    def saw_sizes(self) -> None:
        """Note that all examples may look at sizes that follow from values."""
        self.has_looked = True
        self.plan.reason = self.plan.reason or SIZES

    def before_write(self, target: Tensor) -> None:
        """Run what was put off before a tensor from outside, which it may use, is written."""
        self.state.has_written = True
        if target in self.shared:
            self.close()
            self.shared.forget()  # what follows takes values as they are then

    def close(self, needed: Sequence[int] | None = None) -> None:
        """Run what was put off; what follows begins anew, with these values as data."""
        self.flush(needed)
        if self.count > self.start:
            values = ClosedValues(self.start, self.store, self._rows.known, self._unmerged)
            self.closed.append(values)
            self.plan.closed(self.store)
            self._open()


def _ends(values: Sequence[DeferredTensor]) -> tuple[DeferredTensor, DeferredTensor]:
    """Return the values that were put off first and last: others lie where both of them do."""
    return min(values, key=_index), max(values, key=_index)
