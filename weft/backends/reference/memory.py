"""The memory of a run: an array for each buffer, and views of them by strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph.run import Sizes
from ...lower.kernels import Operand
from ...lower.storage import Buffer, View
from ..host import behind_window, strided

Array = np.ndarray[Any, Any]


class Memory:
    """What the buffers of a program hold while it runs.

    arrays    elements of buffers in order; those of the arena are made at their first use
    objects   arrays whose shapes only the run can tell
    sizes     what those shapes have told so far
    """

    def __init__(self) -> None:
        self.arrays: dict[Buffer, Array] = {}
        self.objects: dict[Buffer, Array] = {}
        self.sizes: Sizes = {}

    def put(self, buffer: Buffer, array: Array) -> None:
        """Let an array from outside be what a buffer holds."""
        self.arrays[buffer] = np.ascontiguousarray(array).reshape(-1)

    def flat(self, buffer: Buffer) -> Array:
        """Return the elements of a buffer that is no window."""
        if buffer not in self.arrays:
            self.arrays[buffer] = np.zeros(buffer.size, buffer.dtype)
        return self.arrays[buffer]

    def word(self, buffer: Buffer) -> Array:
        """Return the number that a buffer of one element holds."""
        return self.flat(buffer).reshape(())

    def place(self, view: View) -> tuple[Array, int]:
        """Return the elements of the buffer behind a view, and where its first one is now."""
        buffer, offset = behind_window(view.buffer, view.offset, self.word)
        return self.flat(buffer), offset

    def places(self, view: View, offsets: Array) -> tuple[Array, Array]:
        """Return the elements of a buffer, and the places so far behind a view's beginning."""
        flat, start = self.place(view)
        places: Array = start + offsets
        if places.size and (places.min() < 0 or places.max() >= flat.size):
            raise IndexError(f"{view.buffer} has no element {places.min()} or {places.max()}")
        return flat, places

    def view(self, view: View) -> Array:
        """Return the tensor that a view shows."""
        if view.buffer in self.objects:
            return self.objects[view.buffer]
        return self.strided(view, view.shape, view.strides)

    def operand(self, operand: Operand, loops: Sequence[int]) -> Array:
        """Return the element of an operand for each turn of a kernel's loops."""
        return self.strided(operand.view, loops, operand.strides)

    def strided(self, view: View, shape: Sequence[int], strides: Sequence[int]) -> Array:
        """Return elements from the beginning of a view on; raise if some lie outside its buffer."""
        flat, offset = self.place(view)
        return strided(flat, shape, strides, offset)
