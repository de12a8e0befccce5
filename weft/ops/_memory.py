"""Refuse absurd allocations before they are tried, with a message that names the bytes."""

from __future__ import annotations

import os
from functools import cache

from ..core.dtype import DType
from ..core.errors import AllocationError
from ..core.shape import size_of

_ADDRESSABLE = 2**47  # bytes a process can address where physical memory is not known


@cache
def physical_memory() -> int:
    """Return the machine's memory in bytes, or what a process can address if that is unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system, or it does not tell
        return _ADDRESSABLE


def check_allocation(what: str, shape: tuple[int, ...], dtype: DType) -> None:
    """Raise if a tensor of this type could never fit in the machine's memory."""
    needed = size_of(shape) * dtype.itemsize
    if needed > 1 << 20 and needed > physical_memory():
        raise AllocationError(
            f"{what}: a {dtype} tensor of shape {shape} takes {format_bytes(needed)}, more than "
            f"this machine's memory of {format_bytes(physical_memory())}"
        )


def format_bytes(count: int) -> str:
    """Return a number of bytes for people: exact below 1 KiB, else in the largest unit that fits.

    >>> format_bytes(1536)
    '1.5 KiB (1536 bytes)'
    """
    if count < 1024:
        return f"{count} bytes"
    power = min((count.bit_length() - 1) // 10, 8)
    unit = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB")[power - 1]
    return f"{count / 1024**power:.4g} {unit} ({count} bytes)"
