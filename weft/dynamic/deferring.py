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
from ..core.device_array import DeviceError, is_placed
from ..core.dispatch import run
from ..core.dtype import default_float, int64
from ..core.errors import ArgumentError
from ..core.modes import GradMode, interpret_with, is_grad_enabled, modes, run_below
from ..core.op import F
from ..core.rng import Generator, make_state
from ..core.shape import TensorType, type_of
from ..core.tensor import Constant, Tensor, constant
from .agenda import Ints, PutOffOperations, batches
from .arenas import Arenas
from .blocks import Blocks
from .clusters import clustered
from .deferred import DeferredTensor, become
from .example_state import ExampleState
from .kernels import OpWork
from .pending import ClosedValues, PendingRows
from .plans import Brought, Draw, ExamplePlan, plan_of
from .records import Chunk, Records
from .signatures import BatchSignature, Made, SignatureTable, Slot, ValueDependentError, attrs_key
from .statistics import BatchPlan

LITERAL = 16  # elements up to which literals are told apart by value
MOST_LITERALS = 8  # different ones in one place, from which on they are data


class Deferring:
    """Puts operations off, and runs them together."""

    defers = True

    def __init__(self, table: SignatureTable, below: Any) -> None:
        self.table = table
        self.below = below
        self.device: device | None = None
        self.count = 0  # of values
        self.plan = BatchPlan(table)
        self.arguments: dict[int, int] = {}  # the numbers of shared arguments, by identity
        self.given: list[Any] = []  # these arguments
        self.has_read = False  # whether a value was read
        self.generators: dict[tuple[int, int], Generator] = {}
        self.closed: list[ClosedValues] = []
        self._calls: dict[int, tuple[Generator, int, int]] = {}
        self._shared: dict[int, tuple[Slot, Tensor, Any]] = {}
        self._held: dict[int, Tensor] = {}  # the tensor in each slot
        self._made: dict[Any, tuple[Any, Any]] = {}
        self._accepted: set[int] = set()  # signatures of cells
        self._numbers: dict[Any, BatchSignature] = {}  # of numbers that are made tensors, by dtype
        self._forms: dict[Any, BatchSignature] = {}  # calls of cells that were met in this run
        self._open()
        self.state = ExampleState(0, self)

    def _open(self) -> None:
        """Begin with no values."""
        fast = self.below is None and not detecting_anomaly()
        self.store: Any = Arenas(self.table) if fast else Blocks(self.table)
        self.start = self.count
        self._rows = np.empty(0, np.int64)  # of each value since then, within its type
        self._unmerged: PutOffOperations | None = None
        self.records = Records(self.count)
        if hasattr(self, "state"):
            self.state.data = {}

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
        return self._once(key[:2], work, key[2], inputs)

    def grad(self) -> bool:
        """Tell whether gradients are recorded here."""
        return not modes.grad_overrides or is_grad_enabled()

    def operands(self, where: Any, inputs: Iterable[Any]) -> tuple[tuple[Any, ...], list[int], int]:
        """Return what a signature says of operands, the values among them, and their depth."""
        specs: list[Any] = []
        refs: list[int] = []
        level = 0
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
                if value.level >= level:
                    level = value.level + 1
            else:
                specs.append(value)
        return tuple(specs), refs, level

    def put_off(self, signature: BatchSignature, refs: list[int], level: int) -> Any:
        """Add a row, and return what stands for its results."""
        records, first, outs = self.records, self.count, signature.outs
        records.signatures.append(signature.index)
        records.levels.append(level)
        records.refs += refs
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
        key: list[Any] = [cell, self.grad()]
        refs: list[int] = []
        level = 0
        start = self.start
        for x in args:
            if x.__class__ is DeferredTensor:
                values: Any = (x,)
            elif x.__class__ is tuple:
                key.append(tuple)
                values = x
            else:
                return None
            for y in values:
                if y.__class__ is not DeferredTensor or y.run is not self or y.index < start:
                    return None
                key.append(y.kind)
                refs.append(y.index)
                if y.level >= level:
                    level = y.level + 1
        found = self._forms.get(tuple(key))
        if found is None:
            return None
        records, index = self.records, self.count
        records.signatures.append(found.index)
        records.levels.append(level)
        records.refs += refs
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
                if y.__class__ is not DeferredTensor or y.run is not self:
                    return
                key.append(y.kind)
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
        if state.has_written:
            return None  # a plan would not write again
        if chunk is None or state.records is not self.records or chunk.first != state.first:
            return None
        plan = plan_of(chunk, self.count - state.first, result, state, self)
        if plan is not None:
            self.records.chunks[-1] = chunk._replace(plan=plan)
        return plan

    def replay(self, plan: ExamplePlan, tensors: Sequence[Tensor]) -> Any:
        """Put off what a plan says, and return the result of the example."""
        first = self.count
        for i in plan.used:
            if i not in self._accepted:
                self._accept(self.table.all[i])
        data = {kind: [self._drawn(x, tensors) for x in xs] for kind, xs in plan.data.items()}
        self.count = first + plan.count
        refs, firsts = plan.refs + first, None if plan.firsts is None else plan.firsts + first
        chunk = Chunk(first, plan.signatures, plan.levels, refs, data, plan.count, firsts)
        self.records.add(chunk, self.count)
        return plan.result(self, first)

    def _drawn(self, x: Any, tensors: Sequence[Tensor]) -> Any:
        if x.__class__ is Draw:
            return constant(self._state(x.generator, x.blocks))
        return tensors[x.number] if x.__class__ is Brought else x

    # -- operands ----------------------------------------------------------------------------------

    def _operand(self, where: Any, position: int, x: Any) -> Any:
        """Return the slot of a tensor that is shared, or what stands for data."""
        known = self._shared.get(id(x))
        if known is not None and known[2] is _held(x):
            return known[0]
        _check_on_host(x)
        if x.__class__ is DeferredTensor:  # of a run around this one, or of before
            own = x.run is self
            x = x.settled()
            if own:
                return self.data(x)
        if id(x) in self.state.brought or (
            x.__class__ is Constant and not self._is_literal(where, position, x)
        ):
            return self.data(x)
        return self._slot(x)

    def _is_literal(self, where: Any, position: int, x: Tensor) -> bool:
        """Tell whether a constant is one of few in its place: then it is told by its value."""
        if x._value.size > LITERAL:
            return False
        seen = self.table.literals.setdefault((where, position), set())
        seen.add(x._value.tobytes())
        return len(seen) <= MOST_LITERALS

    def _slot(self, x: Tensor) -> Slot:
        _check_on_host(x)
        if id(x) in self._shared:  # it has another value by now: what waits needs the one of before
            self.flush()
        if id(x) in self.arguments:
            slot = self.table.slot(("argument", self.arguments[id(x)], type_of(x)), x, keep=False)
        elif x.__class__ is Constant:
            value = x._value
            slot = self.table.slot((value.dtype, value.shape, value.tobytes()), x, keep=True)
        else:
            slot = self.table.slot((id(x), type_of(x)), x, keep=True)
        self._hold(slot, x)
        return slot

    def slot_of(self, x: Tensor) -> Slot:
        """Return the slot of a tensor that a cell uses."""
        known = self._shared.get(id(x))
        return known[0] if known is not None and known[2] is _held(x) else self._slot(x)

    def type_in(self, spec: Any) -> TensorType:
        """Return the type that a signature says an operand has."""
        found: TensorType = self.table.types[spec] if spec.__class__ is int else spec.type
        return found

    def accepts(self, signature: BatchSignature) -> bool:
        """Tell whether a cell that was traced before is still what it was."""
        if signature.index not in self._accepted:
            if not signature.work.holds():
                return False
            self._accept(signature)
        return True

    def _accept(self, signature: BatchSignature) -> None:
        """Let the slots of a signature hold what they do in this run."""
        for spec in signature.specs:
            if spec.__class__ is Slot:
                self._fill(spec)
        self._accepted.add(signature.index)

    def _fill(self, slot: Slot) -> Tensor:
        """Return the tensor that a slot holds in this run: from outside, given, or made."""
        if slot.index not in self._held:
            if slot.tensor is not None:
                self._slot(slot.tensor)
            elif slot.made is None:
                self._hold(slot, self.given[slot.key[1]])
            else:
                work, slots, _ = slot.made
                given = tuple([None if s is None else self._fill(s) for s in slots])
                self._once(slot.key[0], work, slots, given)
        return self._held[slot.index]

    def _hold(self, slot: Slot, x: Tensor) -> None:
        self._shared[id(x)] = slot, x, _held(x)
        self._held[slot.index] = x

    def held(self, slot: Slot) -> Tensor:
        """Return the tensor in a slot."""
        return self._held[slot.index]

    def data(self, x: Tensor) -> DeferredTensor:
        """Return what stands for a tensor that an example made or brought."""
        known = self.state.data.get(id(x))
        if known is None or known[0] is not x:
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
        made: Any = _new_stand_in()
        made.run, made.index, made.kind, made.level = self, self.count, kind, 0
        self.count += 1
        stands: Tensor = made
        return stands

    def constant(self, array: Any) -> Tensor:
        """Return what stands for a tensor that is made here."""
        return self.data(constant(array))

    def _once(self, key: Any, work: Any, specs: tuple[Any, ...], inputs: tuple[Any, ...]) -> Any:
        """Run an operation on shared operands alone, once for all examples."""
        key = (key, specs, self.grad())
        values = [_held(x) for x in inputs]
        known = self._made.get(key)
        if known is None or any(x is not y for x, y in zip(known[0], values, strict=True)):
            made = run_below(self.below, work.alone, inputs)
            self._made[key] = known = values, made
            for i, y in enumerate(made if isinstance(made, tuple) else (made,)):
                slot = self.table.slot((key[0], key[1:], i), y, keep=False)
                slot.made = Made(work, specs, i)
                self._hold(slot, y)
        return known[1]

    # -- random numbers ----------------------------------------------------------------------------

    def reserve(self, generator: Generator, blocks: int) -> Tensor:
        """Return the state for a draw of this example: from a stream of its own."""
        made = constant(self._state(generator, blocks))
        self.state.draws[id(made)] = generator, blocks
        return self.data(made)

    def _state(self, generator: Generator, blocks: int) -> np.ndarray[Any, Any]:
        found = self.generators.get((id(generator), self.state.index))
        if found is None:
            call = self._calls.get(id(generator))
            if call is None:
                call = self._calls[id(generator)] = generator, *generator.reserve(1)
            found = Generator.of_example(call[1], call[2], self.state.index)
            self.generators[id(generator), self.state.index] = found
        return make_state(*found.reserve(blocks))

    # -- running -----------------------------------------------------------------------------------

    def flush(self, needed: Sequence[int] | None = None) -> None:
        """Run everything that was put off.

        needed   the values that are looked at afterwards, if that is known: others need not be
                 kept, so that operations can run in clusters
        """
        records = self.records
        records.cut(self.count)
        if not records.chunks:
            return
        self.records = Records(self.count)
        operations = records.operations(self.table)
        if needed is not None and records.is_new and records.first == self.start:
            self._unmerged = operations
            known = np.array([i for i in needed if i >= self.start], np.int64)
            operations = clustered(operations, self.table, known)
            records.tell_plans(operations)
        pending = PendingRows(operations, self._rows, self.start)
        self._rows = pending.rows
        self.plan.rounds += 1
        with interpret_with(self.below):
            self.store.prepare(pending.counts(self.table))
            for rows in batches(pending.operations):
                signature = self.table.all[int(pending.operations.signature[rows[0]])]
                self._run_batch(signature, rows, pending, records)

    def _run_batch(
        self, signature: BatchSignature, rows: Ints, pending: PendingRows, records: Records
    ) -> None:
        size, begins = len(rows), [self.store.size(kind) for kind in signature.outs]
        if signature.work is None:
            rows.sort()
            self.store.add(signature.outs[0], records.payload(signature.outs[0]))
        else:
            rows, where = pending.operands(rows, signature.arity)
            shared = [self._held[s.index] if s.__class__ is Slot else None for s in signature.specs]
            self.store.run(signature, where, shared, size)
            self.plan.ran(signature, size)
        pending.place(rows, signature.outs, begins)

    # -- values ------------------------------------------------------------------------------------

    def place(self, x: DeferredTensor) -> tuple[Any, int]:
        """Return where the value lies that something stands for, when it has run."""
        if x.index >= self.records.first:
            self.wait()
        values = self._values_at(x.index)
        return values.store, int(values.rows[x.index - values.start])

    def _values_at(self, index: int) -> ClosedValues:
        """Return the values among which one is that has a number."""
        if index >= self.start:
            return ClosedValues(self.start, self.store, self._rows, self._unmerged)
        found: ClosedValues = next(v for v in reversed(self.closed) if index >= v.start)
        return found

    def _again(self, values: ClosedValues, index: int) -> Tensor:
        """Return a value that was only computed on the way to others, inside of a cluster."""
        row = int(values.rows[index - values.start])
        operations = values.unmerged
        assert operations is not None, "all values were kept"
        maker = int(operations.makers()[index - operations.first])
        signature = self.table.all[int(operations.signature[maker])]
        which = index - int(operations.firsts[maker])
        if row >= 0:
            found: Tensor = values.store.row(signature.outs[which], row)
            return found
        begin = int(operations.arity[:maker].sum())
        refs = iter(operations.refs[begin : begin + signature.arity].tolist())
        given = [
            self._again(values, next(refs))
            if spec.__class__ is int
            else None
            if spec is None
            else self._held[spec.index]
            for spec in signature.specs
        ]
        with GradMode(signature.grad):
            made: Any = signature.work.alone(tuple(given))
        again: Tensor = made[which] if isinstance(made, tuple) else made
        return again

    def read(self, x: DeferredTensor) -> np.ndarray[Any, Any]:
        """Return the value of what stands for one: everything that was put off runs first."""
        store, row = self.place(x)
        if row >= 0 and store.__class__ is Arenas:  # thousands are read
            array: np.ndarray[Any, Any] = store.read(x.kind, row)
            return array
        with interpret_with(self.below):
            if row < 0:
                return self._again(self._values_at(x.index), x.index)._read()
            found: np.ndarray[Any, Any] = store.read(x.kind, row)
        return found

    def wait(self) -> None:
        """Come back when everything that was put off has run."""
        self.has_read = True
        state = self.state
        if state.task is None:
            self.flush()
            return
        first = self.records.first
        while self.records.first == first:  # until somebody has run it
            state.task.suspend()

    def settle(self, x: DeferredTensor) -> None:
        """Let what stands for a value be a plain tensor."""
        if x.index >= self.start:
            self.close()
        store, row = self.place(x)
        with interpret_with(self.below):
            if row < 0:
                become(x, self._again(self._values_at(x.index), x.index))
            else:
                become(x, store.row(x.kind, row))

    def settle_all(self, values: Sequence[DeferredTensor], kind: int) -> None:
        """Let what stands for values of one type be plain tensors, the rows of one."""
        places = [self.place(x) for x in values]
        store = places[0][0]
        if any(other is not store or row < 0 for other, row in places):
            for x in values:
                self.settle(x)
            return
        with interpret_with(self.below):
            block = store.take(kind, np.array([row for _, row in places]))
            for x, row in zip(values, block.unbind(), strict=True):
                become(x, row)

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
        if id(target) not in self._shared:
            return
        self.close()
        self._held.clear()  # what follows takes values as they are then
        self._shared.clear()
        self._made.clear()
        self._accepted.clear()
        self._forms.clear()

    def close(self, needed: Sequence[int] | None = None) -> None:
        """Run what was put off; what follows begins anew, with these values as data."""
        self.flush(needed)
        if self.count > self.start:
            values = ClosedValues(self.start, self.store, self._rows, self._unmerged)
            self.closed.append(values)
            self.plan.closed(self.store)
            self._open()


_new_stand_in: Any = partial(object.__new__, DeferredTensor)  # the fastest way past __init__


def _held(x: Any) -> Any:
    """Return what tells whether a tensor has the value that it had."""
    return x.primal if hasattr(x, "level") else x._value


def _check_on_host(x: Any) -> None:
    """Raise if a tensor is in the memory of a device, where examples are not put together."""
    if modes.base is not None and x.__class__ is not DeferredTensor:
        held = getattr(x, "_value", None)
        if is_placed(held):
            raise DeviceError(
                f"wf.batched puts examples together on the CPU, and a tensor is on {x.device!r}; "
                "give x.cpu(), and move the module with model.to('cpu')"
            )
