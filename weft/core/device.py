"""Devices: where values live. Today that is the CPU; other names are refused clearly."""

from __future__ import annotations

from typing import Any

from .errors import ArgumentError

KNOWN = ("cpu", "cuda", "gpu", "mps", "tpu", "xpu", "meta")


def is_device(target: Any) -> bool:
    """Tell whether an argument names a device rather than a dtype."""
    return isinstance(target, str) and target.split(":")[0] in KNOWN


def check_device(device: Any) -> str:
    """Return the device's name; raise unless it is one that Weft runs on."""
    if device is None or (isinstance(device, str) and device == "cpu"):
        return "cpu"
    raise ArgumentError(f"device must be 'cpu', the only one supported. Received: {device!r}")
