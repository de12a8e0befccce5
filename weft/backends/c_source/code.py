"""A kernel program on a device: what is launched, in which order, and where everything lies.

Functions work in memory of their own, one arena, and in what each run is given. Loops, branches
and operators that only the host has are driven from the host: it reads a truth value, or brings
operands over and results back. Everything else is asked for without waiting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import RLock
from typing import Any

import numpy as np

from ...core.device_array import DeviceError
from ...graph.run import Sizes
from ...lower.kernels import (
    BranchKernel,
    CallKernel,
    Kernel,
    LoopKernel,
    ScatterKernel,
    TogetherKernel,
    buffers_of,
    walk,
)
from ...lower.program import KernelProgram
from ...lower.storage import Buffer, View
from ...plan.memory import with_memory
from ..host import behind_window, call_operator, repeat, strided
from .driver import Array, Driver, Pointer
from .kernels import has_code, write_kernel
from .launch import Argument, CountingWord, Launch, Room, program_source
from .tails import Launches, with_tails

Memories = dict[int, Any]
ARENA = -1  # the number of no buffer
WORD_BYTES = 64  # of a word that has a cache line for itself


class DeviceCode:
    """A program whose functions are made, and which runs on memory that it is given."""

    def __init__(self, program: KernelProgram, driver: Driver) -> None:
        self.program = program if program.memory is not None else with_memory(program)
        assert self.program.memory is not None
        self.driver = driver
        self.alone = {
            id(kernel): write_kernel(kernel, driver.dialect)
            for kernel in walk(self.program.kernels)
            if has_code(kernel)
        }
        self._refuse_double()
        serial = driver.dialect.serial
        self.launches = with_tails(self.program.kernels, self.alone) if serial else self.alone
        driver.load(self.functions)
        self.places = self.program.memory.in_arena()
        self.room = int(self.program.memory.arena_bytes)
        arguments = (a for launch in self.functions for a in launch.arguments)
        self.scratch = max((a.end for a in arguments if isinstance(a, Room)), default=0)
        self.begun = _begun_as_old(self.program)
        self.told = _words_read(self.program)
        every = [*self.functions, *_all_of(self.alone)]
        self.fixed = {id(launch): self._fixed_pointers(launch) for launch in every}
        self._arena: Any = None
        self._times: list[tuple[Kernel, Any]] | None = None
        self.lock = RLock()

    @property
    def functions(self) -> list[Launch]:
        """Return all that is launched in runs, inside of control flow too."""
        return _all_of(self.launches)

    def source(self) -> str:
        """Return the text of all functions."""
        return program_source(self.driver.dialect, self.functions)

    def arena(self) -> Any:
        """Return the memory of the program's own, made when it first runs."""
        if self._arena is None:
            self._arena = self.driver.allocate(self._word + WORD_BYTES)
            if self.launches is not self.alone:
                self.driver.write(self._arena, self._word, np.zeros(1, np.int32))
        return self._arena

    @property
    def _word(self) -> int:
        """Return the byte of the arena at which a word lies that counts."""
        return -(-(self.room + self.scratch) // WORD_BYTES) * WORD_BYTES

    def place(self, argument: Room | CountingWord) -> int:
        """Return the byte of the arena at which something of a program's own begins."""
        return self.room + argument.start if isinstance(argument, Room) else self._word

    def _fixed_pointers(self, launch: Launch) -> list[tuple[int, int, int]] | None:
        """Return what a launch is given where that is the same in all runs; None with windows.

        It is the number of a buffer, how many elements of it lie before, and how many of the arena
        do, where the buffer lies there.
        """
        found = []
        for argument in launch.arguments:
            size = argument.dtype.itemsize
            if not isinstance(argument, View):
                found.append((ARENA, 0, self.place(argument) // size))
                continue
            buffer, offset = argument.buffer, int(argument.offset)
            if buffer.window is not None:
                return None
            place = int(self.places.get(buffer, 0)) // size
            found.append((buffer.number, offset, place + offset))
        return found

    def pointers(self, launch: Launch, memories: Memories) -> list[Pointer] | None:
        """Return what a launch is given; None if windows must be looked behind."""
        fixed = self.fixed[id(launch)]
        if fixed is None:
            return None
        arena, found = self.arena(), []
        for number, offset, place in fixed:
            given = memories.get(number)
            found.append((arena, place) if given is None else (given.handle, offset))
        return found

    def run(self, memories: Memories) -> None:
        """Run on memory; one run after another, since they share the arena."""
        with self.lock:
            _Run(self, memories, self._times).program()

    @contextmanager
    def timing(self) -> Iterator[list[tuple[Kernel, Any]]]:
        """Note, in a with block, what is launched, with what its times can be asked of.

        Each kernel runs alone.
        """
        self.driver.load(_all_of(self.alone))
        self._times = []
        try:
            yield self._times
        finally:
            self._times = None

    def _refuse_double(self) -> None:
        if self.driver.has_double:
            return
        for kernel in walk(self.program.kernels):
            if any(launch.needs_double for launch in self.alone.get(id(kernel), ())):
                raise DeviceError(
                    f"{kernel.kind} {kernel.name} computes in float64, which this device cannot; "
                    "compute in float32 (x.float()), or, since special functions take float64 for "
                    "that too, on another device, device='cpu' for example"
                )


def _all_of(launches: Launches) -> list[Launch]:
    return [launch for made in launches.values() for launch in made]


def _begun_as_old(program: KernelProgram) -> list[tuple[Buffer, Buffer]]:
    """Return new values of states that begin as the old ones, and these: rows of them are written.

    A plan lets them lie in the same memory, and copies nothing; here they have memory of their own.
    """
    assert program.memory is not None
    found = []
    for new, old in program.memory.shared.items():
        first = next((k for k in program.kernels if new in buffers_of(k)), None)
        if isinstance(first, ScatterKernel):
            found.append((new, old))
    return found


def _words_read(program: KernelProgram) -> set[Buffer]:
    """Return the words of loops that kernels read, and not windows alone."""
    words = {
        w for k in walk(program.kernels) if isinstance(k, LoopKernel) for w in (k.index, k.half)
    }
    read: set[Buffer] = set()
    for kernel in walk(program.kernels):
        if not isinstance(kernel, LoopKernel):
            read |= {view.buffer for view in kernel.views}
    return words & read


class _Run:
    """One run: where everything lies, and what the host knows.

    words     numbers that windows move with
    objects   arrays whose shapes only the run can tell, and `sizes` what they tell
    """

    def __init__(
        self, code: DeviceCode, memories: Memories, times: list[tuple[Kernel, Any]] | None
    ) -> None:
        self.code = code
        self.driver = code.driver
        self.memories = memories
        self.times = times
        self.words: dict[Buffer, Array] = {}
        self.objects: dict[Buffer, Array] = {}
        self.sizes: Sizes = {}

    def program(self) -> None:
        """Run all kernels."""
        for new, old in self.code.begun:
            source, target = self.handle(old)[0], self.handle(new)[0]
            self.driver.copy(source, target, int(new.nbytes))
        self.kernels(self.code.program.kernels)
        self.memories.update((buffer.number, array) for buffer, array in self.objects.items())

    def kernels(self, kernels: Iterable[Kernel]) -> None:
        """Run kernels in order."""
        made = self.code.launches if self.times is None else self.code.alone
        for kernel in kernels:
            launches = made.get(id(kernel))
            if launches is None:
                _HOST[type(kernel)](self, kernel)
                continue
            for launch in launches:
                pointers = self.code.pointers(launch, self.memories)
                if pointers is None:
                    pointers = [self.pointer(argument) for argument in launch.arguments]
                timed = self.times is not None
                event = self.driver.launch(launch, pointers, timed=timed)
                if self.times is not None:
                    self.times.append((kernel, event))

    # -- where things lie --------------------------------------------------------------------------

    def pointer(self, argument: Argument) -> Pointer:
        """Return the memory behind an argument, and how many elements it begins behind it."""
        if not isinstance(argument, View):
            return self.code.arena(), self.code.place(argument) // argument.dtype.itemsize
        buffer, offset = behind_window(argument.buffer, argument.offset, self.word)
        handle, start = self.handle(buffer)
        return handle, start // buffer.dtype.itemsize + int(offset)

    def handle(self, buffer: Buffer) -> tuple[Any, int]:
        """Return the memory of a buffer that is no window, and the byte at which it begins."""
        given = self.memories.get(buffer.number)
        if given is not None:
            return given.handle, 0
        return self.code.arena(), int(self.code.places[buffer])

    def word(self, buffer: Buffer) -> Array:
        """Return a number that windows move with: the host counts it."""
        if buffer not in self.words:
            self.words[buffer] = np.zeros((), np.int64)
        return self.words[buffer]

    # -- what the host reads and writes ------------------------------------------------------------

    def read(self, view: View) -> Array:
        """Wait, and return what a view shows."""
        if view.buffer in self.objects:
            return self.objects[view.buffer]
        return _Staged(self, view).array

    def staged(self, view: View) -> _Staged:
        """Return what a view shows, to be changed and written back."""
        return _Staged(self, view)

    def tell_words(self, kernel: LoopKernel) -> None:
        """Write the words of a loop where kernels read them."""
        for word in (kernel.index, kernel.half):
            if word in self.code.told:
                handle, start = self.handle(word)
                self.driver.write(handle, start, self.word(word).reshape(1))


class _Staged:
    """The elements of a view in an array of the host."""

    def __init__(self, run: _Run, view: View) -> None:
        self.run = run
        low, high = _reach(view)
        buffer, offset = behind_window(view.buffer, view.offset + low, run.word)
        self.handle, start = run.handle(buffer)
        self.start = start + int(offset) * buffer.dtype.itemsize
        self.flat = run.driver.read(self.handle, self.start, view.dtype, high - low)
        self.array = strided(self.flat, view.shape, view.strides, -low)

    def write(self) -> None:
        """Write the elements back."""
        if self.flat.size:
            self.run.driver.write(self.handle, self.start, self.flat)


def _reach(view: View) -> tuple[int, int]:
    """Return from where to where a view's elements lie, behind its beginning."""
    if 0 in view.shape:
        return 0, 0
    ends = [(size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True)]
    return sum(min(0, end) for end in ends), sum(max(0, end) for end in ends) + 1


# -- what the host drives --------------------------------------------------------------------------


def _run_loop(run: _Run, kernel: LoopKernel) -> None:
    def with_words(part: Sequence[Kernel]) -> None:
        run.tell_words(kernel)
        run.kernels(part)

    test, body = (partial(with_words, part) for part in (kernel.test, kernel.body))
    repeat(kernel, test if kernel.test else _nothing, body, run.read, run.word)
    run.tell_words(kernel)


def _nothing() -> None:
    return None


def _run_branch(run: _Run, kernel: BranchKernel) -> None:
    run.kernels(kernel.yes if run.read(kernel.chosen) else kernel.no)


def _run_together(run: _Run, kernel: TogetherKernel) -> None:
    for chain in kernel.chains:
        run.kernels(chain)


def _run_call(run: _Run, kernel: CallKernel) -> None:
    """Call an operator of the host, on operands that are brought over."""
    written = {
        id(view): run.staged(view) for view in kernel.outputs if view.buffer.kind != "object"
    }

    def read(view: View) -> Array:
        known = written.get(id(view))
        return run.read(view) if known is None else known.array

    call_operator(kernel, read, run.objects, run.sizes)
    for staged in written.values():
        staged.write()


_HOST: dict[type, Any] = {
    LoopKernel: _run_loop,
    BranchKernel: _run_branch,
    TogetherKernel: _run_together,
    CallKernel: _run_call,
}
