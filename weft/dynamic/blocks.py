"""The values of a run as tensors: one block for each result of each batch.

It runs on whatever tensors there are, by whatever interpreter is current: dual numbers, batches of
an outer vmap. Arrays on the CPU have a faster way (arenas.py), values of devices one of their own
(placed_blocks.py).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ..core.dtype import Array
from ..core.op import F
from ..core.placing import place
from ..core.tensor import Constant, Tensor, constant, wrap
from .agenda import Ints
from .kernels import joined, run_batch
from .places import brought_to, moves
from .records import NUMBERS, stacked
from .schedule import PlacedBatch
from .signatures import BatchSignature, SignatureTable


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
        self._append(kind, block, block.shape[0])

    def _append(self, kind: int, block: Any, size: int) -> None:
        """Append a block of so many values; what is behind them in it is too much."""
        start = self._ends.get(kind, 0)
        self._blocks.setdefault(kind, []).append(block)
        self._starts.setdefault(kind, []).append(start)
        self._ends[kind] = start + size

    def _brought(self, kind: int, payload: Sequence[Any]) -> Any:
        """Return data as a block where values of the type are: what the host has in one copy."""
        dtype, where = self.table.types[kind].dtype, self.table.places[kind]
        parts: list[Any] = []
        for is_tensor, run in groupby(payload, _is_tensor):
            own = list(run)
            parts.append(F.stack(own) if is_tensor else place(wrap(stacked(own, dtype)), where))
        return joined(parts)

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
        results = run_batch(signature, self._together(signature, operands), batch.size)
        for kind, block in zip(signature.outs, results, strict=True):
            self.add(kind, block)

    def _together(self, signature: BatchSignature, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return operands on the device of the results."""
        if not self.table.any_elsewhere(signature.outs) or moves(signature.work):
            return operands
        return brought_to(operands, self.table.places[signature.outs[0]])

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

    def apart(self, kind: int, rows: Ints) -> list[Tensor]:
        """Return values of a type, each as a tensor of its own."""
        return list(self.take(kind, rows).unbind())

    def read(self, kind: int, row: int) -> Array:
        """Return the value in a row."""
        return self.row(kind, row)._read()

    def whole(self, kind: int) -> Any:
        """Return all values of a type."""
        return joined(self._blocks[kind])

    def row(self, kind: int, row: int) -> Tensor:
        """Return one value."""
        block, offset = self._find(kind, row)
        found: Tensor = self._blocks[kind][block][offset]
        return found

    def _find(self, kind: int, row: int) -> tuple[int, int]:
        """Return the block that a row is in, and its place there."""
        starts = self._starts[kind]
        block = bisect_right(starts, row) - 1
        return block, row - starts[block]


def _is_tensor(x: Any) -> bool:
    """Tell whether data is a tensor, to be stacked as such: no number, array or literal."""
    return x.__class__ not in (np.ndarray, Constant, *NUMBERS)
