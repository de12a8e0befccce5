"""`chainer.cuda`: the older place of `chainer.backends.cuda`."""

from __future__ import annotations

from .backends.cuda import (
    DummyDevice,
    DummyDeviceType,
    available,
    check_cuda_available,
    cudnn_enabled,
    cupy,
    get_array_module,
    get_device,
    get_device_from_array,
    get_device_from_id,
    ndarray,
    profile,
    to_cpu,
    to_gpu,
)

__all__ = [
    "DummyDevice",
    "DummyDeviceType",
    "available",
    "check_cuda_available",
    "cudnn_enabled",
    "cupy",
    "get_array_module",
    "get_device",
    "get_device_from_array",
    "get_device_from_id",
    "ndarray",
    "profile",
    "to_cpu",
    "to_gpu",
]
