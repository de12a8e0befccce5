"""The values of a run as arrays: all of one type lie in one arena, by row.

The results of a batch are a block of rows side by side. Operands that lie side by side are used in
place, others are gathered. What is needed to go back is kept batch by batch, and the arenas are
the outputs of one node of the tape (pullback.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dtype import Array, is_float
from ..core.op import F
from ..core.tensor import Tensor, constant, wrap
from .agenda import Ints
from .cell_kernels import CellKernel
from .pullback import RanBatch, recorded_arenas
from .records import NUMBERS, stacked
from .signatures import BatchSignature, SignatureTable
from .tape_kernels import TapeKernel


class Arenas:
    """Values by type and row."""

    def __init__(self, table: SignatureTable) -> None:
        self.table = table
        self.arrays: dict[int, Array] = {}
        self.tracked: dict[int, Any] = {}  # which rows gradients flow through
        self.ends: dict[int, int] = {}
        self.steps: list[Any] = []  # batches that ran, and where data was put
        self.brought: list[tuple[int, int, Tensor]] = []  # tensors with gradients: type, row
        self.shared: dict[int, Tensor] = {}  # slots that gradients are wanted of
        self.in_place = self.gathered = 0
        self.outputs: dict[int, Tensor] | None = None

    # -- memory ------------------------------------------------------------------------------------

    def size(self, kind: int) -> int:
        """Return how many values of a type there are."""
        return self.ends.get(kind, 0)

    def prepare(self, counts: dict[int, int]) -> None:
        """Make room for so many more values of each type."""
        for kind, count in counts.items():
            end = self.ends.setdefault(kind, 0)
            array = self.arrays.get(kind)
            if array is None or len(array) < end + count:
                self._grow(kind, array, end, count)

    def _grow(self, kind: int, array: Array | None, end: int, count: int) -> None:
        rows = count if array is None else max(end + count, 2 * len(array))
        shape, dtype = self.table.types[kind]
        grown, tracked = np.empty((rows, *shape), dtype), np.zeros(rows, np.bool_)
        if array is not None:
            grown[:end], tracked[:end] = array[:end], self.tracked[kind][:end]
        self.arrays[kind], self.tracked[kind] = grown, tracked

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
                self.tracked[kind][row] = True
            row += 1

    def run(
        self, signature: BatchSignature, rows: list[Ints], shared: list[Any], size: int
    ) -> None:
        """Run a batch: rows are those of its operands that differ, shared the others in place."""
        kernel = signature.kernel
        if kernel is None:
            kernel = signature.kernel = self._kernel(signature)
        found: list[Array | None] = []
        wanted: list[bool] = []
        places: list[Any] = []
        rest, width = iter(rows), kernel.width(size)
        for spec, held in zip(signature.specs, shared, strict=True):
            if spec.__class__ is int:
                where = self._place(next(rest))
                places.append(where)
                found.append(self._gathered(spec, where, width))
                wanted.append(signature.grad and bool(self.tracked[spec][where].any()))
            else:
                found.append(None if held is None else held._value)
                wanted.append(self._wants(signature, spec, held))
        results, saved = kernel.run(found, size, wanted)
        outs = [(kind, self._block(kind, size)) for kind in signature.outs]
        for (kind, block), result in zip(outs, results, strict=True):
            self.arrays[kind][block] = result
            if saved is not None and is_float(result.dtype):
                self.tracked[kind][block] = True
        self.steps.append(RanBatch(signature, kernel, saved, places, shared, outs, size))

    def _kernel(self, signature: BatchSignature) -> Any:
        if not getattr(signature.work, "is_large", False):
            return TapeKernel(signature)
        types = [self.table.types[s] if s.__class__ is int else s.type for s in signature.specs]
        return CellKernel(signature, types)

    def _place(self, rows: Ints) -> Any:
        """Return rows as a slice if they lie side by side."""
        low = int(rows[0])
        if int(rows[-1]) - low == len(rows) - 1 and bool((np.diff(rows) == 1).all()):
            self.in_place += 1
            return slice(low, low + len(rows))
        self.gathered += 1
        return rows

    def _gathered(self, kind: int, where: Any, width: int) -> Array:
        """Return rows, as many as a kernel is to be given: the last one fills up."""
        array = self.arrays[kind]
        if where.__class__ is slice:
            size = where.stop - where.start
            if size == width:
                return array[where]
            where = np.arange(where.start, where.stop)
        if len(where) < width:
            where = np.concatenate((where, np.repeat(where[-1:], width - len(where))))
        found: Array = array.take(where, 0)
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
