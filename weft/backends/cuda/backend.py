"""CUDA devices as a back end: `cuda:0`, `cuda:1` and so on, as the driver counts them."""

from __future__ import annotations

from ...core.errors import ArgumentError
from ..c_source.devices import SourceDevices
from .driver import CudaDriver, find_devices


def open_device(index: int) -> CudaDriver:
    """Return the driver of the device with a number; raise if there is no such device."""
    found = find_devices()
    if not 0 <= index < len(found):
        names = ", ".join(f"cuda:{i} ({name})" for i, name in enumerate(found))
        raise ArgumentError(f"there is no device cuda:{index}; there are {names}")
    return CudaDriver(index)


BACKEND = SourceDevices("cuda", find_devices, open_device)
