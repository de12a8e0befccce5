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
from .agenda import Ints
from .kernels import joined, run_batch
from .records import NUMBERS
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
        start = self._ends.get(kind, 0)
        self._blocks.setdefault(kind, []).append(block)
        self._starts.setdefault(kind, []).append(start)
        self._ends[kind] = start + block.shape[0]

    def _brought(self, kind: int, payload: Any) -> Any:
        dtype = self.table.types[kind].dtype
        arrays = [np.array([x], dtype) if x.__class__ in NUMBERS else x for x in payload]
        return joined([wrap(x) if x.__class__ is np.ndarray else x[None] for x in arrays])

    def run(
        self, signature: BatchSignature, rows: list[Ints], shared: list[Any], size: int
    ) -> None:
        """Run a batch: rows are those of its operands that differ, shared the others in place."""
        rest = iter(rows)
        operands = tuple(
            [
                self.take(spec, next(rest)) if spec.__class__ is int else held
                for spec, held in zip(signature.specs, shared, strict=True)
            ]
        )
        for kind, block in zip(signature.outs, run_batch(signature, operands, size), strict=True):
            self.add(kind, block)

    def take(self, kind: int, rows: Ints) -> Any:
        """Return values of a type, one for each row."""
        low, high = int(rows.min()), int(rows.max())
        starts = self._starts[kind]
        first, last = bisect_right(starts, low) - 1, bisect_right(starts, high) - 1
        source = joined(self._blocks[kind][first : last + 1])
        offset = starts[first]
        if high - low + 1 == len(rows) and bool((np.diff(rows) == 1).all()):
            self.in_place += 1
            if low == offset and len(rows) == source.shape[0]:
                return source
            return source[low - offset : high + 1 - offset]
        self.gathered += 1
        return F.take(source, constant(rows - offset), axis=0)

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
