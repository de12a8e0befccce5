"""The values of a run as arrays: all of one type lie in one arena, by row.

The results of a batch are a block of rows side by side. Operands that lie side by side are used in
place, others are gathered. What is needed to go back is kept batch by batch, and the arenas are
the outputs of one node of the tape (pullback.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.config import config
from ..core.dtype import Array, is_float
from ..core.op import F
from ..core.tensor import Tensor, constant, wrap
from .agenda import Ints
from .cell_kernels import CellKernel
from .launching import CellLaunches
from .pullback import RanBatch, recorded_arenas
from .records import NUMBERS, stacked
from .room import room_for
from .schedule import PlacedBatch
from .signatures import BatchSignature, SignatureTable
from .tape_kernels import tape_kernel


class Arenas:
    """Values by type and row."""

    def __init__(self, table: SignatureTable) -> None:
        self.table = table
        self.arrays: dict[int, Array] = {}
        self.tracked: dict[int, Any] = {}  # which rows gradients flow through
        self.flowing: dict[int, int] = {}  # how many these are
        self.ends: dict[int, int] = {}
        self.steps: list[Any] = []  # batches that ran, and where data was put
        self.brought: list[tuple[int, int, Tensor]] = []  # tensors with gradients: type, row
        self.shared: dict[int, Tensor] = {}  # slots that gradients are wanted of
        self.in_place = self.gathered = self.rounds = 0
        self.outputs: dict[int, Tensor] | None = None
        self._launches = CellLaunches(self)

    # -- memory ------------------------------------------------------------------------------------

    def size(self, kind: int) -> int:
        """Return how many values of a type there are."""
        return self.ends.get(kind, 0)

    def prepare(self, counts: dict[int, int]) -> None:
        """Make room for so many more values of each type, which run now."""
        self.rounds += 1
        self._launches.begin()
        for kind, count in counts.items():
            end = self.ends.setdefault(kind, 0)
            array = self.arrays.get(kind)
            if array is None or len(self.tracked[kind]) < end + count:
                self._grow(kind, array, end, count)

    def _grow(self, kind: int, array: Array | None, end: int, count: int) -> None:
        rows = count if array is None else max(end + count, 2 * len(self.tracked[kind]))
        shape, dtype = self.table.types[kind]
        # What lies behind the last value may be read, to fill a batch up, and is not looked at.
        grown = room_for(rows, shape, dtype)
        tracked = np.zeros(rows, np.bool_)
        if array is not None:
            grown[:end], tracked[:end] = array[:end], self.tracked[kind][:end]
        self.arrays[kind], self.tracked[kind] = grown, tracked
        self._launches.forget()

    def _block(self, kind: int, size: int) -> slice:
        start = self.ends[kind]
        self.ends[kind] = start + size
        return slice(start, start + size)

    # -- running -----------------------------------------------------------------------------------

    def add(self, kind: int, payload: Sequence[Any]) -> None:
        """Append what examples brought."""
        values = stacked(payload, self.table.types[kind].dtype)
        block = self._block(kind, len(values))
        self.arrays[kind][block] = values
        self.steps.append((kind, block))
        row = block.start
        for x in payload:
            if x.__class__ is np.ndarray:
                row += len(x)
                continue
            if x.__class__ not in NUMBERS and x._node is not None:
                self.brought.append((kind, row, x))
                self._track(kind, slice(row, row + 1))
            row += 1

    def run(self, batch: PlacedBatch, shared: list[Any]) -> None:
        """Run a batch; shared are its operands that do not differ between members, in place."""
        signature, size = batch.signature, batch.size
        kernel = signature.kernel
        if kernel is None:
            kernel = signature.kernel = self._kernel(signature)
        if kernel.__class__ is CellKernel:
            launched = self._launches.add(batch, kernel, shared)
            if launched is not None:
                self._ran(RanBatch(batch, kernel, launched.saved, shared, launched.outs))
                return
        self.launch()  # this one may read what is made there
        given = self._stacked(batch) if kernel.takes_stack else self._given(batch, kernel, shared)
        found, wanted = zip(*given, strict=True) if given else ((), ())
        results, saved = kernel.run(found, size, wanted)
        outs = self.blocks(signature.outs, size)
        for (kind, block), result in zip(outs, results, strict=True):
            self.arrays[kind][block] = result
        self._ran(RanBatch(batch, kernel, saved, shared, outs))

    def launch(self) -> None:
        """Run the batches that wait for being run together."""
        for batch, shared in self._launches.run():  # one has failed: alone it tells why
            found, wanted = zip(*self._given(batch, batch.signature.kernel, shared), strict=True)
            batch.signature.kernel.run(found, batch.size, wanted)

    def blocks(self, kinds: Sequence[int], size: int) -> list[tuple[int, slice]]:
        """Return where the results of a batch will lie."""
        return [(kind, self._block(kind, size)) for kind in kinds]

    def _ran(self, ran: RanBatch) -> None:
        """Note a batch that runs, and through which of its results gradients flow."""
        if ran.saved is not None:
            for kind, block in ran.outs:
                if is_float(self.arrays[kind].dtype):
                    self._track(kind, block)
        self.steps.append(ran)

    def wanted(self, batch: PlacedBatch, shared: list[Any]) -> tuple[bool, ...]:
        """Tell of each operand whether gradients are wanted of it."""
        signature, places = batch.signature, iter(batch.places)
        if not signature.grad:
            return (False,) * len(signature.specs)
        return tuple(
            [
                self._is_tracked(spec, next(places))
                if spec.__class__ is int
                else self._wants(signature, spec, held)
                for spec, held in zip(signature.specs, shared, strict=True)
            ]
        )

    def wants(self, signature: BatchSignature, shared: list[Any]) -> tuple[bool, ...] | None:
        """Tell of each operand whether gradients are wanted of it if members share it.

        None is returned where no gradients are recorded.
        """
        pairs = zip(signature.specs, shared, strict=True)
        wanted = [s.__class__ is not int and self._wants(signature, s, x) for s, x in pairs]
        return tuple(wanted) if signature.grad else None

    def _given(
        self, batch: PlacedBatch, kernel: Any, shared: list[Any]
    ) -> list[tuple[Array | None, bool]]:
        """Return all operands, and whether gradients are wanted of each."""
        signature, found = batch.signature, list[tuple[Array | None, bool]]()
        rest = self._operands(batch, kernel.width(batch.rows))
        for spec, held in zip(signature.specs, shared, strict=True):
            if spec.__class__ is int:
                found.append(next(rest))
            else:
                value = None if held is None else held._value
                found.append((value, self._wants(signature, spec, held)))
        return found

    def _stacked(self, batch: PlacedBatch) -> list[tuple[Array | None, bool]]:
        """Return all operands as one, stacked behind the batch axis."""
        kind, (place,) = batch.signature.specs[0], batch.places
        self.gathered += 1
        flows = batch.signature.grad and self._is_tracked(kind, place)
        return [(self.arrays[kind].take(place.T, 0, mode="clip"), flows)]

    def _kernel(self, signature: BatchSignature) -> Any:
        if not getattr(signature.work, "is_large", False):
            return tape_kernel(signature)
        types = [self.table.types[s] if s.__class__ is int else s.type for s in signature.specs]
        return CellKernel(signature, types)

    def _track(self, kind: int, block: slice) -> None:
        self.tracked[kind][block] = True
        self.flowing[kind] = self.flowing.get(kind, 0) + block.stop - block.start

    def _is_tracked(self, kind: int, place: Any) -> bool:
        """Tell whether gradients flow through any of some rows."""
        flowing = self.flowing.get(kind, 0)
        if flowing in (0, self.ends[kind]):
            return flowing > 0
        tracked = self.tracked[kind]
        first = place.start if place.__class__ is slice else place.flat[0]
        return bool(tracked[first]) or bool(tracked[place].any())

    def _operands(self, batch: PlacedBatch, width: int) -> Iterator[tuple[Array, bool]]:
        """Yield the operands that differ between members, and whether gradients flow to each."""
        signature = batch.signature
        kinds = iter([spec for spec in signature.specs if spec.__class__ is int])
        for place, count in zip(batch.places, signature.runs, strict=True):
            kind = next(kinds)
            flows = signature.grad and self._is_tracked(kind, place)
            if count == 1:
                yield self._rows(kind, place, width), flows
                continue
            self.gathered += 1
            lines = self.arrays[kind].take(_filled(place, width), 0, mode="clip")
            for line in lines:
                yield line, flows
            for _ in range(count - 1):
                next(kinds)

    def _rows(self, kind: int, place: Any, width: int) -> Array:
        """Return rows where they lie, or gathered; as many as a kernel is to be given."""
        array = self.arrays[kind]
        if place.__class__ is slice:
            self.in_place += 1
            end = place.start + width
            # Other numbers may be no indices of what these are looked up in, and whatever lies
            # behind may be no number at all, of which an interpreter or a trap would tell.
            told = config.nan_trap or config.debug_interpret
            if end == place.stop or (is_float(array.dtype) and not told):
                return array[place.start : end]
            place = np.arange(place.start, place.stop)
        else:
            self.gathered += 1
        size = len(place)
        found = np.empty((width, *array.shape[1:]), array.dtype)
        array.take(place, 0, found[:size], "clip")  # "raise" would take a copy
        found[size:] = found[size - 1]
        return found

    def _wants(self, signature: BatchSignature, slot: Any, held: Any) -> bool:
        if held is None or not signature.grad or held._node is None:
            return False
        self.shared[slot.index] = held
        return True

    # -- values ------------------------------------------------------------------------------------

    def read(self, kind: int, row: int) -> Array:
        """Return the value in a row."""
        found: Array = self.arrays[kind][row]
        return found

    def take(self, kind: int, rows: Ints) -> Tensor:
        """Return values of a type, one for each row, as a tensor on the tape."""
        found: Tensor = F.take(self.finished()[kind], constant(rows), axis=0)
        return found

    def apart(self, kind: int, rows: Ints) -> list[Tensor]:
        """Return values of a type, each as a tensor of its own."""
        return list(self.take(kind, rows).unbind())

    def row(self, kind: int, row: int) -> Tensor:
        """Return one value as a tensor on the tape."""
        found: Tensor = self.finished()[kind][row]
        return found

    def finished(self) -> dict[int, Tensor]:
        """Return the arenas as tensors: from now on nothing more runs."""
        if self.outputs is None:
            self.outputs = recorded_arenas(self) or {
                kind: wrap(array[: self.ends[kind]]) for kind, array in self.arrays.items()
            }
        return self.outputs


def _filled(place: Ints, width: int) -> Ints:
    """Return lines of rows as long as a kernel is to be given: the last of each again."""
    room = width - place.shape[1]
    return place if not room else np.concatenate([place, np.repeat(place[:, -1:], room, 1)], 1)
