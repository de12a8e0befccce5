"""The memory of a device: values in it, what was freed and waits to be used again, and counts.

What values no longer need is kept by shape and dtype, since a program asks for the same shapes over
and over. A device that has no more memory is given all of that back before it is believed.
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ..core.device import device, device_named
from ..core.device_array import DeviceArray, DeviceError
from ..core.dtype import Array, DType
from ..core.errors import AllocationError
from ..core.shape import Shape
from . import backend_named
from .protocol import Backend

MOST_CONSTANTS = 256  # small values that the device keeps, since programs use few of them
CONSTANT_BYTES = 64
KEPT_BYTES = 1 << 28  # that may wait to be used again


class Shelf:
    """Memory of one shape and dtype that was freed, and waits to be used again."""

    __slots__ = ("dtype", "free", "nbytes", "shape")

    def __init__(self, shape: Shape, dtype: DType) -> None:
        self.shape, self.dtype = shape, dtype
        self.nbytes = prod(shape) * int(dtype.itemsize)
        self.free: list[Any] = []


class DeviceBlock:
    """Memory of a device, for as long as a value needs it."""

    __slots__ = ("memory", "pool", "shelf")

    def __init__(self, pool: DevicePool, shelf: Shelf, memory: Any) -> None:
        self.pool, self.shelf, self.memory = pool, shelf, memory

    def __del__(self, python_ends: Callable[[], bool] = sys.is_finalizing) -> None:
        if not python_ends():  # modules go before the last values, so the function is held here
            self.pool.take_back(self.shelf, self.memory)


class DevicePool:
    """Values in the memory of one device.

    counts   copies in and out, with their bytes, and what else the device was asked to do
    """

    def __init__(self, name: str, backend: Backend) -> None:
        self.name: device = device_named(name)
        self.backend = backend
        self.own = backend.describe().own_memory
        self.counts: Counter[str] = Counter()
        self._shelves: dict[tuple[Shape, DType], Shelf] = {}
        self._kept_bytes = 0
        self._constants: OrderedDict[tuple[str, Shape, bytes], DeviceBlock] = OrderedDict()

    # -- memory ------------------------------------------------------------------------------------

    def shelf(self, shape: Shape, dtype: DType) -> Shelf:
        """Return where memory of a shape and dtype waits; programs look for it once."""
        key = tuple(shape), dtype
        return self._shelves.get(key) or self._shelves.setdefault(key, Shelf(*key))

    def allocate(self, shape: Shape, dtype: DType) -> DeviceBlock:
        """Return memory, whatever is in it: some that was freed, if there is such."""
        return self.allocated(self.shelf(shape, dtype))

    def allocated(self, shelf: Shelf) -> DeviceBlock:
        """Return memory of a shelf's shape and dtype."""
        try:
            memory = shelf.free.pop()
            self._kept_bytes -= shelf.nbytes
        except IndexError:
            memory = self._new(shelf.shape, shelf.dtype)
        self.counts["bytes"] += shelf.nbytes
        return DeviceBlock(self, shelf, memory)

    def _new(self, shape: Shape, dtype: DType) -> Any:
        self.counts["allocations"] += 1
        try:
            return self.backend.allocate(shape, dtype)
        except MemoryError:
            self.release()
        try:
            return self.backend.allocate(shape, dtype)
        except MemoryError as error:
            raise self.exhausted(shape, dtype) from error

    def exhausted(self, shape: Shape, dtype: DType) -> AllocationError:
        """Return the error for a device that has no room for a value."""
        held, nbytes = self.counts["bytes"], self.shelf(shape, dtype).nbytes
        return AllocationError(
            f"{self.name} has no room for {dtype.name}{list(shape)}, {nbytes} "
            f"bytes, beside the {held} bytes that tensors hold there; free some of them, take a "
            "smaller batch, or move tensors to another device. Nothing was changed"
        )

    def take_back(self, shelf: Shelf, memory: Any) -> None:
        """Keep memory that no value needs any more, for the next of its kind."""
        nbytes = shelf.nbytes
        self.counts["bytes"] -= nbytes
        if self._kept_bytes + nbytes <= KEPT_BYTES:
            self._kept_bytes += nbytes
            shelf.free.append(memory)

    def release(self) -> None:
        """Give back all that waits to be used again."""
        for shelf in list(self._shelves.values()):
            shelf.free.clear()
        self._constants.clear()
        self._kept_bytes = 0

    # -- values ------------------------------------------------------------------------------------

    def value(self, block: DeviceBlock, shape: Shape) -> DeviceArray:
        """Return what memory holds as a value of some shape."""
        return DeviceArray(self.name, block, tuple(shape), block.shelf.dtype)

    def copy_in(self, array: Array) -> DeviceArray:
        """Return an array of the host as a value."""
        return self.value(self.brought(array), array.shape)

    def brought(self, array: Array, shape: Shape | None = None) -> DeviceBlock:
        """Return memory that holds an array of the host, to be read; small ones are copied once."""
        array = np.ascontiguousarray(array).reshape(array.shape if shape is None else shape)
        if array.nbytes > CONSTANT_BYTES:
            return self.copied(array)
        key = array.dtype.str, array.shape, array.tobytes()
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = self.copied(array)
            if len(self._constants) > MOST_CONSTANTS:
                self._constants.popitem(last=False)
        return known

    def copied(self, array: Array) -> DeviceBlock:
        """Return new memory that holds an array of the host."""
        made = self.allocate(array.shape, array.dtype)
        self.backend.copy_in(array, made.memory)
        self.counts["copies in"] += 1
        self.counts["bytes in"] += array.nbytes
        return made

    def copy_out(self, value: DeviceArray) -> Array:
        """Wait for a value, and return it as a new array."""
        self._check_here(value)
        return self.read(value.block.memory).reshape(value.shape)

    def read(self, memory: Any) -> Array:
        """Wait, and return what memory holds as a new array."""
        self.backend.synchronize()
        found = self.backend.copy_out(memory)
        self.counts["copies out"] += 1
        self.counts["bytes out"] += found.nbytes
        return found

    def _check_here(self, value: DeviceArray) -> None:
        if value.device != self.name:
            raise DeviceError(f"{value!r} is not on {str(self.name)!r}")


_memories: dict[str, DevicePool] = {}


def memory_of(name: str, find: Callable[[str], Backend] = backend_named) -> DevicePool:
    """Return the memory of a device by the device's name."""
    known = _memories.get(name)
    if known is None:
        known = _memories.setdefault(str(name), DevicePool(str(name), find(name)))
    return known
