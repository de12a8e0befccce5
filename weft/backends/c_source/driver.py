"""What a device's driver offers: memory, functions made of text, and a queue that runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...core.dtype import DType
from ...core.shape import Shape, size_of
from .dialect import Dialect
from .launch import Launch

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory of a device, as long as it is referred to.

    handle   what the driver knows it by
    """

    handle: Any
    shape: Shape
    dtype: DType

    @property
    def size(self) -> int:
        """Return the number of its elements."""
        return int(size_of(self.shape))


Pointer = tuple[Any, int]  # memory by its handle, and how many elements behind its beginning


class Driver(Protocol):
    """A device with a queue: what is asked for is done in that order, and asking does not wait.

    dialect   how kernels are written for it
    machine   what it is, for people
    units     how many groups of work items it runs at a time
    """

    has_double: bool
    dialect: Dialect
    machine: str
    units: int

    def allocate(self, nbytes: int) -> Any:
        """Return new memory; raise AllocationError if there is none left."""

    def write(self, handle: Any, start: int, array: Array) -> None:
        """Copy an array of the host to memory, from a byte on; the array may change afterwards."""

    def read(self, handle: Any, start: int, dtype: DType, size: int) -> Array:
        """Wait, and return elements of memory from a byte on."""

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        """Copy memory."""

    def load(self, launches: Sequence[Launch]) -> None:
        """Make the functions of launches; those that were made before are kept."""

    def launch(self, launch: Launch, pointers: Sequence[Pointer], *, timed: bool = False) -> Any:
        """Run a function; return what its time can be asked of, if it is to be timed."""

    def seconds(self, event: Any) -> float:
        """Return how long a launch took, by the device's clock, once it is done."""

    def wait(self) -> None:
        """Wait until all is done."""
