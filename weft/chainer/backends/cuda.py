"""`chainer.backends.cuda`: there is no GPU, and programs that ask are told so."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

available = False
cudnn_enabled = False
cupy = np  # programs write `xp = cuda.cupy if gpu >= 0 else numpy`
ndarray = np.ndarray


def to_cpu(array: Any, stream: Any = None) -> Any:
    """Return an array: it is there."""
    return array


def to_gpu(array: Any, device: Any = None, stream: Any = None) -> Any:
    """Refuse: there is no device."""
    check_cuda_available()
    return array


def check_cuda_available() -> None:
    """Raise: there is no GPU."""
    raise RuntimeError(
        "CUDA environment is not correctly set up: Weft's arrays are on the CPU; run with gpu=-1"
    )


def get_array_module(*args: Any) -> Any:
    """Return NumPy."""
    return np


def get_device_from_id(device_id: Any) -> Any:
    """Return what a program can call `use()` on, for the CPU; refuse a GPU."""
    if device_id is not None and int(device_id) >= 0:
        check_cuda_available()
    return DummyDevice


get_device = get_device_from_id


def get_device_from_array(*arrays: Any) -> Any:
    """Return the CPU."""
    return DummyDevice


class DummyDeviceType(AbstractContextManager[Any]):
    """The CPU."""

    id = -1
    name = "@numpy"
    xp = np
    supported_array_types = (np.ndarray,)

    def use(self) -> None:
        """Do nothing."""

    def synchronize(self) -> None:
        """Do nothing."""

    def send(self, arrays: Any) -> Any:
        """Return arrays: they are there."""
        return arrays

    def __enter__(self) -> DummyDeviceType:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __str__(self) -> str:
        return self.name


DummyDevice = DummyDeviceType()
_NAMES = ("-1", "@numpy", "@intel64", "native", "cpu", "None")


def check_device(device: Any) -> None:
    """Raise unless a device is the CPU, by any of its names."""
    if not isinstance(device, DummyDeviceType) and str(device) not in _NAMES:
        check_cuda_available()


def profile(*_: Any) -> AbstractContextManager[None]:
    """Do nothing inside a `with` block."""
    return nullcontext()
