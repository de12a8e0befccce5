"""The interpreter that puts operations off: one call of a batched function, or one context.

Each operation becomes a row: its signature, how deep it lies and which values it reads. Operands
are data (values that differ between members of a batch: results, and tensors made or brought by an
example) or shared (parameters and other tensors from outside, literals, and what is computed from
such alone, which runs once for all). When a value is needed, all rows run, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.anomaly import detecting_anomaly
from ..core.device import device
from ..core.dispatch import run
from ..core.dtype import default_float, int64
from ..core.errors import ArgumentError
from ..core.modes import interpret_with, is_grad_enabled, modes, run_below
from ..core.op import F
from ..core.rng import Generator
from ..core.shape import TensorType, type_of
from ..core.tensor import Constant, Tensor, constant
from .agenda import PutOffOperations, joined
from .arenas import Arenas
from .blocks import Blocks
from .clusters import clustered
from .deferred import DeferredTensor, become
from .example_draws import ExampleDraws
from .example_state import ExampleState
from .kernels import OpWork
from .pending import ClosedValues, RowTable, WaitingOperations, recomputed
from .plans import ExamplePlan, plan_of
from .records import Records
from .schedule import scheduled
from .sharing import SharedTensors
from .signatures import BatchSignature, SignatureTable, Slot, ValueDependentError, attrs_key
from .statistics import BatchPlan

LATE = 1 << 40  # is added to levels of what nobody reads while examples wait, and what is behind


class Deferring:
    """Puts operations off, and runs them together."""

    defers = True

    def __init__(self, table: SignatureTable, below: Any) -> None:
        self.table = table
        self.below = below
        self.device: device | None = None
        self.count = 0  # of values
        self.plan = BatchPlan(table)
        self.has_read = False  # whether a value was read
        self.shared = SharedTensors(self)
        self.streams = ExampleDraws()
        self.closed: list[ClosedValues] = []
        self._numbers: dict[Any, BatchSignature] = {}  # of numbers that are made tensors, by dtype
        self._forms: dict[Any, BatchSignature] = {}  # calls of cells that were met in this run
        self._open()
        self.state = ExampleState(0, self)

    def _open(self) -> None:
        """Begin with no values."""
        fast = self.below is None and not detecting_anomaly()
        self.store: Any = Arenas(self.table) if fast else Blocks(self.table)
        self.start = self.count
        self._rows = RowTable()  # of the values since then
        self._unmerged: PutOffOperations | None = None
        self._waiting = WaitingOperations()
        self.records = Records(self.count)
        self.late = Records(self.count)  # what nobody reads while examples wait for values

    # -- putting off -------------------------------------------------------------------------------

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Put one operation off, and return what stands for its results."""
        if hasattr(op, "trace"):  # a Function of the user's, with a derivative of its own
            return self.at_once(op, inputs, attrs)
        specs, refs, level = self.operands(op, inputs)
        try:
            key = (op, attrs_key(attrs), specs, self.grad())
            found = self.table.find(key)
        except TypeError:  # attributes that cannot be compared
            return self.at_once(op, inputs, attrs)
        if not refs:
            return self._shared_alone(op, inputs, attrs, key)
        if found is None:
            try:
                found = self.table.new(key, OpWork(op, attrs), specs, inputs, key[3])
            except ValueDependentError:
                return self.at_once(op, inputs, attrs)
        return self.put_off(found, refs, level)

    def _shared_alone(self, op: Any, inputs: tuple[Any, ...], attrs: Any, key: Any) -> Any:
        """Run an operation on shared operands once for all, unless its numbers are better data."""
        work = OpWork(op, attrs)
        if op.data_rule is not None:
            work.types([type_of(x) for x in inputs], inputs)  # a bad number is told here
            found = op.data_rule(*inputs, *attrs)
            if found is not None:
                numbers, again = found
                return again([self.constant(number) for number in numbers])
        return self.shared.once(key[:2], work, key[2], inputs)

    def grad(self) -> bool:
        """Tell whether gradients are recorded here."""
        return not modes.grad_overrides or is_grad_enabled()

    def operands(self, where: Any, inputs: Iterable[Any]) -> tuple[tuple[Any, ...], list[int], int]:
        """Return what a signature says of operands, the values among them, and their depth."""
        specs: list[Any] = []
        refs: list[int] = []
        level, fresh, late = 0, self.records.first, self.late.first
        for i, x in enumerate(inputs):
            if x is None:
                specs.append(None)
                continue
            value: Any = x
            if x.__class__ is not DeferredTensor or x.run is not self or x.index < self.start:
                value = self._operand(where, i, x)
            if value.__class__ is DeferredTensor:
                specs.append(value.kind)
                refs.append(value.index)
                if value.level >= level and value.index >= (fresh if value.level < LATE else late):
                    level = value.level + 1
            else:
                specs.append(value)
        return tuple(specs), refs, level

    def put_off(self, signature: BatchSignature, refs: list[int], level: int) -> Any:
        """Add a row, and return what stands for its results."""
        first, outs = self.count, signature.outs
        records = self.records
        if (signature.waits and self.has_read) or level >= LATE:
            records = self.late
            level = level if level >= LATE else level + LATE
        records.signatures.append(signature.index)
        records.levels.append(level)
        records.refs += refs
        records.firsts.append(first)
        if not signature.many:
            self.count = first + 1
            return self.stand_in(first, outs[0], level)
        self.count = first + len(outs)
        return tuple([self.stand_in(first + i, kind, level) for i, kind in enumerate(outs)])

    def put_off_known(self, cell: Any, args: tuple[Any, ...]) -> Any:
        """Put off a call of a cell of a form that was met; None if it was not.

        It is what `Cell.__call__` does in general, for arguments that are put-off values, and
        tuples of such: of these there are thousands.
        """
        key: list[Any] = [cell, not modes.grad_overrides or is_grad_enabled()]
        refs: list[int] = []
        level = 0
        start, fresh, late = self.start, self.records.first, self.late.first
        for x in args:
            if x.__class__ is DeferredTensor:
                values: Any = (x,)
            elif x.__class__ is tuple:
                key.append(tuple)
                values = x
            else:
                known = self.state.data.get(id(x))
                if known is None or known[0] is not x:
                    return None
                values = known[1:]
            for y in values:
                if y.__class__ is not DeferredTensor or y.run is not self or y.index < start:
                    return None
                key.append(y.kind)
                refs.append(y.index)
                if y.level >= level and y.index >= (fresh if y.level < LATE else late):
                    level = y.level + 1
        found = self._forms.get(tuple(key))
        return None if found is None else self._put_off_cell(found, refs, level)

    def _put_off_cell(self, found: BatchSignature, refs: list[int], level: int) -> Any:
        """Do what `put_off` does, and return results in the nest of the cell."""
        records, index = self.records, self.count
        if (found.waits and self.has_read) or level >= LATE:
            records = self.late
            level = level if level >= LATE else level + LATE
        records.signatures.append(found.index)
        records.levels.append(level)
        records.refs += refs
        records.firsts.append(index)
        results = []
        for kind in found.outs:
            made: Any = _new_stand_in()
            made.run, made.index, made.kind, made.level = self, index, kind, level
            results.append(made)
            index += 1
        self.count = index
        return tuple(results) if found.work.is_flat else found.work.nested(results)

    def know(self, cell: Any, args: tuple[Any, ...], signature: BatchSignature) -> None:
        """Remember the signature of a call, if `put_off_known` can find it."""
        key: list[Any] = [cell, self.grad()]
        for x in args:
            if x.__class__ is tuple:
                key.append(tuple)
            for y in x if x.__class__ is tuple else (x,):
                z: Any = y if x.__class__ is tuple else self.state.data.get(id(y), (y, y))[1]
                if z.__class__ is not DeferredTensor or z.run is not self:
                    return
                key.append(z.kind)
        self._forms[tuple(key)] = signature

    def stand_in(self, index: int, kind: int, level: int) -> DeferredTensor:
        """Return what stands for a value."""
        made: Any = _new_stand_in()
        made.run, made.index, made.kind, made.level = self, index, kind, level
        stands: DeferredTensor = made
        return stands

    def at_once(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation now, alone: what cannot be put off."""
        given = tuple([x.settled() if x.__class__ is DeferredTensor else x for x in inputs])
        return run_below(self.below, run, op, given, attrs)

    # -- examples ----------------------------------------------------------------------------------

    def enter(self, state: ExampleState) -> None:
        """Let what follows belong to an example, from its first operation on."""
        self.records.cut(self.count)
        self.state = state

    def go_on(self, state: ExampleState) -> None:
        """Let what follows belong to an example that was suspended: it will have no plan."""
        self.state = state

    def plan_of_example(self, result: Any) -> ExamplePlan | None:
        """Return what this example put off as a plan; None if it did more than that."""
        state, chunk = self.state, self.records.cut(self.count)
        if state.has_written or self.late.signatures:
            return None  # a plan would not write again, and has all rows of its example
        if chunk is None or state.records is not self.records or chunk.first != state.first:
            return None
        plan = plan_of(chunk, self.count - state.first, result, state, self)
        if plan is not None:
            self.records.chunks[-1] = chunk._replace(plan=plan)
        return plan

    # -- operands ----------------------------------------------------------------------------------

    def _operand(self, where: Any, position: int, x: Any) -> Any:
        """Return the slot of a tensor that is shared, or what stands for data."""
        known = self.shared.known(x)
        if known is not None:
            return known
        if x.__class__ is DeferredTensor:  # of a run around this one, or of before
            own = x.run is self
            x = x.settled()
            if own:
                return self.data(x)
        if id(x) in self.state.brought or (
            x.__class__ is Constant and not self.shared.is_literal(where, position, x)
        ):
            return self.data(x)
        return self.shared.slot(x)

    def rows_of_vectors(self, leaves: Sequence[Any], specs: Sequence[Any]) -> list[Any]:
        """Return arguments of a cell with its shared vectors as data.

        A learned state to begin with, or what stands where there is nothing, is then an argument
        like those of other calls, and runs in one batch with them.
        """
        return [
            self._as_data(x, spec) if _is_vector(spec) else x
            for x, spec in zip(leaves, specs, strict=True)
        ]

    def _as_data(self, x: Tensor, slot: Slot) -> DeferredTensor:
        self.state.slots[id(x)] = slot
        return self.data(x)

    def type_in(self, spec: Any) -> TensorType:
        """Return the type that a signature says an operand has."""
        found: TensorType = self.table.types[spec] if spec.__class__ is int else spec.type
        return found

    def data(self, x: Tensor) -> DeferredTensor:
        """Return what stands for a tensor that an example made or brought."""
        known = self.state.data.get(id(x))
        if known is None or known[0] is not x or known[1].index < self.start:
            kind = self.table.kind(type_of(x))
            known = self.state.data[id(x)] = x, self.put_off(self.table.data(kind), [], 0)
            self.records.data.setdefault(kind, []).append(x)
        return known[1]

    def number(self, value: float) -> Tensor:
        """Return what stands for a number that is made a tensor here."""
        dtype = default_float() if value.__class__ is float else int64
        signature = self._numbers.get(dtype)
        if signature is None:
            signature = self.table.data(self.table.kind(TensorType((), dtype)))
            self._numbers[dtype] = signature
        records, (kind,) = self.records, signature.outs
        try:
            records.data[kind].append(value)
        except KeyError:
            records.data[kind] = [value]
        records.signatures.append(signature.index)
        records.levels.append(0)
        records.firsts.append(self.count)
        made: Any = _new_stand_in()
        made.run, made.index, made.kind, made.level = self, self.count, kind, 0
        self.count += 1
        stands: Tensor = made
        return stands

    def constant(self, array: Any) -> Tensor:
        """Return what stands for a tensor that is made here."""
        return self.data(constant(array))

    def reserve(self, generator: Generator, blocks: int) -> Tensor:
        """Return the state for a draw of this example: from a stream of its own."""
        made = constant(self.streams.state(generator, blocks, self.state.index))
        self.state.draws[id(made)] = generator, blocks
        return self.data(made)

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
        late = wanted is None or self._is_late(wanted)
        self.records = Records(self.count)
        if needed is not None and operations is not None and records.is_new:
            operations = self._clustered(operations, records, needed)
        rows = self._rows.extend(self.count - self.start)
        chosen = self._waiting.choose(
            operations, None if late else wanted, self.table, rows, self.start
        )
        parts = [] if chosen is None else [chosen]
        if late and self.late.signatures:
            parts.append(self._late_operations())
        if parts:
            self._run(joined(parts), rows, records)

    def _is_late(self, wanted: Sequence[int]) -> bool:
        """Tell whether values are needed that nobody was to need: then none of them waits again."""
        found = any(self.late.holds(number, self.table) for number in wanted)
        if found:
            for i in set(self.late.signatures):
                self.table.all[i].waits = False
        return found

    def _late_operations(self) -> PutOffOperations:
        records, self.late = self.late, Records(self.count)
        records.cut(self.count)
        operations = records.operations(self.table)
        return operations._replace(level=operations.level - LATE)

    def _clustered(self, operations: Any, records: Records, needed: Sequence[int]) -> Any:
        """Return operations in clusters, if these are all that the run has put off."""
        if records.first != self.start or self.late.signatures:
            return operations
        self._unmerged = operations
        known = np.array([i for i in needed if i >= self.start], np.int64)
        operations = clustered(operations, self.table, known)
        records.tell_plans(operations)
        return operations

    def _run(self, operations: PutOffOperations, rows: Any, records: Records) -> None:
        store, held = self.store, self.shared.held
        plan = scheduled(operations, self.table, rows, self.start, store.size)
        self.plan.rounds += 1
        with interpret_with(self.below):
            store.prepare(plan.counts)
            for batch in plan.batches:
                signature = batch.signature
                if signature.work is None:
                    store.add(signature.outs[0], records.payload(signature.outs[0]))
                    continue
                shared = [held[s.index] if s.__class__ is Slot else None for s in signature.specs]
                store.run(batch, shared)
                self.plan.ran(signature, batch.size)

    # -- values ------------------------------------------------------------------------------------

    def is_there(self, index: int) -> bool:
        """Tell whether a value has run."""
        place = index - self.start
        rows = self._rows.known
        return place < 0 or (place < len(rows) and bool(rows[place] >= 0))

    def _values_at(self, index: int) -> ClosedValues:
        """Return the values among which one is that has a number."""
        if index >= self.start:
            if not self.is_there(index):
                self.wait(index)
            return ClosedValues(self.start, self.store, self._rows.known, self._unmerged)
        found: ClosedValues = next(v for v in reversed(self.closed) if index >= v.start)
        return found

    def place(self, index: int) -> tuple[Any, int]:
        """Return where a value lies, when it has run."""
        values = self._values_at(index)
        return values.store, int(values.rows[index - values.start])

    def _again(self, index: int) -> Tensor:
        """Return a value that was only computed on the way to others, inside of a cluster."""
        return recomputed(self._values_at(index), index, self.table, self.shared.held)

    def read(self, x: DeferredTensor) -> np.ndarray[Any, Any]:
        """Return the value of what stands for one: what it needs runs first."""
        store, row = self.place(x.index)
        if row >= 0 and store.__class__ is Arenas:  # thousands are read
            array: np.ndarray[Any, Any] = store.read(x.kind, row)
            return array
        with interpret_with(self.below):
            if row < 0:
                return self._again(x.index)._read()
            found: np.ndarray[Any, Any] = store.read(x.kind, row)
        return found

    def wait(self, index: int) -> None:
        """Come back when a value has run."""
        self.has_read = True
        state = self.state
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
        store, row = self.place(x.index)
        with interpret_with(self.below):
            become(x, self._again(x.index) if row < 0 else store.row(x.kind, row))

    def settle_all(self, values: Sequence[DeferredTensor], kind: int) -> None:
        """Let what stands for values of one type be plain tensors, the rows of one."""
        block = self.block(values, kind)
        if block is None:
            for x in values:
                self.settle(x)
            return
        with interpret_with(self.below):
            for x, row in zip(values, block.unbind(), strict=True):
                become(x, row)

    def block(self, values: Sequence[DeferredTensor], kind: int) -> Tensor | None:
        """Return values of one type as the rows of a tensor; None if they lie in no one place."""
        places = [self.place(x.index) for x in values]
        store = places[0][0]
        if any(other is not store or row < 0 for other, row in places):
            return None
        with interpret_with(self.below):
            found: Tensor = store.take(kind, np.array([row for _, row in places]))
        return found

    def become(self, x: DeferredTensor, tensor: Tensor) -> None:
        """Let what stands for a value hold another one."""
        become(x, tensor)

    def detached(self, x: DeferredTensor) -> Tensor:
        """Return a value cut off from the tape."""
        result: Tensor = F.stop_gradient(x)
        return result

    def write(self, target: Tensor, x: DeferredTensor) -> None:
        """Refuse to give a tensor from outside the value of one example."""
        raise ArgumentError(
            "a parameter, a buffer or another tensor from outside is shared by all examples and "
            "cannot take the value of one; return the value from the function instead"
        )

    def before_write(self, target: Tensor) -> None:
        """Run what was put off before a tensor from outside, which it may use, is written."""
        self.state.has_written = True
        if target in self.shared:
            self.close()
            self.shared.forget()  # what follows takes values as they are then
            self._forms.clear()

    def close(self, needed: Sequence[int] | None = None) -> None:
        """Run what was put off; what follows begins anew, with these values as data."""
        self.flush(needed)
        if self.count > self.start:
            values = ClosedValues(self.start, self.store, self._rows.known, self._unmerged)
            self.closed.append(values)
            self.plan.closed(self.store)
            self._open()


_new_stand_in: Any = partial(object.__new__, DeferredTensor)  # the fastest way past __init__


def _is_vector(spec: Any) -> bool:
    """Tell whether an operand is a shared vector, and no literal."""
    return (
        spec.__class__ is Slot
        and len(spec.type.shape) == 1
        and spec.tensor.__class__ is not Constant
    )
