"""The driver of CUDA devices, as far as it goes without one."""

from __future__ import annotations

import ctypes

import pytest

import weft as wf
from weft.backends import backend_named
from weft.backends.cuda import driver
from weft.core.device_array import DeviceError


@pytest.fixture
def no_driver(monkeypatch):
    def refuse(name):
        raise OSError(f"{name}: cannot open shared object file")

    driver.library.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", refuse)
    yield
    driver.library.cache_clear()


def test_no_driver_is_told_of(no_driver):
    with pytest.raises(DeviceError, match=r"no CUDA driver is here.*install NVIDIA's driver"):
        backend_named("cuda").count()


def test_devices_that_are_not_here_are_not_listed(no_driver):
    assert all(device.type != "cuda" for device in wf.devices())
