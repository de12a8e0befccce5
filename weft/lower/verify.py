"""Verify kernel programs: what every back end may rely on.

Run between all stages by tests, and where the environment sets WEFT_VERIFY=1.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import count
from typing import NoReturn

from ..core.dim import leaving_open, may_equal
from .checks import VerificationError, Verifier
from .kernels import Control, Kernel, LoopKernel, TogetherKernel, buffers_of, walk
from .program import KernelProgram, Sources
from .storage import Buffer, View, buffers_behind
from .verify_plan import verify_memory, verify_schedule

__all__ = ["VerificationError", "verified", "verify"]

KINDS = ("arena", "feed", "constant", "state", "window", "object")


def verify(program: KernelProgram, sources: Sources | None = None) -> None:
    """Raise VerificationError if a program breaks a rule; the message names the kernel."""
    with leaving_open():
        _Program(program, sources).verify()


def verified(program: KernelProgram, sources: Sources | None = None) -> KernelProgram:
    """Return a program; verify it first where WEFT_VERIFY is set."""
    if os.environ.get("WEFT_VERIFY", "") not in ("", "0"):
        verify(program, sources)
    return program


class _Program:
    """A program that is verified, kernel by kernel in the order in which they run."""

    def __init__(self, program: KernelProgram, sources: Sources | None) -> None:
        self.program = program
        self.sources = sources
        self.check = Verifier(program)
        self.numbers = count()
        self.writers: dict[Buffer, str] = {}  # who wrote to memory last
        self.recent: set[Buffer] = set()  # what was written since this list of kernels began

    def verify(self) -> None:
        """Check everything."""
        self._kernels(self.program.kernels)
        self._check_buffers()
        self._check_slots()
        self._check_outputs()
        if self.program.memory is not None:
            verify_memory(self.program, self.program.memory, self._blame)
        if self.program.schedule is not None:
            verify_schedule(self.program, self.program.schedule, self._blame)

    # -- kernels -----------------------------------------------------------------------------------

    def _kernels(self, kernels: Iterable[Kernel]) -> None:
        for kernel in kernels:
            self._kernel(kernel)

    def _kernel(self, kernel: Kernel) -> None:
        check = self.check
        if isinstance(kernel, LoopKernel):
            last = None if kernel.length is None else (0, kernel.length - 1)
            check.words |= {kernel.index: last, kernel.half: (0, 1)}
        check.check(kernel, next(self.numbers))
        where = check.where
        if self.sources is not None and any(n >= len(self.sources.nodes) for n in kernel.origins):
            check.fail(f"its origins are no nodes: {kernel.origins}")
        views = kernel.views
        if isinstance(kernel, Control):
            self._control(kernel, where)
            return
        for i in kernel.read:
            self._read(views[i])
        self._write(views[i] for i in kernel.written)

    def _control(self, kernel: Control, where: str) -> None:
        """Check the kernels inside, of which a loop runs the test first, and a branch one list."""
        if isinstance(kernel, TogetherKernel):
            self._together(kernel, where)
            return
        if isinstance(kernel, LoopKernel):
            self._write([*kernel.words, *kernel.room])
            self._kernels(kernel.test)
            self._read_all([kernel.holds], where)
            self._kernels(kernel.body)
            self._read_all([kernel.stops], where)
            return
        self._read(kernel.chosen)
        before, recent = dict(self.writers), self.recent
        for part in kernel.parts:
            self.writers, self.recent = dict(before), set()
            self._kernels(part)
            self.check.where = where
            results = {buffers_behind(view.buffer)[0] for view in kernel.results}
            for buffer in results - self.recent:
                if buffer.size != 0:
                    self.check.fail(f"does not write {buffer}, a result, on both ways")
            recent |= self.recent
        self.recent = recent

    def _together(self, kernel: TogetherKernel, where: str) -> None:
        """Check chains: each sees what was there before them, and what it has written itself."""
        before, recent, after = dict(self.writers), set(self.recent), dict(self.writers)
        touched = [{b for k in chain for b in _held(buffers_of(k))} for chain in kernel.chains]
        for i, chain in enumerate(kernel.chains):
            self.writers, self.recent = dict(before), set()
            self._kernels(chain)
            self.check.where = where
            for other in (others for k, others in enumerate(touched) if k != i):
                for buffer in self.recent & other:
                    self.check.fail(f"writes {buffer} in one chain, which another touches")
            after |= self.writers
            recent |= self.recent
        self.writers, self.recent = after, recent

    def _read_all(self, views: Iterable[View | None], where: str) -> None:
        self.check.where = where
        for view in views:
            if view is not None:
                self._read(view)

    def _read(self, view: View) -> None:
        for buffer in buffers_behind(view.buffer):
            if buffer.kind == "arena" and buffer not in self.writers and buffer.size != 0:
                self.check.fail(f"reads {buffer}, which nothing has written")

    def _write(self, views: Iterable[View]) -> None:
        for view in views:
            (buffer, *_) = buffers_behind(view.buffer)
            self.writers[buffer] = self.check.where
            self.recent.add(buffer)

    # -- the program -------------------------------------------------------------------------------

    def _blame(self, part: Buffer | Kernel, message: str) -> NoReturn:
        """Refuse the program for a buffer or a kernel."""
        if isinstance(part, Buffer):
            self._near(part)
        else:
            numbers = {id(kernel): i for i, kernel in enumerate(walk(self.program.kernels))}
            self.check.where = f"kernel {numbers.get(id(part))} ({part.kind} {part.name})"
        self.check.fail(message)

    def _near(self, buffer: Buffer) -> None:
        """Say in messages which kernel has to do with a buffer."""
        (behind, *_) = buffers_behind(buffer)
        self.check.where = self.writers.get(behind) or self._reader(behind)

    def _reader(self, buffer: Buffer) -> str:
        for number, kernel in enumerate(walk(self.program.kernels)):
            if any(buffer in (v.buffer, *buffers_behind(v.buffer)) for v in kernel.views):
                return f"kernel {number} ({kernel.kind} {kernel.name})"
        return "the program"

    def _check_buffers(self) -> None:
        """Check numbers and kinds of buffers, and which slots they stand for."""
        program, check = self.program, self.check
        counts = {"feed": program.feeds, "state": len(program.states)}
        constants = sum(buffer.kind == "constant" for buffer in program.buffers)
        for i, buffer in enumerate(program.buffers):
            self._near(buffer)
            if buffer.number != i or buffer.kind not in KINDS:
                check.fail(f"{buffer} is buffer {i} of the program, of kind {buffer.kind!r}")
            check.sizes(buffer.shape, f"{buffer}")
            slots = constants if buffer.kind == "constant" else counts.get(buffer.kind, 0)
            if (buffer.slot >= slots) if slots else (buffer.slot != -1):
                check.fail(f"{buffer} has slot {buffer.slot} of {slots}")

    def _check_slots(self) -> None:
        """Check that each constant has a slot of its own, and states are as they are declared."""
        slots: set[tuple[str, int]] = set()
        for buffer in self.program.buffers:
            self._near(buffer)
            key = (buffer.kind, buffer.slot)
            if buffer.slot >= 0 and key in slots and buffer.kind != "state":
                self.check.fail(f"two buffers are {buffer.kind} {buffer.slot}")
            slots.add(key)
            if buffer.kind == "state":
                slot = self.program.states[buffer.slot]
                self.check.dtype(buffer.dtype, slot.dtype, f"{buffer}")
                if not _same(buffer.shape, slot.shape):
                    self.check.fail(f"{buffer} is not of shape {slot.shape}")

    def _check_outputs(self) -> None:
        """Check what is read after the last kernel."""
        program, check = self.program, self.check
        for view in program.outputs:
            self._near(view.buffer)
            check.buffer(view.buffer)
            check.view(view, "an output")
            self._read(view)
        written = [number for number, _ in program.commits]
        for number, view in program.commits:
            self._near(view.buffer)
            if not 0 <= number < len(program.states) or written.count(number) > 1:
                check.fail(f"commits {len(program.states)} states: {written}")
            slot = program.states[number]
            check.dtype(view.dtype, slot.dtype, f"the new value of {slot.name}")
            if not _same(view.shape, slot.shape):
                check.fail(f"the new value of {slot.name} has shape {view.shape}")


def _held(buffers: Iterable[Buffer]) -> set[Buffer]:
    """Return the memory of buffers: of windows, what they are part of."""
    return {part for buffer in buffers for part in buffers_behind(buffer)}


def _same(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    return len(a) == len(b) and all(map(may_equal, a, b))
