"""How many threads a computation may use.

Compiled code runs on Weft's own threads, which watch the number kept here. Eagerly, only matrix
products run on several threads, those of the BLAS library that NumPy brings. It is controlled
through its own functions, found in the library that is loaded already; a NumPy built with another
BLAS keeps that one's setting (and its environment variables).
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .errors import ArgumentError
from .shape import as_int

# As OpenBLAS is named in NumPy's wheels, with 64-bit or 32-bit indices, and elsewhere.
_NAMES = (
    "scipy_openblas_{}64_",
    "scipy_openblas_{}",
    "openblas_{}64_",
    "openblas_{}",
)


def set_num_threads(n: int) -> None:
    """Let computations use up to n threads.

    >>> before = get_num_threads()
    >>> set_num_threads(1)
    >>> get_num_threads()
    1
    >>> set_num_threads(before)
    """
    count = as_int(n, "set_num_threads: n")
    if count < 1:
        raise ArgumentError(f"set_num_threads: n must be at least 1. Received: {count}")
    _Threads.count = count
    for watcher in _Threads.watchers:
        watcher(count)
    setter = _blas_function("set_num_threads")
    if setter is not None:
        setter(count)


def get_num_threads() -> int:
    """Return how many threads computations may use.

    At first that is WEFT_NUM_THREADS, or OMP_NUM_THREADS, or the processors this process may use.
    """
    return _Threads.count


def watch_num_threads(watcher: Callable[[int], None]) -> None:
    """Have a function called with every new number of threads."""
    _Threads.watchers.append(watcher)


def usable_processors() -> int:
    """Return how many processors this process may use, by its affinity and its container."""
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count() or 1
    return max(1, min(allowed, _container_processors()))


def _container_processors() -> int:
    """Return the processor time that Linux's cgroup grants, in whole processors."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return math.ceil(int(quota) / int(period))
    except (OSError, ValueError):  # no cgroup, or its quota is "max"
        return sys.maxsize


def _initial_count() -> int:
    for name in ("WEFT_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name, "").split(",")[0].strip()
        if text.isdecimal() and int(text) > 0:
            return int(text)
    return usable_processors()


class _Threads:
    count = _initial_count()
    watchers: ClassVar[list[Callable[[int], None]]] = []


@cache
def _blas_function(name: str) -> Callable[..., Any] | None:
    for library in _blas_libraries():
        for pattern in _NAMES:
            function: Callable[..., Any] | None = getattr(library, pattern.format(name), None)
            if function is not None:
                return function
    return None


@cache
def _blas_libraries() -> tuple[ctypes.CDLL, ...]:
    """Return handles on the BLAS that NumPy's wheel ships (it is loaded by now)."""
    package = Path(np.__file__).parent
    folders = (package.parent / "numpy.libs", package / ".dylibs")
    found = []
    for path in (path for folder in folders if folder.is_dir() for path in folder.iterdir()):
        if "openblas" in path.name:
            try:
                found.append(ctypes.CDLL(str(path)))
            except OSError:  # not a library that this process can use
                continue
    return tuple(found)
