"""The clock of profiles, from native code and from Python: both tell the same time."""

from __future__ import annotations

import ctypes
import sys
import time
from functools import cache

from ..codegen.target import Target
from .native.clock import clock_text

# Python's own perf_counter on macOS counts by this one too; elsewhere they are the same.
_POSIX_CLOCK: int | None = getattr(time, "CLOCK_UPTIME_RAW", getattr(time, "CLOCK_MONOTONIC", None))
_LINUX_COARSE = 6  # CLOCK_MONOTONIC_COARSE, which never takes a system call


def clock_module(target: Target) -> str:
    """Return the module of the native clock."""
    return clock_text(target, _POSIX_CLOCK)


def coarse_clock_module(target: Target) -> str:
    """Return the module of a clock that is read at least cost, and exact to some milliseconds."""
    linux = sys.platform.startswith("linux")
    return clock_text(target, _LINUX_COARSE if linux else _POSIX_CLOCK)


def clock_symbols() -> dict[str, int]:
    """Return what the native clock uses and is not among the symbols of the process."""
    if _POSIX_CLOCK is not None:
        return {}
    function = ctypes.CDLL("kernel32").QueryPerformanceCounter
    return {"QueryPerformanceCounter": ctypes.cast(function, ctypes.c_void_p).value or 0}


def now() -> int:
    """Return the time in ticks of the clock."""
    if sys.platform != "win32" and _POSIX_CLOCK is not None:
        return time.clock_gettime_ns(_POSIX_CLOCK)
    return round(time.perf_counter_ns() / seconds_per_tick() / 1e9)


def seconds() -> float:
    """Return the time of the clock in seconds."""
    return now() * seconds_per_tick()


@cache
def seconds_per_tick() -> float:
    """Return how long a tick of the clock is."""
    if _POSIX_CLOCK is not None:
        return 1e-9
    return time.get_clock_info("perf_counter").resolution
