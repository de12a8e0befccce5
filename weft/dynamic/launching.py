"""Batches of cells that run one after another in one native call, and so do their adjoints.

Levels of a tree and steps of a chain are batches of some rows each, whose machine code takes some
ten microseconds: as long as Python takes to cut operands out of arenas and to put results there.
Here Python writes down what is to be done, as addresses (backends/cpu/runtime/launches.py), and
native code does it when somebody needs a value, or runs a batch in another way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..backends.cpu.runtime.launches import LaunchList, address_of
from ..core.dtype import Array, is_float
from ..eager.array_program import in_order
from .cell_kernels import WIDE, CellCode, CellKernel, width_for
from .launch_forms import CellForm, LaunchedCell, LaunchRoom, arguments_of, can_launch
from .schedule import PlacedBatch

if TYPE_CHECKING:
    from .arenas import Arenas


class LaunchedBatch(NamedTuple):
    """What a batch leaves for its gradient, None if none is wanted, and where its results lie."""

    saved: LaunchedCell | None
    outs: list[tuple[int, slice]]


class CellLaunches:
    """Batches of a run of which each may read what those before make."""

    def __init__(self, arenas: Arenas) -> None:
        self._arenas = arenas
        self._list = LaunchList()
        self._room = LaunchRoom()
        self._results: dict[CellCode, tuple[int, list[int]]] = {}  # where they are made, by width
        self._added: list[tuple[PlacedBatch, list[Any]]] = []
        self._places: dict[int, tuple[Array, int, bool]] = {}  # of arenas; and are they floats?
        self._shared: dict[int, tuple[Any, int]] = {}  # of what members share, by identity
        self._held: list[Any] = [self._room]  # what addresses are of
        self._usable = False

    def begin(self) -> None:
        """Find out whether batches may run in lists now."""
        self._usable = can_launch()

    def add(
        self, batch: PlacedBatch, kernel: CellKernel, shared: list[Any]
    ) -> LaunchedBatch | None:
        """Let a batch run with others; return what it leaves, or None if it must run alone."""
        size = batch.size
        if not self._usable or size >= WIDE or len(batch.numbers) < len(batch.places):
            return None
        code = kernel.code_for(self._arenas.wanted(batch, shared))
        width = width_for(size)
        form = code.forms.get(width)
        if form is None:
            form = code.forms[width] = CellForm(code, len(batch.signature.outs), width)
        if form.call is None:
            return None
        operands = self._operands(batch, kernel, shared, width)
        outs = self._arenas.blocks(batch.signature.outs, size)
        found = self._call(form, code, operands, outs, size)
        self._added.append((batch, shared))
        if self._list.is_long:
            self._arenas.launch()
        if code.adjoint is None:
            return LaunchedBatch(None, outs)
        kept = [found[i] for i in code.kept]
        return LaunchedBatch(LaunchedCell(code, form, operands, kept, size, self._held), outs)

    def _operands(
        self, batch: PlacedBatch, kernel: CellKernel, shared: list[Any], width: int
    ) -> list[int]:
        """Return the addresses of all operands; what does not lie side by side is gathered."""
        found, size, i = list[int](), batch.size, 0
        arenas, launches = self._arenas, self._list
        for spec, own, nbytes in zip(batch.signature.specs, shared, kernel.row_bytes, strict=True):
            if spec.__class__ is not int:
                found.append(self._shared_at(own._value))
                continue
            place = batch.places[i]
            _, start, floats = self._place(spec)
            beside = place.__class__ is slice
            if beside:
                arenas.in_place += 1
            else:
                arenas.gathered += 1
            if beside and (floats or size == width):
                found.append(start + place.start * nbytes)
            else:
                target = self._room.take(width * nbytes)
                found.append(target)
                if beside:
                    launches.copy(target, start + place.start * nbytes, size * nbytes)
                else:
                    launches.gather(target, start, batch.numbers[i], size, nbytes)
                if width > size:
                    end = target + size * nbytes
                    launches.fill(end, end - nbytes, width - size, nbytes)
            i += 1
        return found

    def _place(self, kind: int) -> tuple[Array, int, bool]:
        """Return an arena, its address, and whether it holds floats."""
        found, array = self._places.get(kind), self._arenas.arrays[kind]
        if found is None or found[0] is not array:  # it has grown
            found = self._places[kind] = array, address_of(array), is_float(array.dtype)
            self._held.append(array)
        return found

    def _shared_at(self, value: Array) -> int:
        """Return the address of what members share."""
        found = self._shared.get(id(value))
        if found is None:
            array = in_order(value)
            found = self._shared[id(value)] = value, address_of(array)
            self._held.append(array)
        return found[1]

    def _call(
        self,
        form: CellForm,
        code: CellCode,
        operands: list[int],
        outs: list[tuple[int, slice]],
        size: int,
    ) -> list[int]:
        """Have the program run, and return where everything that it makes lies afterwards."""
        launches, known = self._list, self._results.get(code)
        if known is None or known[0] < form.width:
            where = [self._room.take(row * form.width) for row in form.results]
            known = self._results[code] = form.width, where
        begin = self._room.take(form.kept_bytes) if form.kept_bytes else 0
        made = [*known[1], *[begin + offset for offset in form.kept]]
        call = form.call
        assert call is not None, "it was asked for"
        launches.program(call, arguments_of(call, operands, made))
        for i, (kind, block) in enumerate(outs):
            # What fills the batch up would lie where others are: only its members are copied.
            nbytes = form.results[i]
            target = self._place(kind)[1] + block.start * nbytes
            launches.copy(target, made[i], nbytes * size)
            made[i] = target
        return made

    def run(self) -> list[tuple[PlacedBatch, list[Any]]]:
        """Run all batches; return them if one has met an index out of range."""
        if not self._list:
            return []
        added, self._added = self._added, []
        return [] if self._list.run() else added
