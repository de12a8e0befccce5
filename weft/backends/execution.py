"""Run programs on any back end: bring values in, run, take results out, write the states.

On a device with memory of its own, values that are there already are taken as they are, and so are
results handed out: nothing is copied but what comes from the host, and what the host keeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.device_array import DeviceArray
from ..core.errors import IndexOutOfRange
from ..core.tensor import Tensor
from ..graph.state import State
from ..lower.kernels import CallKernel, walk
from ..lower.program import KernelProgram, Sources
from ..lower.storage import Buffer, View
from .device_memory import DeviceBlock, DevicePool, memory_of
from .host import shown
from .protocol import Array, Backend, Memories
from .states import STATES

Blocks = dict[int, DeviceBlock]  # memory by the numbers of a program's buffers


class Execution:
    """A program on a back end, for feeds of certain shapes."""

    checks_feeds = False

    def __init__(self, backend: Backend, program: KernelProgram, sources: Sources) -> None:
        self.backend = backend
        self.program = program
        self.sources = sources
        self.memory = memory_of(backend.describe().name, lambda name: backend)
        self._code = backend.compile(program)
        flag = None if program.flag is None else program.flag.buffer
        self._constants: Blocks = {
            b.number: self.memory.brought(sources.constants[b.slot], b.shape)
            for b in program.buffers
            if b.kind == "constant" and b is not flag
        }
        # What every run asks for, found once: a run of small kernels takes no longer than this.
        self._fed = [b for b in program.buffers if b.kind == "feed"]
        self._states = [b for b in program.buffers if b.kind == "state"]
        given = {b.number for b in program.buffers if b.kind in ("constant", "feed", "state")}
        made = {v.buffer.number: v.buffer for v in program.outputs if v.buffer.kind == "arena"}
        self._made = [
            (number, self.memory.shelf(b.shape, b.dtype))
            for number, b in made.items()
            if number not in given
        ]
        self._clear: list[DeviceBlock] = []  # words in which no wrong index was reported yet
        # An object has a size that only a run tells: it is read from the host.
        outputs = program.outputs
        self._wholes = {id(v): v.buffer.kind != "object" and v.whole for v in outputs}

    def run(self, feeds: Sequence[Any]) -> list[Any]:
        """Run on values of the shapes it was compiled for; return the fetches.

        They are arrays, or where the device has its own memory values in it.
        """
        with STATES:
            blocks, states = self._brought(feeds)
            found = self.compute(blocks)
            fetched = [found(view) for view in self.program.fetches]
            changed = [(slot, found(view)) for slot, view in self.program.commits]
            for slot, value in changed:
                self._commit(self.sources.states[slot], states.get(slot), value)
        return fetched if self.memory.own else [value.to_host() for value in fetched]

    def compute(self, blocks: Blocks) -> RunResults:
        """Run the kernels on memory of what comes from outside; return where results are."""
        for number, shelf in self._made:
            blocks[number] = self.memory.allocated(shelf)
        memories: Memories = {number: block.memory for number, block in blocks.items()}
        self.backend.run(self._code, memories)
        self.memory.counts["programs"] += 1
        if self.program.flag is not None:
            number = self.program.flag.buffer.number
            blocks[number].memory = memories[number]  # a back end may have put other there
            self._check_indices(blocks[number])
        return RunResults(self.memory, blocks, memories, self._wholes)

    @property
    def straight(self) -> Callable[[Sequence[DeviceArray]], list[DeviceArray]] | None:
        """Return what runs the program on values of its device alone, if there is such a way."""
        return None

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
            "library": self.on_host,
            "arena_bytes": sum(arena),
        }

    @property
    def on_host(self) -> list[str]:
        """Return the operators whose own kernels are called, since there is no other."""
        return [k.op.name for k in walk(self.program.kernels) if isinstance(k, CallKernel)]

    def __repr__(self) -> str:
        kinds = self.stats()["kernels"].items()
        shown = ", ".join(f"{count} {kind}" for kind, count in kinds) or "no kernels"
        return f"<{type(self).__name__} on {self.backend.describe().name}: {shown}>"

    # -- memory ------------------------------------------------------------------------------------

    def placed(self, feeds: Sequence[Any]) -> Blocks:
        """Return the constants and what is fed, in the memory of the device."""
        blocks = dict(self._constants)
        for buffer in self._fed:
            blocks[buffer.number] = self._here(feeds[buffer.slot], buffer)
        flag = self.program.flag
        if flag is not None:
            blocks[flag.buffer.number] = self._clear_flag(flag.buffer)
        return blocks

    def _clear_flag(self, buffer: Buffer) -> DeviceBlock:
        """Return a word that is zero: that of an earlier run, unless another one has it now."""
        try:
            return self._clear.pop()
        except IndexError:
            return self.memory.copied(np.zeros(buffer.shape, np.int64))

    def _brought(self, feeds: Sequence[Any]) -> tuple[Blocks, dict[int, Any]]:
        """Return memory of all that comes from outside, and the states as they were read."""
        blocks, states = self.placed(feeds), dict[int, Any]()
        for buffer in self._states:
            states[buffer.slot] = read = self.sources.states[buffer.slot].read()
            blocks[buffer.number] = self._here(read, buffer)
        return blocks, states

    def _here(self, value: Any, buffer: Buffer) -> DeviceBlock:
        if value.__class__ is not DeviceArray:
            return self.memory.brought(value, buffer.shape)
        if value.device == self.memory.name:
            block: DeviceBlock = value.block
            return block
        return self.memory.brought(value.to_host(), buffer.shape)

    def _commit(self, state: State, before: Any, value: DeviceArray) -> None:
        """Write a state: where it was, or, if it is a slot that nobody else has, here."""
        is_slot = state.held and not isinstance(state.owner, Tensor)
        stays = self.memory.own and (is_slot or before.__class__ is DeviceArray)
        state.write(value if stays else value.to_host())  # type: ignore[arg-type]  # or a DeviceArray

    def _check_indices(self, flag: DeviceBlock) -> None:
        """Wait, and raise if an index was out of range."""
        self.backend.synchronize()
        self.memory.counts["flags read"] += 1
        if self.backend.copy_out(flag.memory).any():
            raise IndexOutOfRange("an index is out of range")
        self._clear.append(flag)


class RunResults:
    """The results of a run, by views of the program's buffers."""

    def __init__(
        self, memory: DevicePool, blocks: Blocks, memories: Memories, wholes: dict[int, bool]
    ) -> None:
        self._memory, self._blocks, self._memories = memory, blocks, memories
        self._wholes = wholes  # whether a view, by its id, shows all of its buffer

    def __call__(self, view: View) -> DeviceArray:
        """Return what a view shows as a value of its own."""
        block = self._blocks.get(view.buffer.number)
        if block is None or not self._wholes[id(view)]:
            return self._by_the_host(view)
        block.memory = self._memories[view.buffer.number]  # a back end may have put other there
        return self._memory.value(block, view.shape)

    def _by_the_host(self, view: View) -> DeviceArray:
        """Return a part of a buffer, or what only the run could tell the size of."""
        whole = self._memory.read(self._memories[view.buffer.number])
        part = whole if view.buffer.kind == "object" else shown(whole, view)
        array = np.ascontiguousarray(part).reshape(part.shape)
        return self._memory.value(self._memory.copied(array), array.shape)
