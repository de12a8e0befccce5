"""Plan a program for many sizes for those of a run: where its buffers lie, who calls kernels.

Such a program is planned twice. What does not depend on sizes is decided once, when its code is
written: which kernels there are, what is written in place, which of them can run at a time. What
does (where in the arena buffers lie, in how many chunks a kernel is done) is found for each new
combination of sizes, by the same rules as for programs of known sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..core.dim import Dim, SizeVar
from ..lower.at_sizes import AtSizes, has_sizes
from ..lower.kernels import Kernel, buffers_of, walk
from ..lower.lifetimes import Lifetimes
from ..lower.memory import MemoryPlan, Place
from ..lower.program import KernelProgram
from ..lower.schedule import (
    BranchCalls,
    Holding,
    LoopCalls,
    Piece,
    Region,
    RunSchedule,
    TogetherCalls,
)
from ..lower.storage import Buffer
from .device import Work
from .memory import arena_places
from .threads import divided
from .times import call_time

Told = dict[SizeVar, int]


class Bound(NamedTuple):
    """A program for many sizes, planned for some.

    program   with numbers in the place of sizes
    told      the sizes, and how regions are divided
    kernels   of the program for many sizes, and what became of them
    found     where code finds buffers: by addresses, where the program has a place in the arena
    """

    program: KernelProgram
    told: Told
    kernels: dict[int, Kernel]
    found: Mapping[Buffer, Place]


# Returns the work of a kernel of a program for many sizes, which is given at those of a run too.
WorkAt = Callable[[Kernel, Kernel, AtSizes], Work]


class SizedPlan:
    """What is known about a program for many sizes before any of them is."""

    def __init__(self, program: KernelProgram, threads: int) -> None:
        assert program.memory is not None, "memory is planned"
        assert program.schedule is not None, "who calls kernels is planned"
        self.program, self.threads = program, threads
        self.memory, self.schedule = program.memory, program.schedule
        self._alive = _spans_by_region(program, self.schedule)
        self._known = {id(k) for k in walk(program.kernels) if not has_sizes(k)}
        self._works: dict[int, Work] = {}  # of kernels that have no sizes

    def bind(self, sizes: Mapping[SizeVar, int], work: WorkAt) -> Bound:
        """Return the program for given sizes."""
        at = AtSizes(sizes, self.program.buffers, self._known)

        def work_at(kernel: Kernel, known: Kernel, at: AtSizes) -> Work:
            if kernel is not known:
                return work(kernel, known, at)
            if id(kernel) not in self._works:
                self._works[id(kernel)] = work(kernel, known, at)
            return self._works[id(kernel)]

        divisions = _Division(at, self.threads, work_at)
        schedule = divisions.schedule(self.schedule)
        program = replace(
            self.program,
            kernels=at.part(self.program.kernels),
            buffers=at.buffers,
            fetches=at.part(self.program.fetches),
            commits=at.part(self.program.commits),
            flag=at.part(self.program.flag),
            memory=self._memory(at),
            schedule=schedule,
        )
        found = {at.buffer(b): at.part(place) for b, place in self.memory.places.items()}
        return Bound(program, {**sizes, **divisions.told}, divisions.kernels, found)

    def _memory(self, at: AtSizes) -> MemoryPlan:
        """Return where everything lies: the rest in the arena that has no entry of its own."""
        old = self.memory
        assert old.addressed is not None, "its sizes are those of runs"
        own = [at.buffer(buffer) for buffer in old.addressed]
        spans = {at.buffer(b): span for b, span in self._alive.spans.items()}
        alive = replace(self._alive, spans=spans)
        new_numbers = at.part(old.new_numbers)
        arena, size = arena_places(own, [view.buffer for _, view in new_numbers], alive)
        places = {at.buffer(b): at.part(place) for b, place in old.places.items()}
        places |= arena
        for buffer, place in places.items():
            if place.moves:
                places[buffer] = _in_arena(place, buffer, places)
        shared = {at.buffer(a): at.buffer(b) for a, b in old.shared.items()}
        donated = {at.buffer(a): at.buffer(b) for a, b in old.donated.items()}
        changed = {
            name: at.part(getattr(old, name))
            for name in ("states", "fresh", "constants", "numbers", "arguments", "copied")
        }
        return replace(
            old,
            **changed,
            places=places,
            shared=shared,
            new_numbers=new_numbers,
            arena_bytes=size,
            addressed=tuple(own),
            donated=donated,
        )


def _in_arena(place: Place, buffer: Buffer, places: Mapping[Buffer, Place]) -> Place:
    """Return where a window lies, by where all that is behind it does."""
    window = buffer.window
    assert window is not None, f"{buffer} does not move"
    base = places[window.buffer]
    if base.moves:
        base = _in_arena(base, window.buffer, places)
    size = buffer.dtype.itemsize
    moves = (*base.moves, (places[window.word], window.step * size))
    return Place(base.is_argument, base.entry, base.offset + window.offset * size, moves)


class _Division:
    """Divides the regions of a schedule among threads, for given sizes."""

    def __init__(self, at: AtSizes, threads: int, work: WorkAt) -> None:
        self.at, self.threads, self.work = at, threads, work
        self.told: Told = {}
        self.kernels: dict[int, Kernel] = {}

    def schedule(self, schedule: RunSchedule) -> RunSchedule:
        stretches = tuple(tuple(map(self._call, calls)) for calls in schedule.stretches)
        return RunSchedule(tuple(map(self._call, schedule.steps)), stretches)

    def _call(self, call: Any) -> Any:
        if isinstance(call, str):
            return call
        if isinstance(call, Region):
            return self._region(call)
        if isinstance(call, LoopCalls):
            parts = (tuple(map(self._call, calls)) for calls in (call.test, call.body))
            return LoopCalls(self.at.part(call.kernel), *parts)
        if isinstance(call, BranchCalls):
            parts = (tuple(map(self._call, calls)) for calls in (call.yes, call.no))
            return BranchCalls(self.at.part(call.kernel), *parts)
        if isinstance(call, TogetherCalls):
            return self._together(call)
        return self.at.part(call)

    def _together(self, call: TogetherCalls) -> TogetherCalls:
        """Return chains side by side, or one after another if kernels profit more from threads."""
        kernel, threads = self.at.part(call.kernel), self.threads
        in_turn = TogetherCalls(kernel, self._chains(call), parallel=False)
        self.threads = 1
        made = TogetherCalls(kernel, self._chains(call), parallel=True)
        self.threads = threads
        if call_time(in_turn, threads) <= call_time(made, threads):
            made = TogetherCalls(kernel, self._chains(call), parallel=False)
        self._tell(call.parallel, int(made.parallel))
        return made

    def _chains(self, call: TogetherCalls) -> tuple[tuple[Any, ...], ...]:
        return tuple(tuple(map(self._call, chain)) for chain in call.chains)

    def _region(self, region: Region) -> Region:
        pieces = [self._piece(piece) for piece in region.pieces]
        made = divided(pieces, self.threads)
        by_kernel = {id(piece.kernel): piece for piece in made.pieces}
        ordered = [by_kernel[id(piece.kernel)] for piece in pieces]
        for open_, piece in zip(region.pieces, ordered, strict=True):
            self._tell(open_.units, piece.units)
            self._tell(open_.chunks, piece.chunks)
        self._tell(region.parallel, int(made.parallel))
        return Region(tuple(ordered), made.parallel)

    def _piece(self, piece: Piece) -> Piece:
        kernel = self.at.kernel(piece.kernel)
        self.kernels[id(piece.kernel)] = kernel
        work = self.work(piece.kernel, kernel, self.at)
        return Piece(kernel, tuple(kernel.views), piece.written, work.units, work.chunks, work.cost)

    def _tell(self, word: Any, number: Any) -> None:
        variable = word.variable() if isinstance(word, Dim) else None
        assert variable is not None, "how it is divided is left open"
        self.told[variable] = number


def _spans_by_region(program: KernelProgram, schedule: RunSchedule) -> Lifetimes:
    """Return when buffers are alive, counted in regions, whose kernels run at the same time."""
    found: dict[Buffer, tuple[int, int]] = {}
    end = 0
    for end, touched in enumerate(_touched(schedule)):
        for buffer in touched:
            found[buffer] = (found.get(buffer, (end, end))[0], end)
    for view in program.outputs:
        found[view.buffer] = (found.get(view.buffer, (0, 0))[0], end + 1)
    return Lifetimes(found, end + 1, {})


def _touched(schedule: RunSchedule) -> Iterator[list[Buffer]]:
    """Yield the buffers that one region after another touches, or control flow as a whole."""
    names = dict(zip(schedule.names, schedule.stretches, strict=True))
    for step in schedule.steps:
        for call in names[step] if isinstance(step, str) else (step,):
            yield _buffers_in(call)


def _buffers_in(call: Any) -> list[Buffer]:
    kernels = [p.kernel for p in call.pieces] if isinstance(call, Region) else [call]
    if isinstance(call, Holding):
        kernels = [call.kernel]
    return [buffer for kernel in kernels for buffer in buffers_of(kernel)]
