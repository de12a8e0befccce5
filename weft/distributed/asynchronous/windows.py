"""Words and arrays in the memory of another rank, by MPI's one-sided operations.

Nothing here takes a lock that others would wait for: a rank that dies leaves everyone free. Whoever
writes data and then a word that says so lets the data arrive first (`flush`).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .layout import WindowRegion

Array = np.ndarray[Any, Any]
_WORD: Final = np.dtype(np.int64)


class SharedWindow:
    """The memory that servers offer to all ranks of a communicator.

    size   bytes of this rank's own memory; 0 if it is no server
    """

    def __init__(self, library: Any, comm: Any, size: int) -> None:
        self._library = library
        self.comm = comm
        self._window = library.Win.Allocate(size, 1, comm=comm)
        self._window.Lock_all()
        memory = self._window.tomemory()
        self.memory: Array = np.frombuffer(memory, np.uint8) if size else np.empty(0, np.uint8)
        if size:
            self.memory[:] = 0
        comm.Barrier()  # nobody looks before it is zero

    # -- this rank's own memory --------------------------------------------------------------------

    def own(self, region: WindowRegion, dtype: Any) -> Array:
        """Return a part of this rank's memory as an array."""
        return self.memory[region.start : region.start + region.size].view(dtype)

    def sync(self) -> None:
        """See what others wrote here, and let them see what was written; lets MPI work, too."""
        self._window.Sync()
        try:
            self.comm.Iprobe()
        except self._library.Exception:  # a rank is lost, which `lost_ranks` tells
            return

    def lost_ranks(self) -> set[int]:
        """Return which ranks have failed, where MPI goes on without them."""
        try:
            failed = self.comm.Get_failed()
        except (AttributeError, NotImplementedError, self._library.Exception):
            return set()
        count = failed.Get_size()
        if not count:
            return set()
        mine = self.comm.Get_group()
        return set(self._library.Group.Translate_ranks(failed, list(range(count)), mine))

    # -- the memory of another ---------------------------------------------------------------------

    def get(
        self, rank: int, region: WindowRegion, dtype: Any, shape: tuple[int, ...] = (-1,)
    ) -> Array:
        """Return a copy of a part of another rank's memory."""
        found = np.empty(region.size, np.uint8)
        if region.size:
            self._window.Get(found, rank, (region.start, region.size, self._library.BYTE))
            self._window.Flush(rank)
        array: Array = found.view(dtype).reshape(shape)
        return array

    def get_rows(self, rank: int, start: int, width: int, rows: Array) -> Array:
        """Return copies of some rows of a table in another rank's memory, `width` bytes each."""
        found = np.empty((len(rows), width), np.uint8)
        for first, last in runs_of(rows):
            place = start + int(rows[first]) * width, (last - first) * width, self._library.BYTE
            self._window.Get(found[first:last], rank, place)
        if len(rows):
            self._window.Flush(rank)
        return found

    def put(self, rank: int, start: int, array: Array) -> None:
        """Write an array into another rank's memory; `flush` says when it has arrived."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        if data.size:
            self._window.Put(data, rank, (start, data.size, self._library.BYTE))

    def flush(self, rank: int) -> None:
        """Wait until everything that was written to a rank has arrived."""
        self._window.Flush(rank)

    def put_word(self, rank: int, start: int, value: int) -> None:
        """Write a word, behind everything that was written before."""
        self._window.Flush(rank)
        self.put(rank, start, np.array([value], _WORD))
        self._window.Flush(rank)

    def close(self) -> None:
        """Give the memory back; all ranks must, so with one of them lost nothing is done."""
        if not self.lost_ranks():
            self._window.Unlock_all()
            self._window.Free()


def runs_of(rows: Array) -> list[tuple[int, int]]:
    """Return where ascending numbers follow one another without a gap.

    >>> runs_of(np.array([2, 3, 4, 9]))
    [(0, 3), (3, 4)]
    """
    if not len(rows):
        return []
    cuts = (np.flatnonzero(np.diff(rows) != 1) + 1).tolist()
    return list(zip([0, *cuts], [*cuts, len(rows)], strict=True))
