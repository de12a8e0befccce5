"""The driver of a CUDA device: the functions of libcuda that are needed, by ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ...core.device_array import DeviceError
from ...core.dtype import DType
from ...core.errors import AllocationError
from ..c_source.dialect import cuda
from ..c_source.driver import Array, Pointer
from ..c_source.launch import Launch, program_source
from .nvrtc import compile_source

OUT_OF_MEMORY = 2
UNITS, MAJOR, MINOR = 16, 75, 76  # attributes of a device: its processors, its architecture
NAME_BYTES = 256
_MILLISECOND = 1e-3
_Handle = ctypes.c_void_p
_Address = ctypes.c_uint64


class CudaLibrary:
    """libcuda, with calls that raise what the driver says."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise DeviceError(
                f"no CUDA driver is here ({error}); install NVIDIA's driver, or take another "
                "device: wf.devices() lists them"
            ) from error
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; raise what it reports."""
        result = getattr(self._library, name)(*arguments)
        if result == OUT_OF_MEMORY:
            raise AllocationError("the CUDA device has no memory left")
        if result:
            raise DeviceError(
                f"{name} failed: {self._message(result)}. Tensors of the host are as they were; "
                "what was on the device may be lost"
            )

    def _message(self, result: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorString(result, ctypes.byref(text))
        return (text.value or b"an unknown error").decode()

    def number(self, name: str, *arguments: Any) -> int:
        """Return the number that a function puts where its first argument points."""
        found = ctypes.c_int()
        self.call(name, ctypes.byref(found), *arguments)
        return found.value

    def handle(self, name: str, *arguments: Any) -> Any:
        """Return the handle that a function puts where its first argument points."""
        found = _Handle()
        self.call(name, ctypes.byref(found), *arguments)
        return found


@cache
def library() -> CudaLibrary:
    """Return libcuda; raise DeviceError if there is no driver."""
    return CudaLibrary()


def find_devices() -> list[str]:
    """Return the names of the CUDA devices here; raise DeviceError if there are none."""
    cuda_library = library()
    count = cuda_library.number("cuDeviceGetCount")
    if not count:
        raise DeviceError("a CUDA driver is here, but no device; wf.devices() lists others")
    return [_name_of(cuda_library, index) for index in range(count)]


def _name_of(cuda_library: CudaLibrary, index: int) -> str:
    device = cuda_library.number("cuDeviceGet", index)
    text = ctypes.create_string_buffer(NAME_BYTES)
    cuda_library.call("cuDeviceGetName", text, NAME_BYTES, device)
    return text.value.decode()


class CudaMemory:
    """Memory of a device, freed when nobody refers to it."""

    __slots__ = ("_driver", "address")

    def __init__(self, driver: CudaDriver, nbytes: int) -> None:
        self._driver = driver
        self.address = _Address()
        driver.call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(nbytes))

    def __del__(self) -> None:
        if self.address.value:
            self._driver.call("cuMemFree_v2", self.address)

    def at(self, start: int) -> ctypes.c_uint64:
        """Return the address of a byte."""
        return _Address(self.address.value + start)


class CudaDriver:
    """A device with its context, its stream and the functions that were made for it."""

    has_double = True

    def __init__(self, index: int) -> None:
        self.library = library()
        self.device = self.library.number("cuDeviceGet", index)
        self._context = self.library.handle("cuDevicePrimaryCtxRetain", self.device)
        self.units = self._attribute(UNITS)
        self.architecture = f"sm_{self._attribute(MAJOR)}{self._attribute(MINOR)}"
        self.machine = f"{_name_of(self.library, index)}, {self.architecture}"
        self.dialect = cuda(self.units)
        self._functions: dict[str, Any] = {}
        self._modules: list[Any] = []
        self._stream = self._handle("cuStreamCreate", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver for this device, from any thread."""
        self.library.call("cuCtxSetCurrent", self._context)
        self.library.call(name, *arguments)

    def _handle(self, name: str, *arguments: Any) -> Any:
        self.library.call("cuCtxSetCurrent", self._context)
        return self.library.handle(name, *arguments)

    def _attribute(self, number: int) -> int:
        return self.library.number("cuDeviceGetAttribute", number, self.device)

    # -- memory ------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> CudaMemory:
        """Return new memory; raise AllocationError if there is none left."""
        return CudaMemory(self, max(64, nbytes))

    def write(self, handle: CudaMemory, start: int, array: Array) -> None:
        """Copy an array of the host to memory: the driver has it when this returns."""
        if array.size:
            kept = np.ascontiguousarray(array)
            source, size = ctypes.c_void_p(kept.ctypes.data), ctypes.c_size_t(kept.nbytes)
            self.call("cuMemcpyHtoDAsync_v2", handle.at(start), source, size, self._stream)

    def read(self, handle: CudaMemory, start: int, dtype: DType, size: int) -> Array:
        """Wait, and return elements of memory from a byte on."""
        found: Array = np.empty(size, dtype)
        if size:
            target, nbytes = ctypes.c_void_p(found.ctypes.data), ctypes.c_size_t(found.nbytes)
            self.call("cuMemcpyDtoHAsync_v2", target, handle.at(start), nbytes, self._stream)
            self.wait()
        return found

    def copy(self, source: CudaMemory, target: CudaMemory, nbytes: int) -> None:
        """Copy memory."""
        if nbytes:
            size = ctypes.c_size_t(nbytes)
            self.call("cuMemcpyDtoDAsync_v2", target.at(0), source.at(0), size, self._stream)

    # -- functions ---------------------------------------------------------------------------------

    def load(self, launches: Sequence[Launch]) -> None:
        """Make the functions of launches, all new ones by one call of the compiler."""
        new = {launch.name: launch for launch in launches if launch.name not in self._functions}
        if not new:
            return
        source = program_source(self.dialect, list(new.values()))
        code = compile_source(source, self.architecture).code
        module = self._handle("cuModuleLoadData", code)
        self._modules.append(module)
        for name in new:
            self._functions[name] = self._handle("cuModuleGetFunction", module, name.encode())

    def launch(self, launch: Launch, pointers: Sequence[Pointer], *, timed: bool = False) -> Any:
        """Run a function; between two events, by which its time can be asked for, if timed."""
        given: list[Any] = []
        for handle, offset in pointers:
            given += [_Address(handle.address.value), ctypes.c_int64(offset)]
        table = (ctypes.c_void_p * len(given))(*(ctypes.addressof(value) for value in given))
        groups = (*launch.groups, 1, 1)[:3]
        before = self._recorded() if timed else None
        function = self._functions[launch.name]
        sizes = (*groups, launch.items, 1, 1)
        self.call("cuLaunchKernel", function, *sizes, 0, self._stream, table, None)
        return (before, self._recorded()) if timed else None

    def _recorded(self) -> Any:
        event = self._handle("cuEventCreate", 0)
        self.call("cuEventRecord", event, self._stream)
        return event

    def seconds(self, event: Any) -> float:
        """Return how long a launch took, by the device's clock."""
        found = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(found), *event)
        for recorded in event:
            self.call("cuEventDestroy_v2", recorded)
        return found.value * _MILLISECOND

    def wait(self) -> None:
        """Wait until all is done."""
        self.call("cuStreamSynchronize", self._stream)
