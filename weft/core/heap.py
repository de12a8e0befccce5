"""Memory of large arrays that waits to be used again instead of going back to the system.

The first touch of a page costs more than computing what is stored there: on a chain of matrix
products a fifth of the time went into pages that had been given back a moment before. Results of
machine code come from a pool of their own. What NumPy allocates comes from the C library, which by
default gives back the free end of its heap as soon as that exceeds twice the largest block freed so
far. Here it is asked to keep as much as the pool may; or, where nothing is to be kept, to give
large arrays back as soon as they are freed: by itself it keeps twice the largest, in every thread.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings

DEFAULT_LIMIT = 512 * 1024 * 1024

# Options of glibc's mallopt. Naming one of them ends the automatic choice of both.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_MMAP_FROM = 32 * 1024 * 1024  # the most that glibc takes, and where its own choice ends
_GIVEN_BACK_FROM = 1024 * 1024
_SETTINGS_OF_USERS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def kept_memory_limit() -> int:
    """Return the most bytes to keep for later: WEFT_POOL_MB in megabytes, or 512 MB."""
    text = os.environ.get("WEFT_POOL_MB", "").strip()
    if text and not text.isdecimal():
        warnings.warn(
            f"WEFT_POOL_MB must be a whole number of megabytes. Received: {text!r}", stacklevel=2
        )
    return int(text) * 1024 * 1024 if text.isdecimal() else DEFAULT_LIMIT


def keep_freed_memory() -> bool:
    """Have the C library keep the memory of freed arrays; tell whether it was asked to.

    What the user has set, and other C libraries than glibc, are left alone.
    """
    limit = kept_memory_limit()
    if not limit:
        return False
    return _ask(_MMAP_THRESHOLD, _MMAP_FROM) and _ask(_TRIM_THRESHOLD, min(limit, 2**31 - 1))


def give_back_freed_memory() -> bool:
    """Have the C library give large arrays back, if nothing is to be kept; tell whether it does."""
    return not kept_memory_limit() and _ask(_MMAP_THRESHOLD, _GIVEN_BACK_FROM)


def _ask(option: int, value: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    if any(name in os.environ for name in _SETTINGS_OF_USERS):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(option, value))
