"""The memory of a device: values in it, what waits to be used again, and counts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.opaque import opaque  # noqa: F401  (a fixture)
from weft.backends import device_memory
from weft.backends.device_memory import memory_of
from weft.core.device_array import DeviceError

pytestmark = pytest.mark.usefixtures("opaque")


@pytest.fixture
def memory():
    found = memory_of("opaque:0")
    found.counts.clear()
    found.release()
    return found


def test_a_value_comes_and_goes(memory):
    x = np.arange(24.0).reshape(2, 3, 4)
    value = memory.copy_in(x)
    assert (value.shape, value.dtype, value.size, value.nbytes) == ((2, 3, 4), x.dtype, 24, 192)
    np.testing.assert_array_equal(memory.copy_out(value), x)
    np.testing.assert_array_equal(memory.copy_out(value.copy()), x)
    counted = ("copies in", "copies out", "bytes in", "bytes out")
    assert [memory.counts[name] for name in counted] == [1, 2, 192, 384]


def test_arrays_in_any_order_are_copied_in_order(memory):
    x = np.arange(24.0).reshape(4, 6)[::2, ::-1].T
    np.testing.assert_array_equal(memory.copy_out(memory.copy_in(x)), x)


def test_freed_memory_is_used_again(memory):
    memory.copy_in(np.ones(100))
    before = memory.counts["allocations"]
    again = memory.copy_in(np.zeros(100))
    assert memory.counts["allocations"] == before
    assert not memory.copy_out(again).any()
    assert memory.copy_in(np.zeros(101)).shape == (101,)
    assert memory.counts["allocations"] == before + 1


def test_little_is_kept(memory, monkeypatch):
    monkeypatch.setattr(device_memory, "KEPT_BYTES", 1000)
    held = [memory.copy_in(np.ones(100)) for _ in range(3)]
    del held
    before = memory.counts["allocations"]
    again = [memory.copy_in(np.ones(100)) for _ in range(3)]
    assert memory.counts["allocations"] == before + 2
    assert len(again) == 3


def test_small_values_are_copied_once(memory):
    for _ in range(3):
        for number in (0.0, -0.0, 1.5):
            value = memory.copy_in(np.array(number))
            assert str(memory.copy_out(value)) == str(number)
    assert memory.counts["copies in"] == 3


def test_bytes_that_are_held(memory):
    value = memory.copy_in(np.ones(100))
    shared = value.copy()
    assert memory.counts["bytes"] == 800
    del value
    assert memory.counts["bytes"] == 800
    del shared
    assert memory.counts["bytes"] == 0


def test_a_full_device_is_given_back_what_waits(memory, opaque):  # noqa: F811  (the fixture)
    memory.copy_in(np.ones(100))  # freed, and waiting
    opaque.room = opaque.used + 400
    assert memory.copy_in(np.ones(120)).shape == (120,)
    with pytest.raises(MemoryError, match=r"opaque:0 has no room for float64\[1000\], 8000 bytes"):
        memory.copy_in(np.ones(1000))
    opaque.room = None
    assert memory.copy_in(np.ones(1000)).shape == (1000,)


def test_values_of_other_devices_are_refused(memory):
    with pytest.raises(DeviceError, match="is not on 'opaque:1'"):
        memory_of("opaque:1").copy_out(memory.copy_in(np.ones(3)))
