"""The driver of an OpenCL device, through pyopencl."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ...core.device_array import DeviceError
from ...core.dtype import DType
from ...core.errors import AllocationError, WeftError
from ...core.imports import require
from ..c_source.dialect import opencl
from ..c_source.driver import Array, Pointer
from ..c_source.function import VECTOR_BYTES
from ..c_source.launch import Launch, program_source

# Division and square root as IEEE 754 has them; nothing else is reordered or fused.
OPTIONS = "-cl-std=CL1.2 -w"
ROUNDED = "-cl-fp32-correctly-rounded-divide-sqrt"
WIDE_BYTES = 64  # of vectors where a processor has wider ones than compilers take by themselves
MOST_KERNELS = 1 << 14  # launches whose arguments are remembered
NEARBY_SECONDS = 2e-4  # that a host stays awake for a processor: to be woken takes 10 us
MOST_PENDING = 64  # copies from the host whose arrays are kept until they are done


def pyopencl() -> Any:
    """Return the package; raise with how to install it if it is missing."""
    return require("pyopencl", "opencl", "device 'opencl'")


def find_devices() -> list[Any]:
    """Return the devices of all OpenCL drivers here; raise DeviceError if there are none."""
    cl = pyopencl()
    # PoCL's threads, one for each core: else they often meet on one, and take twice as long.
    os.environ.setdefault("POCL_AFFINITY", "1")
    try:
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        raise DeviceError(f"no OpenCL driver answers ({error}); {_ADVICE}") from error
    if not found:
        raise DeviceError(f"OpenCL drivers are here, but no device; {_ADVICE}")
    return found


_ADVICE = (
    "install one: that of the graphics card, or PoCL for the processor "
    "(pip install pocl-binary-distribution, or the system's package pocl-opencl-icd)"
)


class _Made(NamedTuple):
    """The kernel of a launch, over how many work items it runs, and the arguments it has."""

    launch: Launch
    kernel: Any
    total: tuple[int, ...]
    local: tuple[int, ...]
    given: list[Any]


def _counted(buffer_type: Any, held: dict[int, int]) -> Any:
    """Return a type of buffers which tell when they go: some drivers count no bytes, and crash.

    Entries are removed by an atomic operation: no lock may be taken where objects are freed.
    """

    class CountedBuffer(buffer_type):  # type: ignore[misc]  # what pyopencl has
        def __del__(self) -> None:
            held.pop(id(self), None)

    return CountedBuffer


class OpenClDriver:
    """A device with its context, its queue and the functions that were made for it.

    serial         whether kernels are written for processors; by default as the device says
    vector_bytes   of their vectors, by default as the device says, too
    """

    def __init__(
        self, device: Any, *, serial: bool | None = None, vector_bytes: int | None = None
    ) -> None:
        self.cl = cl = pyopencl()
        self.device = device
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.has_double = bool(device.double_fp_config)
        self.machine = f"{device.name}, {device.version}"
        self.units = device.max_compute_units
        is_cpu = bool(device.type & cl.device_type.CPU)
        # The host shares its cores with such a device, and gives them away while it waits.
        self._stays_awake = is_cpu and hasattr(os, "sched_yield")
        is_wide = 4 * device.native_vector_width_float >= WIDE_BYTES
        self.dialect = opencl(
            serial=is_cpu if serial is None else serial,
            units=self.units,
            vector_bytes=vector_bytes or (WIDE_BYTES if is_wide else VECTOR_BYTES),
        )
        self._timed: Any = None
        self._built: dict[str, Any] = {}  # programs by the names of their functions
        self._kernels: dict[int, _Made] = {}
        self._enqueue = cl.enqueue_nd_range_kernel
        self._last: Any = None  # the event of what was asked for last
        self._pending: deque[Any] = deque()
        self.capacity = device.global_mem_size
        self._held: dict[int, int] = {}  # bytes of memory, by the buffers that are there
        self._buffer_type = _counted(cl.Buffer, self._held)
        self._lock = Lock()  # of kernels' arguments until the launch, and of what was last

    # -- memory ------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> Any:
        """Return new memory; raise AllocationError if there is none left."""
        cl, limit = self.cl, self.device.max_mem_alloc_size
        size = max(64, nbytes)
        if size > limit:
            raise AllocationError(
                f"{self.device.name} takes at most {limit} bytes at once. Received: {size}"
            )
        held = sum(list(self._held.values()))
        if held + size > self.capacity:
            raise AllocationError(
                f"{self.device.name} has {self.capacity} bytes, {held} of which are held. "
                f"Received: {size}"
            )
        try:
            made = self._buffer_type(self.context, cl.mem_flags.READ_WRITE, size)
        except cl.MemoryError as error:
            raise AllocationError(f"{self.device.name} has no {size} bytes left") from error
        self._held[id(made)] = size
        return made

    def write(self, handle: Any, start: int, array: Array) -> None:
        """Copy an array of the host to memory; the queue has a copy of it until that is done."""
        if not array.size:
            return
        kept = np.array(array, order="C")
        with self._errors(), self._lock:
            event = self._last = self.cl.enqueue_copy(
                self.queue, handle, kept, dst_offset=start, is_blocking=False
            )
        self._pending.append(event)
        if len(self._pending) > MOST_PENDING:
            self._pending.popleft().wait()

    def read(self, handle: Any, start: int, dtype: DType, size: int) -> Array:
        """Wait, and return elements of memory from a byte on."""
        found: Array = np.empty(size, dtype)
        if size:
            with self._errors():
                self._await(
                    self.cl.enqueue_copy(
                        self.queue, found, handle, src_offset=start, is_blocking=False
                    )
                )
        return found

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        """Copy memory."""
        if nbytes:
            with self._errors(), self._lock:
                self._last = self.cl.enqueue_copy(self.queue, target, source, byte_count=nbytes)

    # -- functions ---------------------------------------------------------------------------------

    def load(self, launches: Sequence[Launch]) -> None:
        """Make the functions of launches, all new ones by one call of the compiler."""
        new = {launch.name: launch for launch in launches if launch.name not in self._built}
        if not new:
            return
        source = program_source(self.dialect, list(new.values()))
        program = self._compiled(source)
        self._built |= dict.fromkeys(new, program)

    def _compiled(self, source: str) -> Any:
        program = self.cl.Program(self.context, source)
        with self._errors("cannot compile kernels"):
            return program.build(f"{OPTIONS} {ROUNDED}" if self._rounds else OPTIONS)

    @property
    def _rounds(self) -> bool:
        wanted = self.cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
        return bool(self.device.single_fp_config & wanted)

    def launch(self, launch: Launch, pointers: Sequence[Pointer], *, timed: bool = False) -> Any:
        """Run a function; return its event."""
        try:
            with self._lock:
                made = self._kernels.get(id(launch)) or self._made(launch)
                self._set_arguments(made, pointers)
                queue = self._timing_queue() if timed else self.queue
                self._last = event = self._enqueue(queue, made.kernel, made.total, made.local)
                if timed:  # before anything that the other queue is asked for
                    event.wait()
                return event
        except self.cl.Error as error:
            raise self._told(error, "stopped") from error

    def _timing_queue(self) -> Any:
        """Return a queue that takes times, which takes time, after all else was done."""
        self.queue.finish()
        if self._timed is None:
            taking = self.cl.command_queue_properties.PROFILING_ENABLE
            self._timed = self.cl.CommandQueue(self.context, properties=taking)
        return self._timed

    def _made(self, launch: Launch) -> _Made:
        """Return the kernel of a launch, which remembers its arguments."""
        if len(self._kernels) >= MOST_KERNELS:
            self._kernels.clear()
        kernel = self.cl.Kernel(self._built[launch.name], launch.name)
        total = (launch.groups[0] * launch.items, *launch.groups[1:])
        local = (launch.items, *(1 for _ in launch.groups[1:]))
        given: list[Any] = [None] * (2 * len(launch.arguments))
        made = self._kernels[id(launch)] = _Made(launch, kernel, total, local, given)
        return made

    def _set_arguments(self, made: _Made, pointers: Sequence[Pointer]) -> None:
        """Set those arguments that have changed."""
        kernel, given = made.kernel, made.given
        for i, (handle, offset) in enumerate(pointers):
            if given[2 * i] != handle.int_ptr:
                kernel.set_arg(2 * i, handle)
                given[2 * i] = handle.int_ptr
            if given[2 * i + 1] != offset:
                kernel.set_arg(2 * i + 1, np.int64(offset))
                given[2 * i + 1] = offset

    def seconds(self, event: Any) -> float:
        """Return how long a launch took, by the device's clock."""
        return float(event.profile.end - event.profile.start) * 1e-9

    def wait(self) -> None:
        """Wait until all is done that was asked for: things are done in their order."""
        last = self._last
        if last is None:
            return
        try:
            self._await(last)
        except self.cl.Error as error:
            if self._last is last:  # it is told once; the next call may work
                self._last = None
            raise self._told(error, "stopped") from error
        self._pending.clear()

    def _await(self, event: Any) -> None:
        """Wait for an event; small kernels are done before the host would be asleep."""
        if self._stays_awake:
            asks = self.cl.event_info.COMMAND_EXECUTION_STATUS
            complete = self.cl.command_execution_status.COMPLETE
            end = perf_counter() + NEARBY_SECONDS
            while event.get_info(asks) > complete and perf_counter() < end:
                os.sched_yield()
        event.wait()

    @contextmanager
    def _errors(self, what: str = "stopped") -> Iterator[None]:
        """Say which device failed, and how, in Weft's errors."""
        try:
            yield
        except self.cl.Error as error:
            raise self._told(error, what) from error

    def _told(self, error: Any, what: str) -> WeftError:
        """Return what the driver says as an error of Weft's."""
        if isinstance(error, self.cl.MemoryError):
            return AllocationError(f"{self.device.name} has no memory left: {error}")
        return DeviceError(
            f"{self.device.name} {what}: {error}. Tensors of the host are as they were; what "
            "was on the device may be lost"
        )
