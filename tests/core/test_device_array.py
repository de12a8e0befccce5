"""Values in the memory of a device: what they are, and what they refuse."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from tests.opaque import opaque  # noqa: F401  (a fixture)
from weft.core.device_array import (
    DeviceError,
    has_own_memory,
    held_like,
    host_array,
    is_placed,
    moved,
    to_device,
    to_host,
)

pytestmark = pytest.mark.usefixtures("opaque")


def test_devices_that_have_memory_of_their_own():
    found = [has_own_memory(name) for name in ("cpu", "reference", "opaque:0", "opaque:1")]
    assert found == [False, False, True, True]


def test_values_move():
    x = np.arange(3.0)
    value = to_device(x, "opaque:0")
    assert is_placed(value)
    assert not is_placed(x)
    assert to_device(value, "opaque:0") is value
    other = to_device(value, "opaque:1")
    assert other.device == "opaque:1"
    assert to_host(other).tolist() == [0, 1, 2]
    assert to_host(x) is x
    assert moved(value, "cpu").tolist() == [0, 1, 2]
    assert moved(x, "reference") is x
    assert held_like(value, x).device == "opaque:0"
    assert held_like(x, x) is x


def test_what_it_is():
    value = to_device(np.ones((2, 3), np.float32), "opaque:0")
    assert (value.ndim, value.size, value.itemsize, value.nbytes) == (2, 6, 4, 24)
    assert repr(value) == "<float32[2, 3] on 'opaque:0'>"
    assert value.astype(np.float32) is value
    assert value.astype(np.int64).tolist() == [[1, 1, 1], [1, 1, 1]]
    for again in (copy.deepcopy(value), pickle.loads(pickle.dumps(value)), value.copy()):
        assert again.device == "opaque:0"
        np.testing.assert_array_equal(to_host(again), to_host(value))


def test_nothing_looks_into_it_unasked():
    value = to_device(np.ones(3), "opaque:0")
    with pytest.raises(DeviceError, match=r"float64\[3\] on 'opaque:0'. was about to be copied"):
        np.array(value)
    with pytest.raises(TypeError):
        value + np.ones(3)
    with pytest.raises(DeviceError, match=r"labels is read by the host, and is on 'opaque:0'"):
        host_array(value, "labels")
