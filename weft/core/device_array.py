"""Values in the memory of a device: what a tensor there holds in the place of an array.

Such a value has a shape and a dtype, and memory that only its device can read. NumPy cannot look
into it, so whoever forgets where a tensor is gets an error and no copy. Copies are made here and
counted here; what runs operations on a device, and how, is the business of weft/eager.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from .device import device, device_runtime
from .dtype import Array, DType
from .errors import WeftError
from .imports import Injected
from .modes import modes
from .shape import Shape


class DeviceError(WeftError, RuntimeError):
    """A device refuses, or has stopped, or something of it would be needed on the host."""


class DeviceRuntime(Protocol):
    """Who works on devices: what the layers above offer."""

    def has_own_memory(self, where: str) -> bool:
        """Tell whether tensors on a device hold memory of the device, and no arrays."""

    def copy_in(self, array: Array, where: device) -> DeviceArray:
        """Return an array of the host as a value of a device."""

    def copy_out(self, value: DeviceArray) -> Array:
        """Wait for a value of a device, and return it as a new array of the host."""

    def cast(self, value: DeviceArray, dtype: DType) -> DeviceArray:
        """Return a value in another dtype, converted on its device."""

    def launch(
        self, op: Any, operands: Sequence[Any], attrs: tuple[Any, ...], where: device
    ) -> Any:
        """Return the result of an operator on values of a device, or the tuple of its results."""


runtime: Injected[DeviceRuntime] = device_runtime


class Presence:
    """Whether there is anything that is not on the CPU, which an interpreter then sees to.

    Entries are made and removed by atomic operations: no lock may be taken where objects are freed.
    """

    def __init__(self) -> None:
        self.base: Any = None  # core/placing.py: what runs operations while something is elsewhere
        self._present: set[int] = set()
        self._counted: list[bool] = []

    def enter(self, thing: object) -> None:
        """Note that something is elsewhere."""
        self._present.add(id(thing))
        if not self._counted:
            self._counted.append(True)
            modes.count_interpreter(+1)
        modes.base = self.base

    def leave(self, thing: object) -> None:
        """Note that it is gone."""
        self._present.discard(id(thing))
        if not self._present:
            modes.base = None
            if self._present:  # another thread has made something in the meantime
                modes.base = self.base


PRESENCE = Presence()


class DeviceArray:
    """A value in the memory of a device; it never changes.

    device   where it is
    block    the memory, which several values may share
    """

    __slots__ = ("__weakref__", "block", "device", "dtype", "shape")

    __array_ufunc__ = None
    base = None  # it is no view of another, as NumPy's arrays may be

    def __init__(self, where: device, block: Any, shape: Shape, dtype: DType) -> None:
        self.device, self.block = where, block
        self.shape, self.dtype = shape, dtype
        PRESENCE.enter(self)

    def __del__(self) -> None:
        PRESENCE.leave(self)

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Return the number of bytes of one element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Return the number of bytes of the elements."""
        return self.size * self.itemsize

    def copy(self) -> DeviceArray:
        """Return the value: nobody can change it, so that a copy needs no memory of its own."""
        return DeviceArray(self.device, self.block, self.shape, self.dtype)

    def to_host(self) -> Array:
        """Wait for the value, and return it as a new array of the host."""
        return runtime.get().copy_out(self)

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return self.to_host().item()

    def tolist(self) -> Any:
        """Return the value as nested Python lists."""
        return self.to_host().tolist()

    def astype(self, dtype: Any, copy: bool = True) -> DeviceArray:
        """Return the value in another dtype, converted on the device."""
        if np.dtype(dtype) == self.dtype:
            return self
        return runtime.get().cast(self, np.dtype(dtype))

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise DeviceError(
            f"{self!r} was about to be copied to the host without being asked for; read it by "
            f"x.numpy() or x.item(), or move it, x.to('cpu')"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> DeviceArray:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return to_device, (self.to_host(), str(self.device))

    def __repr__(self) -> str:
        return f"<{self.dtype.name}{list(self.shape)} on {str(self.device)!r}>"


def is_placed(value: object) -> bool:
    """Tell whether a value is in the memory of a device, and no array."""
    return value.__class__ is DeviceArray


def has_own_memory(where: str) -> bool:
    """Tell whether tensors on a device hold memory of the device, and no arrays."""
    return where != "cpu" and runtime.get().has_own_memory(where)


def to_device(value: Any, where: Any) -> Any:
    """Return a value, of the host or of another device, as one of a device with its own memory."""
    there = device(where)
    if isinstance(value, DeviceArray):
        return value if value.device == there else to_device(value.to_host(), there)
    return runtime.get().copy_in(value, there)


def to_host(value: Any) -> Any:
    """Return a value as the host has it: an array as it is, one of a device copied out."""
    return value.to_host() if value.__class__ is DeviceArray else value


def host_array(value: Any, what: str) -> Any:
    """Return an array that the host reads; raise if it is in the memory of a device."""
    if value.__class__ is DeviceArray:
        raise DeviceError(
            f"{what} is read by the host, and is on {str(value.device)!r}; give x.cpu(), and let "
            "batches go to the device: wf.data.DataLoader(..., device=...)"
        )
    return value


def all_to_host(values: Iterable[Any]) -> list[Any]:
    """Return values as the host has them."""
    return [to_host(value) for value in values]


def moved(value: Any, where: str) -> Any:
    """Return a value, in memory of a device or an array, as tensors on some device hold it."""
    return to_device(value, where) if has_own_memory(where) else to_host(value)


def held_like(old: Any, new: Any) -> Any:
    """Return a new value of a tensor where its old one is."""
    if old.__class__ is DeviceArray:
        return to_device(new, old.device)
    return to_host(new)


def on_devices() -> bool:
    """Tell whether there may be values in the memory of devices."""
    return modes.base is not None
