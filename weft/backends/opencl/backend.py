"""OpenCL devices as a back end: `opencl:0`, `opencl:1` and so on, in the order of the drivers."""

from __future__ import annotations

from ...core.errors import ArgumentError
from ..c_source.devices import SourceDevices
from .driver import OpenClDriver, find_devices


def open_device(
    index: int, *, serial: bool | None = None, vector_bytes: int | None = None
) -> OpenClDriver:
    """Return the driver of the device with a number; raise if there is no such device."""
    found = find_devices()
    if not 0 <= index < len(found):
        names = ", ".join(f"opencl:{i} ({device.name})" for i, device in enumerate(found))
        raise ArgumentError(f"there is no device opencl:{index}; there are {names}")
    return OpenClDriver(found[index], serial=serial, vector_bytes=vector_bytes)


BACKEND = SourceDevices("opencl", find_devices, open_device)
