"""Memory for arenas: aligned to cache lines, in huge pages where it is large.

The first touch of fresh memory costs up to 1 ms a megabyte. The first run pays that, by all threads
at the same time, and for the parts that it uses.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np

from ....core.errors import AllocationError, ArgumentError

ALIGNMENT = 64
HUGE_PAGE = 2 * 1024 * 1024
HUGE_FROM = 4 * 1024 * 1024  # smaller blocks would waste much of a huge page

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


def aligned_empty(nbytes: int) -> Bytes:
    """Return a block of that many bytes, aligned to 64, as an array of uint8.

    Its content is undefined, and it is freed with the last array that refers to it.
    """
    if nbytes < 0:
        raise ArgumentError(f"aligned_empty: nbytes must not be negative. Received: {nbytes}")
    try:
        return _mapped(nbytes) if nbytes >= HUGE_FROM else _allocated(nbytes)
    except (MemoryError, OSError, OverflowError, ValueError) as error:
        raise AllocationError(f"cannot allocate {nbytes} bytes: {error}") from None


def _allocated(nbytes: int) -> Bytes:
    return aligned_part(np.empty(nbytes + ALIGNMENT, np.uint8), nbytes, ALIGNMENT)


def _mapped(nbytes: int) -> Bytes:
    """Map private pages: a child after a fork must not write into its parent's arena."""
    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return _allocated(nbytes)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    pages = mmap.mmap(-1, nbytes + HUGE_PAGE, flags=flags)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without huge pages: advice, not a need
            pages.madvise(mmap.MADV_HUGEPAGE)
    return aligned_part(np.frombuffer(pages, np.uint8), nbytes, HUGE_PAGE)


def aligned_part(block: np.ndarray[Any, np.dtype[np.uint8]], nbytes: int, alignment: int) -> Bytes:
    """Return the first bytes of a block, so many, that begin at a multiple of the alignment."""
    offset = -block.__array_interface__["data"][0] % alignment
    return block[offset:][:nbytes]  # in two steps: an empty slice need not start at its offset
