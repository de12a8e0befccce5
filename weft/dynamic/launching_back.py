"""The way back through batches of cells that ran in lists of launches, in lists again.

What the gradients of weights are computed from is put side by side on the way, so that there is one
long product for the members of all batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..backends.cpu.runtime.buffers import pooled_empty
from ..backends.cpu.runtime.launches import ADDED, LaunchList, address_of
from ..core.dtype import Array
from .cell_kernels import CellCode, filling, width_of_rest
from .gradient_rows import GradientRows
from .launch_forms import BYTE, LaunchedCell, LaunchRoom, TotalForm, can_launch

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
        self.addresses = [0 if x is None else address_of(x) for x in self._arrays]
        self.done = 0

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


class KnownAdjoint(NamedTuple):
    """What the adjoints of batches of one code have in common, in a way back.

    made     where the adjoint puts what it makes: one place for all batches, which stays in caches
    outs     which results have gradients, and seeds the addresses of these
    grads    for each gradient that an operand is given the address of the rows that have it, and
             blanks whether nothing was added to a row before who reads it last
    """

    rows: TotalRows
    made: list[int]
    outs: list[int]
    seeds: list[int]
    grads: list[int]
    blanks: list[bool]


class AdjointLaunches:
    """The way back through batches that ran in lists, in lists again."""

    def __init__(self, ran: Sequence[RanBatch], grads: dict[int, GradientRows]) -> None:
        self._grads = grads
        self._list = LaunchList()
        self._room = LaunchRoom()
        self._known: dict[CellCode, KnownAdjoint] = {}
        self._slots: dict[CellCode, Any] = {}
        if can_launch() and all(x.letter in ADDED and x.is_whole for x in grads.values()):
            for code, batches in _by_code(ran).items():
                self._begin(code, batches)

    def _begin(self, code: CellCode, batches: Sequence[RanBatch]) -> None:
        """Have room for the gradients of some batches, if their adjoints can run in lists."""
        cells = [batch.saved for batch in batches]
        forms = {id(cell.form): cell.form for cell in cells}  # one for each width
        if any(form.adjoint_of(code) is None for form in forms.values()):
            return
        signature = batches[0].batch.signature
        form = code.total_form
        if form is None:
            form = code.total_form = TotalForm(code, signature)
        if form.works:
            given = [self._grads[kind] for _, kind, _ in form.apart]
            self._known[code] = KnownAdjoint(
                TotalRows(code, form, cells),
                self._room_for(form, max(form.width for form in forms.values())),
                [i for i, _ in form.seeds],
                [self._grads[kind].address(0) for _, kind in form.seeds],
                [grads.address(0) for grads in given],
                [grads.is_blank for grads in given],
            )
            self._slots[code] = signature.specs

    def _room_for(self, form: TotalForm, width: int) -> list[int]:
        """Return where to put what adjoints of up to a width make, but for what goes elsewhere."""
        rows = enumerate(form.made)
        return [0 if j in form.direct else self._room.take(row * width) for j, row in rows]

    def takes(self, ran: RanBatch) -> bool:
        """Tell whether a batch is pulled back here."""
        return ran.saved.__class__ is LaunchedCell and ran.saved.code in self._known

    def add(self, ran: RanBatch) -> None:
        """Have the gradients of a batch pulled back."""
        cell, launches, batch = ran.saved, self._list, ran.batch
        code, form = cell.code, cell.form
        known, call = self._known[code], form.adjoint_of(code)
        rows = known.rows
        launches.runs(call)
        form.writes_back(code, rows.form)(
            launches.words,
            batch.places,
            batch.numbers,
            batch.last,
            cell.size,
            cell.operands,
            cell.kept,
            known.seeds,
            [ran.outs[i][1].start for i in known.outs],
            known.made,
            rows.addresses,
            rows.done,
            known.grads,
            known.blanks,
            call.run,
            call.context,
        )
        rows.done += cell.size
        if launches.is_long:
            launches.run()

    def run(self) -> None:
        """Pull all gradients back that wait for it."""
        if self._list:
            self._list.run()

    def totals(self) -> Iterator[tuple[int, Array]]:
        """Yield the slots of shared operands, and their gradients."""
        for code, known in self._known.items():
            if code.shared:
                for i, total in known.rows.found():
                    yield self._slots[code][i].index, total


def _by_code(ran: Sequence[RanBatch]) -> dict[CellCode, list[RanBatch]]:
    """Return the batches of each code that ran in lists."""
    found: dict[CellCode, list[RanBatch]] = {}
    for batch in ran:
        if batch.saved.__class__ is LaunchedCell:
            found.setdefault(batch.saved.code, []).append(batch)
    return found
