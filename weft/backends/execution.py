"""Run programs on any back end: bring arrays in, run, take results out, write the states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import IndexOutOfRange
from ..lower.kernels import CallKernel, walk
from ..lower.program import KernelProgram, Sources
from ..lower.storage import Buffer, View
from .host import shown
from .protocol import Array, Backend, Memories
from .states import STATES


class Execution:
    """A program on a back end, for feeds of certain shapes."""

    checks_feeds = False

    def __init__(self, backend: Backend, program: KernelProgram, sources: Sources) -> None:
        self.backend = backend
        self.program = program
        self.sources = sources
        self._code = backend.compile(program)
        flag = None if program.flag is None else program.flag.buffer
        self._constants: Memories = {
            b.number: self._copied_in(b, sources.constants[b.slot])
            for b in program.buffers
            if b.kind == "constant" and b is not flag
        }

    def run(self, feeds: Sequence[Array]) -> list[Array]:
        """Run on arrays of the shapes it was compiled for; return the fetches."""
        with STATES:
            memories = self._brought(feeds)
            self.backend.run(self._code, memories)
            self.backend.synchronize()
            self._check_indices(memories)
            fetched = [self._read(view, memories) for view in self.program.fetches]
            changed = [(slot, self._read(v, memories)) for slot, v in self.program.commits]
            for slot, array in changed:
                self.sources.states[slot].write(array)
        return fetched

    @property
    def direct(self) -> None:
        """There is no shorter way than `run`."""
        return None

    def run_unchecked(self, feeds: tuple[Any, ...]) -> list[Array] | None:
        """Decline: only a look at all feeds tells whether they suit."""
        return None

    def stats(self) -> dict[str, Any]:
        """Return how many kernels of each kind there are, and what runs in Python."""
        kernels = list(walk(self.program.kernels))
        kinds = (type(kernel).__name__.removesuffix("Kernel").lower() for kernel in kernels)
        arena = [b.nbytes for b in self.program.used_buffers if b.kind == "arena"]
        return {
            "kernels": dict(Counter(kinds)),
            "library": [k.op.name for k in kernels if isinstance(k, CallKernel)],
            "arena_bytes": sum(arena),
        }

    def __repr__(self) -> str:
        kinds = self.stats()["kernels"].items()
        shown = ", ".join(f"{count} {kind}" for kind, count in kinds) or "no kernels"
        return f"<{type(self).__name__} on {self.backend.describe().name}: {shown}>"

    # -- memory ------------------------------------------------------------------------------------

    def _copied_in(self, buffer: Buffer, array: Array) -> Any:
        memory = self.backend.allocate(buffer.shape, buffer.dtype)
        self.backend.copy_in(np.reshape(array, buffer.shape), memory)
        return memory

    def _brought(self, feeds: Sequence[Array]) -> Memories:
        """Return memory for what comes from outside, and for results."""
        program, memories = self.program, dict(self._constants)
        for buffer in program.buffers:
            if buffer.kind == "feed":
                memories[buffer.number] = self._copied_in(buffer, feeds[buffer.slot])
            elif buffer.kind == "state":
                state = self.sources.states[buffer.slot].read()
                memories[buffer.number] = self._copied_in(buffer, state)
        if program.flag is not None:
            memories[program.flag.buffer.number] = self._copied_in(
                program.flag.buffer, np.zeros(program.flag.buffer.shape, np.int64)
            )
        for view in program.outputs:
            if view.buffer.kind == "arena" and view.buffer.number not in memories:
                made = self.backend.allocate(view.buffer.shape, view.buffer.dtype)
                memories[view.buffer.number] = made
        return memories

    def _read(self, view: View, memories: Memories) -> Array:
        """Return what a view shows, as an array of its own."""
        whole = self.backend.copy_out(memories[view.buffer.number])
        return whole if view.buffer.kind == "object" else shown(whole, view).copy()

    def _check_indices(self, memories: Memories) -> None:
        flag = self.program.flag
        if flag is not None and self.backend.copy_out(memories[flag.buffer.number]).any():
            raise IndexOutOfRange("an index is out of range")
