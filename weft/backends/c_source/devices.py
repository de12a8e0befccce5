"""Back ends whose devices run kernels that are written as text: all but their drivers."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ...core.cached_property import cached_property
from ...core.device_array import DeviceError
from ...core.dtype import DType
from ...core.errors import WeftError
from ...core.shape import Shape, size_of
from ...lower.program import KernelProgram, Sources
from ...plan.device import Device
from ..protocol import Memories
from .code import DeviceCode
from .driver import Allocation, Array, Driver
from .execution import DeviceExecution


class SourceBackend:
    """Runs kernel programs on one device.

    name   of the device, with its number
    open   returns its driver, when that is first needed
    """

    def __init__(self, name: str, open: Callable[[], Driver]) -> None:
        self.name = name
        self._open = open

    @cached_property
    def driver(self) -> Driver:
        """The driver of the device, opened when it is first needed."""
        made = self._open()
        _opened.append((self.name, made))
        return made

    def describe(self) -> Device:
        """Return what is known about the device."""
        return Device(self.name, self.driver.units, self.driver.machine, own_memory=True)

    def compile(self, program: KernelProgram) -> DeviceCode:
        """Return a program as functions of the device."""
        return DeviceCode(program, self.driver)

    def allocate(self, shape: Shape, dtype: DType) -> Allocation:
        """Return new memory of the device."""
        handle = self.driver.allocate(int(size_of(shape)) * dtype.itemsize)
        return Allocation(handle, shape, dtype)

    def copy_in(self, array: Array, memory: Allocation) -> None:
        """Copy an array of the host to memory."""
        self.driver.write(memory.handle, 0, np.asarray(array, memory.dtype))

    def copy_out(self, memory: Any) -> Array:
        """Return what memory holds as a new array of the host."""
        if isinstance(memory, np.ndarray):  # made by the host, since only the run knew its size
            return memory.copy()
        found = self.driver.read(memory.handle, 0, memory.dtype, memory.size)
        return found.reshape(memory.shape)

    def run(self, code: DeviceCode, memories: Memories) -> None:
        """Ask for all that a program does."""
        code.run(memories)

    def synchronize(self) -> None:
        """Wait until all that was started is done."""
        self.driver.wait()

    def prepare(self, program: KernelProgram, sources: Sources) -> DeviceExecution:
        """Return a program ready to run on arrays of the host."""
        return DeviceExecution(self, program, sources)


class SourceDevices(SourceBackend):
    """All devices of a kind; by itself the first one.

    find   returns what the driver of each is opened with; raises a WeftError if there is none
    open   returns the driver of the device with a number
    """

    def __init__(
        self, kind: str, find: Callable[[], list[Any]], open: Callable[[int], Driver]
    ) -> None:
        super().__init__(f"{kind}:0", lambda: open(0))
        self._kind, self._find, self._opened = kind, find, open
        self._made: dict[int, SourceBackend] = {0: self}

    def count(self) -> int:
        """Return how many devices there are; raise a WeftError that says why there are none."""
        return len(self._find())

    def at(self, index: int) -> SourceBackend:
        """Return one of them."""
        if index not in self._made:
            self._made[index] = SourceBackend(f"{self._kind}:{index}", lambda: self._opened(index))
        return self._made[index]


# -- processes that end, and those that are forked ------------------------------------------------

_ASKED = ("allocate", "write", "read", "copy", "load", "launch", "wait")  # that threads may answer
_opened: list[tuple[str, Driver]] = []


def _refuse(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    raise DeviceError(
        f"{name} belongs to the process that this one was forked from, with the threads that work "
        "for it; start processes that use devices by multiprocessing.get_context('spawn'), and let "
        "a DataLoader put batches there: DataLoader(..., device=...)"
    )


def _leave_to_parent() -> None:
    """Let drivers that were open refuse in a forked process: they would wait without end."""
    for name, driver in _opened:
        for asked in _ASKED:
            setattr(driver, asked, partial(_refuse, name))
    _opened.clear()


@atexit.register
def _finish() -> None:
    """Wait for what nobody has read: threads of drivers crash if they are ended at work."""
    for _, driver in _opened:
        with suppress(WeftError):  # of a kernel that failed: who would have read it is gone
            driver.wait()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
