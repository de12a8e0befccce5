"""Machine code as a function of arrays: what an operation or a composite was compiled to."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import numpy as np

from ..backends.cpu.runtime.arena import aligned_empty
from ..backends.cpu.runtime.buffers import array_maker, pooled_arena
from ..backends.cpu.runtime.executable import Executable
from ..backends.cpu.runtime.short_run import shaped
from ..core.dtype import Array
from ..core.heap import kept_memory_limit
from ..core.locks import fork_safe_lock

SMALL_ARENA = 1 << 16  # bytes that a program may keep for itself
KEPT_PART = 8  # of the memory that may wait to be used again, the workspace is at most so much

# Held while a program computes in memory that it was lent.
_lending = fork_safe_lock("lending")


class Workspace:
    """Memory for what programs keep in between, lent to one after the other.

    The same bytes for all of them: what one has left in the processor's caches the next overwrites
    there, and neither has to look for memory first.
    """

    def __init__(self) -> None:
        self.most = kept_memory_limit() // KEPT_PART
        self.arena = aligned_empty(0)

    def of(self, nbytes: int) -> Array:
        """Return memory of so many bytes or more; the same as before if it can be."""
        if nbytes > self.most:
            return pooled_arena(nbytes)
        if nbytes > self.arena.nbytes:
            self.arena = pooled_arena(nbytes)
        return self.arena


_workspace = Workspace()


def in_order(x: Array) -> Array:
    """Return an array as programs take it, in C order and aligned: itself, or a copy."""
    flags = x.flags
    return x if flags.c_contiguous and flags.aligned else np.require(x, requirements=["C", "A"])


class ArrayProgram:
    """Machine code that takes arrays of given types and returns new ones.

    puts_in_order   whether its caller has met arrays that are not in order
    """

    def __init__(self, executable: Executable) -> None:
        entry = executable.entry
        assert entry is not None
        self.entry = entry
        self.executable = executable
        self.used = executable.layout.used_feeds
        self.arena_bytes = executable.layout.arena_bytes
        self.checks = executable.plan.flag is not None  # indices: in memory of the program
        fresh = executable.layout.fresh
        self.makers = [array_maker(buffer.shape, buffer.dtype) for buffer in fresh]
        outputs = executable.plan.outputs
        self.order = [(fresh.index(view.buffer), view.shape) for view in outputs]
        self.takes_all = self.used == tuple(range(executable.layout.feeds))
        self.own: Array | None = None
        if 0 < self.arena_bytes <= SMALL_ARENA:
            self.own = aligned_empty(self.arena_bytes)
            executable.memory.lend_arena(self.own)
        self.borrows = self.arena_bytes > SMALL_ARENA
        self.puts_in_order = False
        self.lent: weakref.ref[Array] | None = None

    def run(self, *arrays: Array) -> tuple[Array, ...] | None:
        """Return the results; None for arrays not in C order and aligned, or a bad index."""
        given = arrays if self.takes_all else tuple([arrays[i] for i in self.used])
        try:
            fresh = tuple([make() for make in self.makers])
            refused = self._call(given, fresh)
        except (MemoryError, TypeError):
            return None
        if refused is not None:
            return None
        return tuple([shaped(fresh[i], shape) for i, shape in self.order])

    def _call(self, given: tuple[Array, ...], results: tuple[Array, ...]) -> int | None:
        if not self.arena_bytes and not self.checks:
            return self.entry(given, results)
        with _lending:
            if self.borrows:
                arena = _workspace.of(self.arena_bytes)  # held while the code runs
                self._compute_in(arena)
            refused = self.entry(given, results)
            return 0 if self.checks and self.executable.met_bad_index() else refused

    def _compute_in(self, arena: Array) -> None:
        if self.lent is None or self.lent() is not arena:
            self.executable.memory.lend_arena(arena)
            self.lent = weakref.ref(arena)

    def single(self) -> Callable[..., Array | None]:
        """Return `run` for one result, as short as can be where it is no more than a call."""
        if self.borrows or self.checks or not self.takes_all:
            return self._run_single
        entry, (make,), ((_, shape),), own = self.entry, self.makers, self.order, self.own

        def run(*arrays: Array) -> Array | None:
            try:
                result = make()
                if own is None:
                    refused = entry(arrays, result)
                else:  # the code computes in there, one call at a time
                    with _lending:
                        refused = entry(arrays, result)
            except (MemoryError, TypeError):  # the reference kernel will say so; a NumPy scalar
                return None
            return shaped(result, shape) if refused is None else None

        return run

    def _run_single(self, *arrays: Array) -> Array | None:
        results = self.run(*arrays)
        return None if results is None else results[0]
