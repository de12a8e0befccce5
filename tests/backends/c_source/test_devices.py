"""Devices whose kernels are text: who may use them."""

from __future__ import annotations

import os
import re
import signal

import numpy as np
import pytest

import weft as wf
from tests.backends.opencl.test_backend import needs_device
from tests.backends.shim import needs_compiler
from weft.backends.c_source import devices
from weft.backends.c_source.devices import SourceBackend
from weft.core.device_array import DeviceError

pytestmark = pytest.mark.usefixtures("shim")
PLACES = [
    pytest.param("opencl:0", marks=needs_device),
    pytest.param("shim:1", marks=needs_compiler),
]


def in_a_fork(function):
    """Return what a function returns, or raises, in a forked process."""
    end, beginning = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(60)  # instead of a test that waits without end
        try:
            found = repr(function())
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"
        os.write(beginning, found.encode()[:4000])
        os._exit(0)
    os.close(beginning)
    with open(end, "rb") as told:
        found = told.read().decode()
    os.waitpid(child, 0)
    return found


def on_the_host():
    return (wf.ones(2) + 1).tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("place", PLACES)
def test_a_forked_process_is_told_to_leave_a_device_alone(place):
    x = wf.tensor(np.arange(3.0, dtype=np.float32), device=place)
    double = wf.compile(lambda x: x * 2, x)
    uses = [
        x.numpy,
        lambda: x + 1,
        lambda: double(x),
        lambda: wf.ones(5000, device=place),
        wf.device(place).synchronize,
    ]
    for use in uses:
        use()
        assert re.match(f"DeviceError: .*{place} belongs to the process", in_a_fork(use))
    assert in_a_fork(on_the_host) == "[2.0, 2.0]"
    assert (double(x) + 1).tolist() == [1, 3, 5]


def test_processes_wait_for_their_devices_when_they_end(monkeypatch):
    """One in three crashed that ended while PoCL's threads compiled what nobody had read."""
    waited = []

    class Fake:
        def wait(self):
            waited.append(self)
            raise DeviceError("it does not answer any more")

    monkeypatch.setattr(devices, "_opened", [])
    made = [SourceBackend(name, Fake).driver for name in ("one", "two")]
    devices._finish()
    assert waited == made
