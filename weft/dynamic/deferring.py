"""The interpreter that puts operations off: one call of a batched function, or one context.

Each operation becomes a row: its signature, how deep it lies and which values it reads. Operands
are data (values that differ between members of a batch: results, and tensors made or brought by an
example) or shared (parameters and other tensors from outside, literals, and what is computed from
such alone, which runs once for all). When a value is needed, all rows run, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.device import check_device, device, scopes
from ..core.dispatch import run
from ..core.dtype import default_float, int64
from ..core.modes import is_grad_enabled, modes, run_below
from ..core.rng import Generator
from ..core.shape import TensorType, type_of
from ..core.tensor import Constant, Tensor, constant
from .deferred import DeferredTensor
from .example_draws import ExampleDraws
from .example_state import ExampleState
from .kernels import OpWork
from .paths import EndedExample
from .places import refuse_two_places
from .plans import ExamplePlan, plan_of
from .reads import plain_number
from .running import PutOffRun
from .signatures import BatchSignature, SignatureTable, Slot, ValueDependentError, attrs_key
from .written_calls import LATE, CallForm, new_stand_in, written_call


class Deferring(PutOffRun):
    """Puts operations off, and runs them together."""

    defers = True

    def __init__(self, table: SignatureTable, below: Any) -> None:
        super().__init__(table, below)
        self.streams = ExampleDraws()
        self._numbers: dict[Any, BatchSignature] = {}  # of numbers that are made tensors, by dtype
        self._filled: dict[Any, tuple[Tensor, BatchSignature]] = {}  # of one number throughout
        self._forms: dict[Any, BatchSignature] = {}  # calls of cells that were met in this run
        self._ungraded: dict[Any, BatchSignature] = {}  # and those without gradients
        self._written: dict[Any, Any] = {}  # cells, with what puts off calls like the last one

    # -- putting off -------------------------------------------------------------------------------

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Put one operation off, and return what stands for its results."""
        if hasattr(op, "trace"):  # a Function of the user's, with a derivative of its own
            return self.at_once(op, inputs, attrs)
        if self.state.reads is not None and self.state.reads.gave_numbers:
            attrs = tuple(map(plain_number, attrs))
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
        refuse_two_places(work, inputs)
        if op.data_rule is not None:
            work.types([type_of(x) for x in inputs], inputs)  # a bad number is told here
            found = op.data_rule(*inputs, *attrs)
            if found is not None:
                numbers, again = found
                return again([self.constant(number) for number in numbers])
        return self.shared.once(key[:2], work, key[2], inputs)

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
        written = self._written.get(cell)
        if written is not None and not modes.grad_overrides:
            signature, waits, put_off = written
            if waits is (self.has_read and signature.waits is True):
                found = put_off(self, args)
                if found is not None:
                    return found
            else:
                del self._written[cell]
        operands = self._known_operands(cell, args)
        if operands is None:
            return None
        key, refs, level = operands
        forms = self._forms if not modes.grad_overrides or is_grad_enabled() else self._ungraded
        signature = forms.get(tuple(key))
        if signature is None:
            return None
        if cell not in self._written:
            self._write(cell, args, signature)
        return self._put_off_cell(signature, refs, level)

    def _known_operands(self, cell: Any, args: tuple[Any, ...]) -> Any:
        """Return the form of a call, what it reads, and its depth; None for other arguments."""
        key: list[Any] = [cell]
        refs: list[int] = []
        level, start = 0, self.start
        fresh, late = self.records.first, self.late.first
        for x in args:
            values: Any = x
            if x.__class__ is tuple:
                key.append(tuple)
            else:
                values = (x if x.__class__ is DeferredTensor else self.row_of(x),)
            for y in values:
                if y.__class__ is not DeferredTensor or y.run is not self:
                    return None
                index, depth = y.index, y.level
                if index < start:
                    return None
                key.append(y.kind)
                refs.append(index)
                if depth >= level and index >= (fresh if depth < LATE else late):
                    level = depth + 1
        return key, refs, level

    def row_of(self, x: Any) -> DeferredTensor | None:
        """Return what stands for a tensor that is data of this example already."""
        known = self.state.data.get(id(x))
        return known[1] if known is not None and known[0] is x else None

    def _put_off_cell(self, found: BatchSignature, refs: list[int], level: int) -> Any:
        """Do what `put_off` does, and return results in the nest of the cell."""
        records, index = self.records, self.count
        if level >= LATE or (found.waits and self.has_read):
            records = self.late
            level = level if level >= LATE else level + LATE
        records.signatures.append(found.index)
        records.levels.append(level)
        records.refs += refs
        records.firsts.append(index)
        results = []
        for kind in found.outs:
            made: Any = new_stand_in()
            made.run, made.index, made.kind, made.level = self, index, kind, level
            results.append(made)
            index += 1
        self.count = index
        work = found.work
        if work.is_single:
            return results[0]
        return tuple(results) if work.is_flat else work.nested(results)

    def know(self, cell: Any, args: tuple[Any, ...], signature: BatchSignature) -> None:
        """Remember the signature of a call, if `put_off_known` can find it."""
        key: list[Any] = [cell]
        for x in args:
            if x.__class__ is tuple:
                key.append(tuple)
            for y in x if x.__class__ is tuple else (x,):
                z: Any = y if x.__class__ is tuple else self.state.data.get(id(y), (y, y))[1]
                if z.__class__ is not DeferredTensor or z.run is not self:
                    return
                key.append(z.kind)
        (self._forms if self.grad() else self._ungraded)[tuple(key)] = signature
        self._write(cell, args, signature)

    def _write(self, cell: Any, args: tuple[Any, ...], signature: BatchSignature) -> None:
        """Have calls like this one put off by a function that is written for them."""
        work = signature.work
        if not (work.is_single or work.is_flat) or not self.grad():
            return
        values = [y for x in args for y in (x if x.__class__ is tuple else (x,))]
        rows = [y if y.__class__ is DeferredTensor else self.row_of(y) for y in values]
        kinds = tuple([y.kind for y in rows if y is not None])
        if len(kinds) == len(rows):
            lengths = tuple([len(x) if x.__class__ is tuple else None for x in args])
            waits = self.has_read and signature.waits is True
            made = CallForm(lengths, kinds, signature.index, signature.outs, work.is_single, waits)
            self._written[cell] = signature, waits, written_call(made)

    def stand_in(self, index: int, kind: int, level: int) -> DeferredTensor:
        """Return what stands for a value."""
        made: Any = new_stand_in()
        made.run, made.index, made.kind, made.level = self, index, kind, level
        stands: DeferredTensor = made
        return stands

    def at_once(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation now, alone: what cannot be put off."""
        given = tuple([x.settled() if x.__class__ is DeferredTensor else x for x in inputs])
        refuse_two_places(op, given)
        return run_below(self.below, run, op, given, attrs)

    # -- examples ----------------------------------------------------------------------------------

    def enter(self, state: ExampleState) -> None:
        """Let what follows belong to an example, from its first operation on."""
        self.records.cut(self.count)
        self.go_on(state)

    def go_on(self, state: ExampleState) -> None:
        """Let what follows belong to an example that was suspended, or begins."""
        self.state = state
        if self.turns is not None:
            self.turns.begin(state, self.count)

    def plans_of_paths(self, ended: Sequence[EndedExample]) -> list[ExamplePlan | None]:
        """Return the plans of examples that read values, of a run that is complete.

        What was closed in between, to write a tensor say, is no part of a plan.
        """
        if self.turns is None or len(self.closed) > 1:
            return [None] * len(ended)
        return self.turns.plans(ended, self.table, self.count)

    def plan_of_example(self, result: Any) -> ExamplePlan | None:
        """Return what this example put off as a plan; None if it did more than that."""
        state = self.state
        if state.reads or not self.knows_all(state):
            return None
        if self.late.signatures or state.records is not self.records:
            return None  # a plan would not write again, and has all rows of its example
        chunk = self.records.cut(self.count)
        if chunk is None or chunk.first != state.first:
            return None
        plan = plan_of(chunk, self.count - state.first, result, state, self)
        if plan is not None:
            self.records.chunks[-1] = chunk._replace(plan=plan)
        return plan

    def knows_all(self, state: ExampleState) -> bool:
        """Tell whether an example did and saw no more than what a plan says."""
        return not (state.has_written or state.has_looked or self.has_looked)

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

    def row_of_shared(self, x: Tensor) -> DeferredTensor | None:
        """Return what is computed of shared tensors alone as data; None for what nobody knows."""
        slot = self.shared.known(x)
        return None if slot is None else self._as_data(x, slot)

    def type_in(self, spec: Any) -> TensorType:
        """Return the type that a signature says an operand has."""
        found: TensorType = self.table.types[spec] if spec.__class__ is int else spec.type
        return found

    def data(self, x: Tensor) -> DeferredTensor:
        """Return what stands for a tensor that an example made or brought."""
        known = self.state.data.get(id(x))
        if known is None or known[0] is not x or known[1].index < self.start:
            kind = self.table.kind(type_of(x), x.device)
            known = self.state.data[id(x)] = x, self.put_off(self.table.data(kind), [], 0)
            self.records.data.setdefault(kind, []).append(x)
        return known[1]

    def number(self, value: float) -> Tensor:
        """Return what stands for a number that is made a tensor here."""
        dtype = int64
        if value.__class__ is float:
            dtype, value = default_float(), plain_number(value)
        key = (dtype, check_device(None)) if scopes else dtype
        signature = self._numbers.get(key)
        if signature is None:
            kind = self.table.kind(TensorType((), dtype), check_device(None))
            signature = self._numbers[key] = self.table.data(kind)
        return self._bring(value, signature)

    def constant(self, array: Any, place: Any = None) -> Tensor:
        """Return what stands for a tensor that is made here, on a device by name."""
        made = constant(array)
        return self._bring(made, self._signature_of(made, check_device(place)))

    def filled(self, fill: Callable[..., Any], sizes: tuple[int, ...], dtype: Any) -> Tensor:
        """Return what stands for zeros or ones: many have one array, of which rows are copies."""
        key = fill, sizes, dtype, check_device(None) if scopes else None
        found = self._filled.get(key)
        if found is None:
            made = constant(fill(sizes, dtype))
            found = self._filled[key] = made, self._signature_of(made, check_device(None))
        return self._bring(*found)

    def _signature_of(self, made: Tensor, where: device) -> BatchSignature:
        return self.table.data(self.table.kind(type_of(made), where))

    def _bring(self, value: Any, signature: BatchSignature) -> Tensor:
        """Return what stands for data that nothing else can name: it is nowhere looked up."""
        records, (kind,) = self.records, signature.outs
        try:
            records.data[kind].append(value)
        except KeyError:
            records.data[kind] = [value]
        records.signatures.append(signature.index)
        records.levels.append(0)
        records.firsts.append(self.count)
        made: Any = new_stand_in()
        made.run, made.index, made.kind, made.level = self, self.count, kind, 0
        self.count += 1
        stands: Tensor = made
        return stands

    def reserve(self, generator: Generator, blocks: int) -> Tensor:
        """Return the state for a draw of this example: from a stream of its own."""
        made = constant(self.streams.state(generator, blocks, self.state.index))
        self.state.draws[id(made)] = generator, blocks
        return self.data(made)

    def before_write(self, target: Tensor) -> None:
        """Run what was put off before a tensor from outside, which it may use, is written."""
        if target in self.shared:
            self._forms.clear()
            self._ungraded.clear()
            self._written.clear()
        super().before_write(target)


def _is_vector(spec: Any) -> bool:
    """Tell whether an operand is a shared vector, and no literal."""
    return (
        spec.__class__ is Slot
        and len(spec.type.shape) == 1
        and spec.tensor.__class__ is not Constant
    )
