"""How many threads a computation may use.

Compiled code and large matrix products run on Weft's own threads, which watch the number kept here.
NumPy's BLAS has a number of its own, which is not touched: it belongs to the user's calls of NumPy
(see products.py and blas.py).
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from typing import ClassVar

from .errors import ArgumentError
from .shape import as_int


def set_num_threads(n: int) -> None:
    """Let computations use up to n threads.

    Results are the same with any number. NumPy's own functions keep the setting of their BLAS.

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
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
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
