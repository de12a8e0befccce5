"""How many threads a computation may use.

Eagerly, only matrix products run on several threads, those of the BLAS library that NumPy brings.
It is controlled through its own functions, found in the library that is loaded already; a NumPy
built with another BLAS keeps that one's setting (and its environment variables).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

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
    setter = _blas_function("set_num_threads")
    if setter is not None:
        setter(count)


def get_num_threads() -> int:
    """Return how many threads computations may use."""
    getter = _blas_function("get_num_threads")
    return int(getter()) if getter is not None else _Threads.count


class _Threads:
    count = os.cpu_count() or 1


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
