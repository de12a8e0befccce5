"""The way back through batches of cells that ran in lists of launches, in lists again.

What the gradients of weights are computed from is put side by side on the way, so that there is one
long product for the members of all batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..backends.cpu.runtime.buffers import pooled_empty
from ..backends.cpu.runtime.launches import ADDED, LaunchList, address_of
from ..core.dtype import Array
from .cell_kernels import CellCode, filling, width_of_rest
from .gradient_rows import GradientRows
from .launch_forms import (
    BYTE,
    LaunchedCell,
    LaunchRoom,
    TotalForm,
    arguments_of,
    can_launch,
)
from .schedule import PlacedBatch

if TYPE_CHECKING:
    from .pullback import RanBatch


class TotalRows:
    """What the gradients of shared operands are computed from, for all members of lists.

    Members lie in the order in which their adjoints run, so that what these fill up with is written
    over by the next one.
    """

    def __init__(self, code: CellCode, form: TotalForm, cells: Sequence[LaunchedCell]) -> None:
        self.code, self.form = code, form
        self.total = sum(cell.size for cell in cells)
        self.width = width_of_rest(self.total)
        rows = max(self.width, self.total + filling(max(cell.size for cell in cells)))
        self._one = cells[0]
        self._arrays = [
            pooled_empty((rows * nbytes,), BYTE) if nbytes else None for _, nbytes in form.taken
        ]
        self._addresses = [0 if x is None else address_of(x) for x in self._arrays]
        self.done = 0

    def put(self, made: list[int]) -> None:
        """Let the adjoint of the next batch put what is taken of it where that belongs."""
        for j, k in self.form.direct.items():
            made[j] = self._addresses[k] + self.done * self.form.taken[k][1]

    def copy(self, launches: LaunchList, given: list[int], size: int) -> None:
        """Take rows of a batch from where they lie."""
        done, count = self.done, len(given)
        for (i, nbytes), target in zip(self.form.taken, self._addresses, strict=True):
            if nbytes and i < count:
                launches.copy(target + done * nbytes, given[i], size * nbytes)
        self.done += size

    def found(self) -> Iterator[tuple[int, Array]]:
        """Yield the places of shared operands, and their gradients."""
        assert self.done == self.total, "all adjoints have run"
        given = [self._array(k) for k in range(len(self.form.taken))]
        made = self.code.totals.run(given, self.width)
        yield from zip(self.code.shared, made, strict=True)

    def _array(self, k: int) -> Array:
        """Return one of the program's arrays, filled up with members whose gradients are zero."""
        (i, nbytes), block, code = self.form.taken[k], self._arrays[k], self.code
        if block is None:
            return self._one.array(i)
        value = [*code.given, *code.made][i]
        shape = self.width, *value.shape[1:]
        found: Array = block[: self.width * nbytes].view(value.dtype).reshape(shape)
        is_gradient = i >= len(code.given) - len(code.seeds)
        found[self.total :] = 0 if is_gradient else found[self.total - 1]
        return found


class AdjointLaunches:
    """The way back through batches that ran in lists, in lists again."""

    def __init__(self, ran: Sequence[RanBatch], grads: dict[int, GradientRows]) -> None:
        self._grads = grads
        self._list = LaunchList()
        self._room = LaunchRoom()
        self._made: dict[CellCode, tuple[int, list[int]]] = {}
        self._rows: dict[CellCode, TotalRows] = {}
        self._slots: dict[CellCode, Any] = {}
        if can_launch() and all(x.letter in ADDED and x.is_whole for x in grads.values()):
            for code, batches in _by_code(ran).items():
                self._begin(code, batches)

    def _begin(self, code: CellCode, batches: Sequence[RanBatch]) -> None:
        """Have room for the gradients of some batches, if their adjoints can run in lists."""
        cells = [batch.saved for batch in batches]
        if any(cell.form.adjoint_of(code) is None for cell in cells):
            return
        specs = batches[0].batch.signature.specs
        if code.total_form is None:
            code.total_form = TotalForm(code, specs)
        if code.total_form.works:
            self._rows[code] = TotalRows(code, code.total_form, cells)
            self._slots[code] = specs

    def takes(self, ran: RanBatch) -> bool:
        """Tell whether a batch is pulled back here."""
        return ran.saved.__class__ is LaunchedCell and ran.saved.code in self._rows

    def add(self, ran: RanBatch) -> None:
        """Have the gradients of a batch pulled back."""
        cell, launches = ran.saved, self._list
        code, form, rows = cell.code, cell.form, self._rows[cell.code]
        call = form.adjoint_of(code)
        given = [*cell.operands, *cell.kept]
        for kind, block in ran.outs:
            if kind in self._grads:
                given.append(self._grads[kind].address(block.start))
        known = self._made.get(code)
        if known is None or known[0] < form.width:
            where = [self._room.take(row * form.width) for row in rows.form.made]
            known = self._made[code] = form.width, where
        made = known[1][:]
        rows.put(made)
        launches.program(call, arguments_of(call, given, made))
        rows.copy(launches, given, cell.size)
        self._give(ran.batch, rows.form, made)
        if launches.is_long:
            launches.run()

    def _give(self, batch: PlacedBatch, form: TotalForm, made: list[int]) -> None:
        """Let operands have their gradients; the last one first: who reads a value last writes."""
        launches, size = self._list, batch.size
        for at, kind, k in form.apart:
            grads, place, source = self._grads[kind], batch.places[at], made[k]
            writes = grads.is_blank and batch.last[at]
            if place.__class__ is slice:
                target = grads.address(place.start)
                if writes:
                    launches.copy(target, source, size * grads.row_bytes)
                else:
                    launches.add(grads.letter, target, source, size * grads.elements)
                continue
            target, rows = grads.address(0), batch.numbers[at]
            if writes:
                launches.scatter(target, source, rows, size, grads.row_bytes)
            else:
                launches.scatter_add(grads.letter, target, source, rows, size, grads.elements)

    def run(self) -> None:
        """Pull all gradients back that wait for it."""
        if self._list:
            self._list.run()

    def totals(self) -> Iterator[tuple[int, Array]]:
        """Yield the slots of shared operands, and their gradients."""
        for code, rows in self._rows.items():
            if code.shared:
                for i, total in rows.found():
                    yield self._slots[code][i].index, total


def _by_code(ran: Sequence[RanBatch]) -> dict[CellCode, list[RanBatch]]:
    """Return the batches of each code that ran in lists."""
    found: dict[CellCode, list[RanBatch]] = {}
    for batch in ran:
        if batch.saved.__class__ is LaunchedCell:
            found.setdefault(batch.saved.code, []).append(batch)
    return found
