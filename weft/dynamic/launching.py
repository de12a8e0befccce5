"""Batches of cells that run one after another in one native call, and so do their adjoints.

Levels of a tree and steps of a chain are batches of some rows each, whose machine code takes some
ten microseconds: as long as Python takes to cut operands out of arenas and to put results there.
Here Python writes down what is to be done, as addresses (backends/cpu/runtime/launches.py), and
native code does it when somebody needs a value, or runs a batch in another way.
"""

from __future__ import annotations

from operator import is_not
from typing import TYPE_CHECKING, Any, NamedTuple

from ..backends.cpu.runtime.launches import LaunchList, address_of
from ..core.dtype import Array
from ..eager.array_program import in_order
from .cell_kernels import WIDE, CellCode, CellKernel, width_for
from .launch_forms import CellForm, LaunchedCell, LaunchRoom, can_launch
from .schedule import PlacedBatch
from .signatures import BatchSignature

if TYPE_CHECKING:
    from .arenas import Arenas


class LaunchedBatch(NamedTuple):
    """What a batch leaves for its gradient, None if none is wanted, and where its results lie."""

    saved: LaunchedCell | None
    outs: list[tuple[int, slice]]


class KnownOperands(NamedTuple):
    """What batches of one signature have in common, as long as arenas do not grow.

    held      the values of what members share, and their nodes on the tape
    code      the programs, if it is of no account through which rows gradients flow
    arenas    the address of the arena of each operand that differs between members
    shared    the addresses of the others
    results   the address of the arena of each result
    """

    held: list[Any]
    code: CellCode | None
    arenas: list[int]
    shared: list[int]
    results: list[int]


class CellLaunches:
    """Batches of a run of which each may read what those before make."""

    def __init__(self, arenas: Arenas) -> None:
        self._arenas = arenas
        self._list = LaunchList()
        self._room = LaunchRoom()
        self._results: dict[CellCode, tuple[int, list[int]]] = {}  # where they are made, by width
        self._added: list[tuple[PlacedBatch, list[Any]]] = []
        self._known: dict[BatchSignature, KnownOperands] = {}  # while arenas do not grow
        self._sure: set[BatchSignature] = set()  # of which that was looked at since `begin`
        self._held: list[Any] = [self._room]  # what addresses are of
        self._usable = False

    def begin(self) -> None:
        """Find out whether batches may run in lists now."""
        self._usable = can_launch()
        self._sure.clear()

    def forget(self) -> None:
        """Ask anew where arenas lie: one has grown."""
        self._known.clear()
        self._sure.clear()

    def add(
        self, batch: PlacedBatch, kernel: CellKernel, shared: list[Any]
    ) -> LaunchedBatch | None:
        """Let a batch run with others; return what it leaves, or None if it must run alone."""
        signature, size = batch.signature, batch.size
        if not self._usable or size >= WIDE or len(batch.numbers) < len(batch.places):
            return None
        if signature not in self._sure:
            self._ask(signature, kernel, shared)
        known = self._known[signature]
        code = known.code or kernel.code_for(self._arenas.wanted(batch, shared))
        width = width_for(size)
        form = code.forms.get(width)
        if form is None:
            form = code.forms[width] = CellForm(code, signature, kernel, width)
        if form.call is None:
            return None
        outs = self._arenas.blocks(signature.outs, size)
        operands, kept = self._write(form, code, batch, known, outs)
        self._added.append((batch, shared))
        if self._list.is_long:
            self._arenas.launch()
        if code.adjoint is None:
            return LaunchedBatch(None, outs)
        return LaunchedBatch(LaunchedCell(code, form, operands, kept, size, self._held), outs)

    def _ask(self, signature: BatchSignature, kernel: CellKernel, shared: list[Any]) -> None:
        """Find out what batches of a signature have in common, unless it is as it was."""
        held = [x for x in shared if x is not None]
        found, known = [part for x in held for part in (x._value, x._node)], self._known
        before = known[signature].held if signature in known else ()
        if len(found) != len(before) or any(map(is_not, found, before)):
            known[signature] = self._know(signature, kernel, shared, found)
        self._sure.add(signature)

    def _know(
        self, signature: BatchSignature, kernel: CellKernel, shared: list[Any], held: list[Any]
    ) -> KnownOperands:
        """Return what batches of a signature have in common, where arenas lie now."""
        differ = [spec for spec in signature.specs if spec.__class__ is int]
        return KnownOperands(
            held,
            kernel.code_of_all(self._arenas.wants(signature, shared)),
            [self._address(self._arenas.arrays[kind]) for kind in differ],
            [
                self._address(in_order(x._value))
                for spec, x in zip(signature.specs, shared, strict=True)
                if spec.__class__ is not int
            ],
            [self._address(self._arenas.arrays[kind]) for kind in signature.outs],
        )

    def _address(self, array: Array) -> int:
        self._held.append(array)
        return address_of(array)

    def _write(
        self,
        form: CellForm,
        code: CellCode,
        batch: PlacedBatch,
        known: KnownOperands,
        outs: list[tuple[int, slice]],
    ) -> tuple[list[int], list[int]]:
        """Write a batch down; return where its operands lie, and what is kept for the way back."""
        made = self._results.get(code)
        if made is None or made[0] < form.width:
            where = [self._room.take(row * form.width) for row in form.results]
            made = self._results[code] = form.width, where
        call, launches = form.call, self._list
        assert call is not None, "it was asked for"
        launches.runs(call)
        operands, kept, beside = form.write(
            launches.words,
            self._room.take,
            batch.places,
            batch.numbers,
            batch.size,
            form.width,
            known.arenas,
            known.shared,
            made[1],
            known.results,
            [block.start for _, block in outs],
            self._room.take(form.kept_bytes) if form.kept_bytes else 0,
            form.kept,
            call.run,
            call.context,
        )
        self._arenas.in_place += beside
        self._arenas.gathered += len(batch.places) - beside
        return operands, kept

    def run(self) -> list[tuple[PlacedBatch, list[Any]]]:
        """Run all batches; return them if one has met an index out of range."""
        if not self._list:
            return []
        added, self._added = self._added, []
        return [] if self._list.run() else added
