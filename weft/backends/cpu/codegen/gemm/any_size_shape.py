"""The sizes that code for products of any sizes has: of tiles, blocks and scratch memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .....plan.arena import align
from ..target import Target
from ..values import element_of

VECTORS = 2
UNROLL = 4
ROWS_OF_BLOCK = 128
L1_PART = 0.75  # of the first-level cache is for a panel


@dataclass(frozen=True)
class Shape:
    """The sizes that code for a target has: of its tiles, its blocks and its scratch memory."""

    element: str
    itemsize: int
    lanes: int
    rows: int
    block_rows: int
    block_depth: int

    @property
    def columns(self) -> int:
        """Return the columns of a panel."""
        return VECTORS * self.lanes

    @property
    def panel_bytes(self) -> int:
        """Return the room that a packed panel takes."""
        return align(self.columns * self.block_depth * self.itemsize)

    @property
    def area_bytes(self) -> int:
        """Return the scratch memory of a thread: a panel and a block."""
        return self.panel_bytes + align(self.block_rows * self.block_depth * self.itemsize)


def shape_for(target: Target, dtype: np.dtype[Any]) -> Shape:
    """Return the sizes of a product's code."""
    lanes = target.lanes(dtype)
    rows = 8 if target.registers >= 32 else 6
    depth = int(target.l1_bytes * L1_PART) // (VECTORS * lanes * dtype.itemsize)
    depth = max(64, min(384, depth // UNROLL * UNROLL))
    block_rows = ROWS_OF_BLOCK // rows * rows
    return Shape(element_of(dtype), dtype.itemsize, lanes, rows, block_rows, depth)
