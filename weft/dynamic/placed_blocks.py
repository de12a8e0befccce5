"""The values of a run on a device: kernels for few shapes, whatever batches there are.

A kernel of a device is compiled for its shapes, and the widths of batches never recur. So a batch
runs with a power of two of members: its last one fills it up, and nobody reads what is too much.
Operands that are no whole block are gathered from an arena, one for each type and of few sizes:
blocks are put there when somebody gathers from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..autodiff.function import Function
from ..capture import jit
from ..core.device import CPU
from ..core.device_array import has_own_memory
from ..core.dtype import Array
from ..core.op import F, random
from ..core.placing import place
from ..core.tensor import Tensor, constant, wrap
from .agenda import Ints
from .blocks import Blocks
from .cell_work import CellWork
from .clusters import ClusterWork
from .kernels import run_batch
from .places import brought_to, moves
from .schedule import PlacedBatch
from .signatures import BatchSignature

if TYPE_CHECKING:
    from .arenas import Arenas

LEAST_ROOM = 256  # rows of an arena
GROWTH = 4  # times the rows of before, where they are too few


def next_power_of_two(size: int) -> int:
    """Return the smallest power of two that is no less."""
    return 1 << (size - 1).bit_length()


class PutRows(Function):
    """Put rows into an arena where nothing was.

    So gradients of all that is there stay as they are, and the rest goes to nobody: the derivative
    of writing over something would make a copy of the arena with zeros in it each time.
    """

    @staticmethod
    def forward(ctx: Any, arena: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        """Return the arena with rows at these places."""
        ctx.places = places
        put: Tensor = F.index_copy(arena, 0, places, rows)
        return put

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        """Return the gradients of both."""
        return g, F.take(g, ctx.places, axis=0), None


class Arena:
    """Blocks of one type as one tensor.

    rows     the tensor; its last row is for what is too much
    begins   where each block begins in it; -1: it is not there
    end      where the next one will begin
    """

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        self.begins = np.empty(0, np.int64)
        self.end = 0

    def know(self, blocks: int) -> None:
        """Know of so many blocks in all."""
        self.begins = np.concatenate([self.begins, np.full(blocks - len(self.begins), -1)])

    def make_room(self, rows: int, zeros: Callable[[int], Tensor]) -> None:
        """Have room for so many more rows."""
        room = before = self.rows.shape[0]
        if self.end + rows < before:
            return
        self.end = before  # behind what was too much
        while self.end + rows >= room:
            room *= GROWTH
        self.rows = F.concat([self.rows, zeros(room - before)], 0)

    def put(self, number: int, block: Tensor, size: int) -> None:
        """Put a block in, of which so many rows count."""
        places = np.full(block.shape[0], self.rows.shape[0] - 1)
        places[:size] = np.arange(self.end, self.end + size)
        self.rows = PutRows.apply(self.rows, block, constant(places))
        self.begins[number] = self.end
        self.end += size


class PlacedBlocks(Blocks):
    """Values by type and row, some of them on devices.

    arrays   all values of a type, as the host reads them
    """

    def __init__(self, before: Arenas) -> None:
        """Go on in the place of arenas, with the values that are in them."""
        super().__init__(before.table)
        self.in_place, self.gathered = before.in_place, before.gathered
        self.arrays: Mapping[int, Array] = ReadValues(self)
        self._arenas: dict[int, Arena] = {}
        self._read: dict[tuple[int, int], Array] = {}  # blocks that somebody has read
        for kind, values in before.finished().items():
            self.add(kind, values)

    def add(self, kind: int, payload: Any) -> None:
        """Append what examples brought, or a block of values."""
        if isinstance(payload, Tensor) or self.table.places[kind] == CPU:
            super().add(kind, payload)
            return
        size, last = sum([len(x) if x.__class__ is np.ndarray else 1 for x in payload]), payload[-1]
        room = next_power_of_two(size) - size
        filling = [last[-1:].repeat(room, 0)] if last.__class__ is np.ndarray else [last] * room
        self._append(kind, self._brought(kind, [*payload, *filling]), size)

    # -- running -----------------------------------------------------------------------------------

    def run(self, batch: PlacedBatch, shared: list[Any]) -> None:
        """Run a batch; shared are its operands that do not differ between members, in place."""
        signature = batch.signature
        if not self._fills_up(signature):
            super().run(batch, shared)
            return
        # With members of any number of operands, those that fill the batch up take what is left.
        width = next_power_of_two(batch.size + signature.ragged)
        places, rows = (
            batch.operands(),
            next_power_of_two(batch.rows) if signature.ragged else width,
        )
        operands = [
            self._filled(spec, next(places), rows) if spec.__class__ is int else held
            for spec, held in zip(signature.specs, shared, strict=True)
        ]
        if batch.splits is not None:
            operands[-1] = _more_splits(batch.splits, width, rows)
        where = self.table.places[signature.outs[0]]
        given = brought_to(operands, where)
        results = _runner(signature, width, own_memory=has_own_memory(where))(*given)
        for kind, block in zip(signature.outs, results, strict=True):
            self._append(kind, block, batch.size)

    def _fills_up(self, signature: BatchSignature) -> bool:
        """Tell whether a batch may run with more members than it has; a draw would draw more."""
        work = signature.work
        drawn = getattr(getattr(work, "op", None), "kind", None) == random
        return self.table.any_elsewhere(signature.outs) and not drawn and not moves(work)

    # -- values ------------------------------------------------------------------------------------

    def take(self, kind: int, place: Any) -> Any:
        """Return values of a type, one for each row."""
        if self.table.places[kind] == CPU:
            return super().take(kind, place)
        rows = np.arange(place.start, place.stop) if place.__class__ is slice else place
        return self._gathered(kind, rows)

    def _filled(self, kind: int, place: Any, width: int) -> Any:
        """Return values of a type, the last of them as often as it takes."""
        block = self._whole_block(kind, place, width)
        if block is not None:
            self.in_place += 1
            return block
        rows = np.arange(place.start, place.stop) if place.__class__ is slice else place
        rows = np.concatenate([rows, np.repeat(rows[-1:], width - len(rows))])
        if self.table.places[kind] == CPU:
            return super().take(kind, rows)
        return self._gathered(kind, rows)

    def _whole_block(self, kind: int, place: Any, width: int) -> Any:
        """Return the block that some rows are, if it has the width that they are to have."""
        if place.__class__ is not slice:
            return None
        block, offset = self._find(kind, place.start)
        ends = [*self._starts[kind][1:], self._ends[kind]]
        found = self._blocks[kind][block]
        is_whole = offset == 0 and place.stop == ends[block] and found.shape[0] == width
        return found if is_whole else None

    def _gathered(self, kind: int, rows: Ints) -> Any:
        self.gathered += 1
        starts = np.array(self._starts[kind])
        block = np.searchsorted(starts, rows, "right") - 1
        arena = self._arena_with(kind, np.unique(block))
        places = rows - starts[block] + arena.begins[block]
        return F.take(arena.rows, constant(places), axis=0)

    def _arena_with(self, kind: int, needed: Ints) -> Arena:
        """Return the arena of a type with some blocks in it."""
        arena = self._arenas.get(kind)
        if arena is None:
            arena = self._arenas[kind] = Arena(self._zeros(kind, LEAST_ROOM))
        sizes = np.diff([*self._starts[kind], self._ends[kind]])
        arena.know(len(sizes))
        new = needed[arena.begins[needed] < 0]
        arena.make_room(int(sizes[new].sum()), partial(self._zeros, kind))
        for i in new.tolist():
            arena.put(i, self._blocks[kind][i], int(sizes[i]))
        return arena

    def _zeros(self, kind: int, rows: int) -> Tensor:
        shape, dtype = self.table.types[kind]
        zero = place(wrap(np.zeros((), dtype)), self.table.places[kind])
        zeros: Tensor = F.broadcast_to(zero, (rows, *shape))
        return zeros

    def apart(self, kind: int, rows: Ints) -> list[Tensor]:
        """Return values of a type, each as a tensor of its own: by one kernel, whichever it is."""
        if self.table.places[kind] == CPU:
            return super().apart(kind, rows)
        return [self.row(kind, row) for row in rows.tolist()]

    def row(self, kind: int, row: int) -> Tensor:
        """Return one value."""
        if self.table.places[kind] == CPU:
            return super().row(kind, row)
        block, offset = self._find(kind, row)
        found: Tensor = F.take(self._blocks[kind][block], constant(np.array(offset)), axis=0)
        return found

    # -- read by the host --------------------------------------------------------------------------

    def kinds(self) -> Iterator[int]:
        """Yield the types of which there are values."""
        return iter(self._blocks)

    def read(self, kind: int, row: int) -> Array:
        """Return the value in a row, of whose whole block the host makes one copy."""
        block, offset = self._find(kind, row)
        found: Array = self._read_block(kind, block)[offset]
        return found

    def all_read(self, kind: int) -> Array:
        """Return all values of a type."""
        sizes = np.diff([*self._starts[kind], self._ends[kind]]).tolist()
        return np.concatenate([self._read_block(kind, i)[:n] for i, n in enumerate(sizes)])

    def _read_block(self, kind: int, block: int) -> Array:
        if (kind, block) not in self._read:
            self._read[kind, block] = self._blocks[kind][block]._read()
        return self._read[kind, block]


class ReadValues(Mapping[int, Array]):
    """The arrays of a store by type, copied to the host when they are asked for."""

    def __init__(self, blocks: PlacedBlocks) -> None:
        self._blocks = blocks
        self._known: dict[int, Array] = {}

    def __getitem__(self, kind: int) -> Array:
        known = self._known.get(kind)
        if known is None or len(known) < self._blocks.size(kind):
            known = self._known[kind] = self._blocks.all_read(kind)
        return known

    def __iter__(self) -> Iterator[int]:
        return self._blocks.kinds()

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _runner(
    signature: BatchSignature, width: int, *, own_memory: bool
) -> Callable[..., tuple[Any, ...]]:
    """Return what runs a batch of so many members: a cell or a cluster as one program."""

    def run(*operands: Any) -> tuple[Any, ...]:
        return run_batch(signature, operands, width)

    if not own_memory or not isinstance(signature.work, (CellWork, ClusterWork)):
        return run
    programs = signature.kernel = signature.kernel or {}
    if width not in programs:
        programs[width] = jit(run)
    found: Callable[..., tuple[Any, ...]] = programs[width]
    return found


def _more_splits(splits: Tensor, members: int, rows: int) -> Tensor:
    """Return where rows are split between more members: the first of these has all that is left."""
    known = splits._value
    return constant(np.concatenate([known, np.full(members + 1 - len(known), rows, known.dtype)]))
