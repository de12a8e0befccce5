"""The values of a run as tensors: one block for each result of each batch.

It runs on whatever tensors there are, by whatever interpreter is current: dual numbers, batches of
an outer vmap, tensors of other devices. Arrays on the CPU have a faster way (arenas.py).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np

from ..core.dtype import Array
from ..core.op import F
from ..core.tensor import Tensor, constant, wrap
from .kernels import joined, run_batch
from .records import NUMBERS
from .schedule import PlacedBatch
from .signatures import SignatureTable


class Blocks:
    """Values by type and row."""

    def __init__(self, table: SignatureTable) -> None:
        self.table = table
        self._blocks: dict[int, list[Any]] = {}
        self._starts: dict[int, list[int]] = {}
        self._ends: dict[int, int] = {}
        self.in_place = self.gathered = 0

    def size(self, kind: int) -> int:
        """Return how many values of a type there are."""
        return self._ends.get(kind, 0)

    def prepare(self, counts: dict[int, int]) -> None:
        """Do nothing: blocks come as they are."""

    def add(self, kind: int, payload: Any) -> None:
        """Append what examples brought, or a block of values."""
        block = payload if isinstance(payload, Tensor) else self._brought(kind, payload)
        start = self._ends.get(kind, 0)
        self._blocks.setdefault(kind, []).append(block)
        self._starts.setdefault(kind, []).append(start)
        self._ends[kind] = start + block.shape[0]

    def _brought(self, kind: int, payload: Any) -> Any:
        dtype = self.table.types[kind].dtype
        arrays = [np.array([x], dtype) if x.__class__ in NUMBERS else x for x in payload]
        return joined([wrap(x) if x.__class__ is np.ndarray else x[None] for x in arrays])

    def launch(self) -> None:
        """Run what waits: nothing does."""

    def run(self, batch: PlacedBatch, shared: list[Any]) -> None:
        """Run a batch; shared are its operands that do not differ between members, in place."""
        signature, rest = batch.signature, batch.operands()
        operands = tuple(
            [
                self.take(spec, next(rest)) if spec.__class__ is int else held
                for spec, held in zip(signature.specs, shared, strict=True)
            ]
        )
        results = run_batch(signature, operands, batch.size)
        for kind, block in zip(signature.outs, results, strict=True):
            self.add(kind, block)

    def take(self, kind: int, place: Any) -> Any:
        """Return values of a type: those that lie side by side, or one for each row."""
        beside = place.__class__ is slice
        low, high = (
            (place.start, place.stop - 1) if beside else (int(place.min()), int(place.max()))
        )
        starts = self._starts[kind]
        first, last = bisect_right(starts, low) - 1, bisect_right(starts, high) - 1
        source = joined(self._blocks[kind][first : last + 1])
        offset = starts[first]
        if not beside:
            self.gathered += 1
            return F.take(source, constant(place - offset), axis=0)
        self.in_place += 1
        if low == offset and high + 1 - low == source.shape[0]:
            return source
        return source[low - offset : high + 1 - offset]

    def read(self, kind: int, row: int) -> Array:
        """Return the value in a row."""
        return self.row(kind, row)._read()

    def whole(self, kind: int) -> Any:
        """Return all values of a type."""
        return joined(self._blocks[kind])

    def row(self, kind: int, row: int) -> Tensor:
        """Return one value."""
        starts = self._starts[kind]
        block = bisect_right(starts, row) - 1
        found: Tensor = self._blocks[kind][block][row - starts[block]]
        return found
