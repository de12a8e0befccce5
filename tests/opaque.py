"""A back end whose memory is no array: reference kernels over boxes that count every copy.

It stands for a processor with memory of its own. Two devices, `opaque:0` and `opaque:1`; each may
be given little memory, or be lost.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest

import weft as wf
from weft import backends
from weft.backends import device_memory
from weft.backends.execution import Execution
from weft.backends.reference.backend import ReferenceBackend
from weft.core.device_array import DeviceError
from weft.plan.device import Device

REFERENCE = ReferenceBackend()


class Box:
    """Memory of the device; only the device looks inside."""

    __slots__ = ("_hidden", "owner")

    def __init__(self, owner, shape, dtype):
        self.owner = owner
        self._hidden = np.full(shape, 77, dtype)  # whatever was there
        owner.used += self._hidden.nbytes

    def __del__(self):
        self.owner.used -= self._hidden.nbytes

    def __array__(self, *args, **kwargs):
        raise AssertionError("the memory of a device is no array")


class OpaqueBackend:
    """One device."""

    def __init__(self, name):
        self.name = name
        self.copies = Counter()
        self.used = 0
        self.room = None
        self.lost = False
        self.doubles = True

    def describe(self):
        return Device(self.name, 1, "boxes", own_memory=True)

    def compile(self, program):
        if not self.doubles and any(b.dtype == np.float64 for b in program.used_buffers):
            raise DeviceError(f"{self.name} has no double precision; convert to wf.float32")
        return program

    def allocate(self, shape, dtype):
        self._check()
        if self.room is not None and self.used + np.empty(shape, dtype).nbytes > self.room:
            raise MemoryError
        return Box(self, shape, dtype)

    def copy_in(self, array, memory):
        self._check()
        assert memory.owner is self
        assert array.__class__ is np.ndarray
        assert array.dtype == memory._hidden.dtype
        self.copies["in"] += 1
        memory._hidden = array.reshape(memory._hidden.shape).copy()

    def copy_out(self, memory):
        self._check()
        assert memory.owner is self
        self.copies["out"] += 1
        return memory._hidden.copy()

    def run(self, code, memories):
        self._check()
        assert all(box.owner is self for box in memories.values())
        arrays = {number: box._hidden.copy() for number, box in memories.items()}
        REFERENCE.run(code, arrays)
        for number, array in arrays.items():
            if number not in memories:
                memories[number] = Box(self, array.shape, array.dtype)
            memories[number]._hidden = array

    def synchronize(self):
        self._check()

    def prepare(self, program, sources):
        return Execution(self, program, sources)

    def _check(self):
        if self.lost:
            raise DeviceError(f"{self.name} does not answer any more")


class OpaqueDevices:
    """Both of them."""

    def __init__(self):
        self.devices = [OpaqueBackend(f"opaque:{i}") for i in range(2)]

    def count(self):
        return len(self.devices)

    def at(self, index):
        return self.devices[index]


BACKEND = OpaqueDevices()


def make_folder(path, name="opaque", module=__name__):
    """Make the folder of a module's back end: it is one as soon as the folder is looked into."""
    folder = path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "backend.py").write_text(f"from {module} import BACKEND\n")
    return [*backends.__path__, str(path)]


@pytest.fixture
def opaque(tmp_path, monkeypatch):
    """Return the first device, with nothing in its memory."""
    monkeypatch.setattr(backends, "__path__", make_folder(tmp_path))
    for backend in BACKEND.devices:
        backend.room, backend.lost, backend.doubles = None, False, True
    yield BACKEND.devices[0]
    for backend in BACKEND.devices:
        backend.room, backend.lost, backend.doubles = None, False, True
        device_memory.memory_of(backend.name).release()


@contextmanager
def no_copies(out=0):
    """Fail if the block copies anything to the host, but so many values."""
    before = _copied_out()
    yield
    assert _copied_out() - before == out


def _copied_out():
    """Return how often values were copied out; the flag of bad indices is none."""
    flags = sum(device_memory.memory_of(b.name).counts["flags read"] for b in BACKEND.devices)
    return sum(b.copies["out"] for b in BACKEND.devices) - flags


def there(x, requires_grad=False):
    """Return a tensor on the first device."""
    return wf.tensor(x, device="opaque:0", requires_grad=requires_grad)
