"""A device that is a C++ compiler: the text of kernels, run by this process and by no driver.

`shim.h` has the words of both languages. `shim:0` runs CUDA C++, whose groups of work items wait
for each other; `shim:1` OpenCL C as it is written for processors, and `shim:2` as for those with
vectors of 64 bytes. What a GPU would refuse is refused: too many groups, items that do not meet.
What it would not notice is: writing beside the memory that was asked for. `backwards` runs work
items in the opposite order; if a result depends on it, they do not wait where they should.

    python -m tests.backends.shim benchmarks/device_steps.py --device shim:0 --steps 2

runs a program for which both are there.
"""

from __future__ import annotations

import ctypes
import runpy
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from tests.exported import needs
from tests.opaque import make_folder
from weft import backends
from weft.backends.c_source.devices import SourceDevices
from weft.backends.c_source.dialect import cuda, opencl
from weft.backends.c_source.launch import program_source
from weft.backends.c_source.scalars import stored_type
from weft.core.device_array import DeviceError

MODULE = "tests.backends.shim"  # also where it is run
HEADER = Path(__file__).parent / "shim.h"
OPTIONS = ("-std=c++17", "-w", "-O0", "-fPIC", "-shared", "-ffp-contract=off")
BESIDE = 64  # bytes before and behind memory, of which nobody writes any
UNTOUCHED = 0xA5
MOST_GROUPS = (2**31 - 1, 65_535, 65_535)  # of CUDA, along each axis
MOST_ITEMS = 1024
DIALECTS = (cuda(), opencl(serial=True), opencl(serial=True, vector_bytes=64))
on_linux = sys.platform == "linux"  # whose linkers tell where a section begins and ends
needs_compiler = needs("c++") if on_linux else pytest.mark.skip(reason="needs Linux")


class Memory:
    """Memory of the device; what it holds at first is nothing that anybody should read."""

    def __init__(self, nbytes: int) -> None:
        self._all = np.full(nbytes + 3 * BESIDE, UNTOUCHED, np.uint8)
        self._start = BESIDE + -self._all.ctypes.data % BESIDE
        self.bytes = self._all[self._start : self._start + nbytes]
        self.address = self.bytes.ctypes.data

    def is_whole(self) -> bool:
        """Tell whether nothing was written beside it."""
        end = self._start + self.bytes.size
        beside = self._all[: self._start], self._all[end:]
        return all((part == UNTOUCHED).all() for part in beside)


class ShimDriver:
    """The driver of one of these devices."""

    has_double = True
    units = 1

    def __init__(self, dialect: Any) -> None:
        self.dialect = dialect
        self.machine = f"{dialect.name} by {shutil.which('c++')}"
        self.backwards = False
        self.launched: set[str] = set()
        self.folder = TemporaryDirectory()
        self._libraries: dict[str, Any] = {}

    def allocate(self, nbytes: int) -> Memory:
        return Memory(max(64, nbytes))

    def write(self, handle: Memory, start: int, array: Any) -> None:
        found = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        handle.bytes[start : start + found.size] = found

    def read(self, handle: Memory, start: int, dtype: Any, size: int) -> Any:
        return handle.bytes[start : start + size * dtype.itemsize].copy().view(dtype)

    def copy(self, source: Memory, target: Memory, nbytes: int) -> None:
        target.bytes[:nbytes] = source.bytes[:nbytes]

    def load(self, launches: Sequence[Any]) -> None:
        new = {launch.name: launch for launch in launches if launch.name not in self._libraries}
        if new:
            kernels = program_source(self.dialect, list(new.values()))
            calls = "\n".join(map(_call, new.values()))
            library = self._compiled(f'#include "{HEADER}"\n{kernels}\n{calls}\n')
            self._libraries |= dict.fromkeys(new, library)

    def _compiled(self, text: str) -> Any:
        made = Path(self.folder.name) / f"kernels{len(self._libraries)}"
        made.with_suffix(".cpp").write_text(text)
        files = ["-o", made.with_suffix(".so"), made.with_suffix(".cpp")]
        done = subprocess.run(
            ["c++", *OPTIONS, *files], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise DeviceError(f"kernels do not compile: {done.stderr[:2000]}")
        return ctypes.CDLL(str(made.with_suffix(".so")))

    def launch(self, launch: Any, pointers: Sequence[Any], *, timed: bool = False) -> None:
        groups = (*launch.groups, 1, 1)[:3]
        too_many = any(n > most for n, most in zip(groups, MOST_GROUPS, strict=True))
        if too_many or launch.items > MOST_ITEMS:
            raise DeviceError(f"no device has {groups} groups of {launch.items} work items")
        library = self._libraries[launch.name]
        flat = [word for memory, offset in pointers for word in (memory.address, offset)]
        given = (ctypes.c_void_p * len(flat))(*flat)
        function = ctypes.cast(library[f"call_{launch.name}"], ctypes.c_void_p)
        sizes = (ctypes.c_uint * 3)(*groups)
        waits = int("BARRIER" in launch.text)
        line = library.weft_launch(function, given, sizes, launch.items, waits, int(self.backwards))
        self.launched.add(launch.name)
        if line:
            raise DeviceError(f"{launch.name}: work items wait at line {line} for others")
        for memory, _ in pointers:
            if not memory.is_whole():
                raise DeviceError(f"{launch.name} writes beside its memory")

    def seconds(self, event: Any) -> float:
        return 0.0

    def wait(self) -> None:
        pass


def _call(launch: Any) -> str:
    """Return a function that calls a kernel with what a table holds."""
    given = ", ".join(
        f"({stored_type(argument.dtype)} *)a[{2 * i}], (i64)a[{2 * i + 1}]"
        for i, argument in enumerate(launch.arguments)
    )
    return f'extern "C" void call_{launch.name}(void **a) {{ {launch.name}({given}); }}'


def _open(index: int) -> ShimDriver:
    return ShimDriver(DIALECTS[index])


BACKEND = SourceDevices("shim", lambda: list(DIALECTS), _open)


def install() -> None:
    """Let all of them be there from now on."""
    path = Path(BACKEND.at(0).driver.folder.name)
    backends.__path__ = make_folder(path, "shim", MODULE)


if __name__ == "__main__":
    install()
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
