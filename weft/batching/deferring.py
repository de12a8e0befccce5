"""The interpreter that puts operations off: one call of a batched function, or one context.

Each operation becomes a row: its signature, how deep it lies and which values it reads. Operands
are data (values that differ between members of a batch: results, and tensors made or brought by an
example) or shared (parameters and other tensors from outside, literals, and what is computed from
such alone, which runs once for all). When a value is needed, all rows run, batch by batch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.device import device
from ..core.dispatch import run
from ..core.errors import ArgumentError, caller_site
from ..core.modes import interpret_with, is_grad_enabled, modes, run_below
from ..core.op import F
from ..core.rng import Generator, make_state
from ..core.shape import type_of
from ..core.tensor import Constant, Tensor, constant
from .agenda import Operations, batches
from .blocks import Blocks
from .deferred import Deferred, become
from .kernels import OpWork
from .signatures import Made, Signature, Signatures, Slot, ValueDependentError, attrs_key

LITERAL = 16  # elements up to which literals are told apart by value
MOST_LITERALS = 8  # different ones in one place, from which on they are data


class Statistics:
    """What a run did."""

    def __init__(self) -> None:
        self.operations = 0
        self.batches: list[tuple[Signature, int]] = []
        self.operands = 0
        self.in_place = 0
        self.rounds = 0


class Deferring:
    """Puts operations off, and runs them together."""

    defers = True
    transparent = False

    def __init__(self, table: Signatures, below: Any) -> None:
        self.table = table
        self.below = below
        self.device: device | None = None
        self.store = Blocks()
        self.closed = False
        self.count = 0  # of values
        self.statistics = Statistics()
        self.arguments: dict[int, Any] = {}  # what shared arguments are, by identity
        self.brought: dict[int, Tensor] = {}  # tensors of examples, by identity
        self.example = 0
        self.generators: dict[tuple[int, int], Generator] = {}
        self._calls: dict[int, tuple[Generator, int, int]] = {}
        self._rows = np.empty(0, np.int64)  # of each value that has run, within its type
        self._shared: dict[int, tuple[Slot, Tensor, Any]] = {}
        self._held: dict[int, Tensor] = {}  # the tensor in each slot
        self._data: dict[int, tuple[Tensor, Deferred]] = {}
        self._made: dict[Any, tuple[Any, Any]] = {}
        self._literals: dict[Any, set[bytes]] = {}
        self._begin()

    def _begin(self) -> None:
        """Begin with no operations put off."""
        self.first = self.count
        self.signatures: list[int] = []
        self.levels: list[int] = []
        self.refs: list[int] = []
        self.sites: list[Any] = []
        self.payloads: dict[int, list[Any]] = {}
        self.turns: list[tuple[int, int]] = [(0, self.example)]  # from which row on an example is

    def begin_example(self, index: int) -> None:
        """Let what follows belong to an example."""
        self.example = index
        self.turns.append((len(self.signatures), index))

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
            return self._once(key[:2], OpWork(op, attrs), specs, inputs)
        if found is None:
            try:
                found = self.table.new(key, OpWork(op, attrs), specs, inputs, key[3])
            except ValueDependentError:
                return self.at_once(op, inputs, attrs)
        return self.put_off(found, refs, level)

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
            value: Any = (
                x if x.__class__ is Deferred and x.run is self else self._operand(where, i, x)
            )
            if value.__class__ is Deferred:
                specs.append(value.kind)
                refs.append(value.index)
                if value.level >= level:
                    level = value.level + 1
            else:
                specs.append(value)
        return tuple(specs), refs, level

    def put_off(self, signature: Signature, refs: list[int], level: int) -> Any:
        """Add a row, and return what stands for its results."""
        self.signatures.append(signature.index)
        self.levels.append(level)
        self.refs += refs
        self.sites.append(_site())
        first = self.count
        outs = signature.outs
        self.count = first + len(outs)
        if not signature.many:
            return self.stand_in(first, outs[0], level)
        return tuple([self.stand_in(first + i, kind, level) for i, kind in enumerate(outs)])

    def stand_in(self, index: int, kind: int, level: int) -> Deferred:
        """Return what stands for a value."""
        made: Any = object.__new__(Deferred)
        made.run, made.index, made.kind, made.level = self, index, kind, level
        stands: Deferred = made
        return stands

    def at_once(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation now, alone: what cannot be put off."""
        given = tuple([x.settled() if x.__class__ is Deferred else x for x in inputs])
        return run_below(self.below, run, op, given, attrs)

    # -- operands ----------------------------------------------------------------------------------

    def _operand(self, where: Any, position: int, x: Any) -> Any:
        """Return the slot of a tensor that is shared, or what stands for data."""
        known = self._shared.get(id(x))
        if known is not None and known[2] is _held(x):
            return known[0]
        if x.__class__ is Deferred:  # of a run around this one
            x = x.settled()
        if id(x) in self.brought or (
            x.__class__ is Constant and not self._is_literal(where, position, x)
        ):
            return self.data(x)
        return self._slot(x)

    def _is_literal(self, where: Any, position: int, x: Tensor) -> bool:
        """Tell whether a constant is one of few in its place: then it is told by its value."""
        if x._value.size > LITERAL:
            return False
        seen = self._literals.setdefault((where, position), set())
        seen.add(x._value.tobytes())
        return len(seen) <= MOST_LITERALS

    def _slot(self, x: Tensor) -> Slot:
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

    def _hold(self, slot: Slot, x: Tensor) -> None:
        self._shared[id(x)] = slot, x, _held(x)
        self._held[slot.index] = x

    def held(self, slot: Slot) -> Tensor:
        """Return the tensor in a slot."""
        return self._held[slot.index]

    def data(self, x: Tensor) -> Deferred:
        """Return what stands for a tensor that an example made or brought."""
        known = self._data.get(id(x))
        if known is None or known[0] is not x:
            kind = self.table.kind(type_of(x))
            known = self._data[id(x)] = x, self.put_off(self.table.data(kind), [], 0)
            self.payloads.setdefault(kind, []).append(x)
        return known[1]

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
                slot = self.table.slot(Made(work, specs, i)._replace(work=key), y, keep=False)
                self._hold(slot, y)
        return known[1]

    # -- random numbers ----------------------------------------------------------------------------

    def reserve(self, generator: Generator, blocks: int) -> Tensor:
        """Return the state for a draw of this example: from a stream of its own."""
        found = self.generators.get((id(generator), self.example))
        if found is None:
            call = self._calls.get(id(generator))
            if call is None:
                call = self._calls[id(generator)] = generator, *generator.reserve(1)
            found = Generator.of_example(call[1], call[2], self.example)
            self.generators[id(generator), self.example] = found
        return self.constant(make_state(*found.reserve(blocks)))

    # -- running -----------------------------------------------------------------------------------

    def flush(self) -> None:
        """Run everything that was put off."""
        if not self.signatures:
            return
        signatures, first, payloads = self.signatures, self.first, self.payloads
        table = self.table.all
        index = np.array(signatures, np.int64)
        arity = np.array([s.arity for s in table], np.int64)[index]
        outs = np.array([len(s.outs) for s in table], np.int64)[index]
        refs = np.array(self.refs, np.int64)
        operations = Operations(index, np.array(self.levels, np.int64), refs, arity, outs, first)
        self._rows = np.concatenate((self._rows, np.empty(self.count - first, np.int64)))
        starts = np.cumsum(arity) - arity
        firsts = first + np.cumsum(outs) - outs
        self._begin()
        statistics = self.statistics
        statistics.operations += len(index)
        statistics.rounds += 1
        with interpret_with(self.below):
            for rows in batches(operations):
                signature = table[int(index[rows[0]])]
                self._run_batch(signature, rows, refs, starts, firsts, payloads)

    def _run_batch(
        self, signature: Signature, rows: Any, refs: Any, starts: Any, firsts: Any, payloads: Any
    ) -> None:
        size = len(rows)
        if signature.work is None:
            kind = signature.outs[0]
            rows.sort()
            begin = self.store.size(kind)
            self.store.add(kind, F.stack(payloads[kind]))
            self._rows[firsts[rows]] = np.arange(begin, begin + size)
            return
        taken = refs[starts[rows][:, None] + np.arange(signature.arity)]
        where = self._rows[taken]
        if size > 1 and signature.arity and bool((np.diff(where[:, 0]) < 0).any()):
            order = np.argsort(where[:, 0], kind="stable")
            rows, where = rows[order], where[order]
        shared = [self._held[s.index] if s.__class__ is Slot else None for s in signature.specs]
        begins = [self.store.size(kind) for kind in signature.outs]
        self.store.run(signature, [*where.T], shared, size)
        self.statistics.batches.append((signature, size))
        seen: dict[int, int] = {}
        for i, (kind, before) in enumerate(zip(signature.outs, begins, strict=True)):
            begin = before + seen.get(kind, 0)
            seen[kind] = seen.get(kind, 0) + size
            self._rows[firsts[rows] + i] = np.arange(begin, begin + size)

    # -- values ------------------------------------------------------------------------------------

    def read(self, x: Deferred) -> np.ndarray[Any, Any]:
        """Return the value of what stands for one: everything that was put off runs first."""
        if x.index >= self.first:
            self.wait()
        with interpret_with(self.below):
            return self.store.row(x.kind, int(self._rows[x.index]))._read()

    def wait(self) -> None:
        """Come back when everything that was put off has run."""
        self.flush()

    def settle(self, x: Deferred) -> None:
        """Let what stands for a value be a plain tensor."""
        if x.index >= self.first:
            self.wait()
        with interpret_with(self.below):
            become(x, self.store.row(x.kind, int(self._rows[x.index])))

    def rows_of(self, values: Iterable[Deferred], kind: int) -> Any:
        """Return values of one type that have run as one tensor."""
        rows = self._rows[[x.index for x in values]]
        with interpret_with(self.below):
            return self.store.take(kind, rows)

    def become(self, x: Deferred, tensor: Tensor) -> None:
        """Let what stands for a value hold another one."""
        become(x, tensor)

    def detached(self, x: Deferred) -> Tensor:
        """Return a value cut off from the tape."""
        result: Tensor = F.stop_gradient(x)
        return result

    def write(self, target: Tensor, x: Deferred) -> None:
        """Refuse to give a tensor from outside the value of one example."""
        raise ArgumentError(
            "a parameter, a buffer or another tensor from outside is shared by all examples and "
            "cannot take the value of one; return the value from the function instead"
        )

    def close(self) -> None:
        """Run what was put off, before gradients are computed."""
        self.flush()


def _held(x: Any) -> Any:
    """Return what tells whether a tensor has the value that it had."""
    return x.primal if hasattr(x, "level") else x._value


def _site() -> Any:
    return caller_site(sys._getframe(2), 12)
