"""Lay out the memory of a program: what lies in the arena, and what each run brings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ....lower.in_place import writes_in_place
from ....lower.kernels import calls_library, may_fail
from ....lower.lifetimes import Lifetimes, lifetimes, uses_of
from ....lower.program import KernelProgram
from ....lower.storage import Buffer, View
from ....passes.arena import Block, align, place_blocks
from ..codegen.program import ARENA, CONSTANTS, NUMBERS
from ..codegen.regions import Place
from .calls import ArraySpec
from .driving import place_window

WORD = 8  # bytes of a number


class Layout:
    """Which buffer lies where: in the arena, or behind an entry of the table."""

    def __init__(self, program: KernelProgram) -> None:
        self.places: dict[Buffer, Place] = {}
        buffers = program.used_buffers
        fetched, written = program.fetches, program.commits
        self.fresh_set = _fetch_buffers(fetched, written)
        self.in_place_of = self._in_place(program)
        self.in_place = set(self.in_place_of.values())
        self.shares = {v.buffer: self.in_place_of[s] for s, v in written if s in self.in_place_of}
        arena = [
            b
            for b in buffers
            if b.kind == "arena" and b not in self.fresh_set and b not in self.shares
        ]
        self.constants = [b for b in buffers if b.kind == "constant"]
        feeds = {b.slot: b for b in buffers if b.kind == "feed"}
        self.feeds = program.feeds
        self.used_feeds = [i for i in range(program.feeds) if i in feeds]
        kept = [(b, program.states[b.slot]) for b in buffers if b.kind == "state"]
        kept.sort(key=lambda pair: pair[1].keeper)  # those of one keeper are read at once
        numbers = [b for b, slot in kept if slot.number]
        self.numbers = sorted(numbers, key=lambda b: b.dtype.char)
        states = [b for b, slot in kept if not slot.number]
        self.states = sorted(states, key=lambda b: b not in self.in_place)
        self.fresh = [b for b in buffers if b in self.fresh_set]
        given = [feeds[i] for i in self.used_feeds]
        self.first_state = len(given)
        self.brought = [*given, *self.states, *self.fresh]
        for i, buffer in enumerate(self.brought):
            self.places[buffer] = Place(True, i)
        for i, buffer in enumerate(self.constants):
            self.places[buffer] = Place(False, CONSTANTS + i)
        for i, buffer in enumerate(self.numbers):
            self.places[buffer] = Place(False, NUMBERS, i * WORD)
        copied = [(s, v) for s, v in written if s not in self.in_place_of]
        self.new_numbers = _new_numbers(program, copied, arena)
        self.copied = [pair for pair in copied if pair not in self.new_numbers]
        ends = {view.buffer for view in (*fetched, *(v for _, v in written))}
        self.arena_bytes = self._place_arena(program, arena, ends)
        for buffer, state in self.shares.items():
            self.places[buffer] = self.places[state]
        for buffer in (b for b in buffers if b.kind == "window"):
            place_window(buffer, self.places)
        self.has_library = any(map(calls_library, program.kernels))
        self.fetched = [
            (v, self.places[v.buffer].entry if v.buffer in self.fresh_set else None)
            for v in fetched
        ]

    def in_arena(self) -> list[tuple[Buffer, int]]:
        """Return the buffers that have memory of their own in the arena, and where it begins."""
        arena = [
            (b, p)
            for b, p in self.places.items()
            if b.kind == "arena" and not p.brought and p.entry == ARENA
        ]
        return [(buffer, place.offset) for buffer, place in arena]

    def specs(self) -> list[ArraySpec]:
        """Return what the code demands of the arrays that each run brings."""
        return [
            ArraySpec(
                buffer.dtype,
                buffer.shape,
                writeable=buffer in self.in_place or buffer in self.fresh_set,
                owner=buffer in self.in_place,
            )
            for buffer in self.brought
        ]

    @property
    def state_slots(self) -> list[int]:
        """Return which states a run reads as arrays, those first that it changes in place."""
        return [buffer.slot for buffer in self.states]

    def _in_place(self, program: KernelProgram) -> dict[int, Buffer]:
        """Return the states whose own memory can take their new values, and its buffers."""
        kernels, written = program.kernels, program.commits
        uses = uses_of(kernels)
        old = {b.slot: b for b in program.buffers if b.kind == "state"}
        last_failure = max((i for i, k in enumerate(kernels) if may_fail(k)), default=-1)
        wanted = {view.buffer for view in program.outputs}
        found: dict[int, Buffer] = {}
        for state, view in written:
            buffer = old.get(state)
            if buffer is None or view.buffer.kind != "arena" or view.buffer in self.fresh_set:
                continue
            if not program.states[state].held:
                continue
            maker = min(uses[view.buffer])
            fits = view.whole and view.dtype == buffer.dtype
            free = max(uses.get(buffer, [-1])) <= maker and maker > last_failure
            alone = sum(v.buffer is view.buffer for _, v in written) == 1
            if buffer in wanted:  # the old value is read when the run has ended
                continue
            if fits and free and alone and writes_in_place(kernels[maker], view, buffer):
                found[state] = buffer
        return found

    def _place_arena(self, program: KernelProgram, buffers: list[Buffer], ends: set[Buffer]) -> int:
        """Find places for what lies in the arena; `ends` are read when a run has ended."""
        together = [view.buffer for _, view in self.new_numbers]
        apart = [[b] for b in buffers if b not in set(together)]
        groups = [together, *apart] if together else apart
        alive = lifetimes(program.kernels)
        placed = place_blocks([_block(group, alive, ends) for group in groups])
        for group, offset in zip(groups, placed.offsets, strict=True):
            for i, buffer in enumerate(group):
                self.places[buffer] = Place(False, ARENA, offset + i * WORD)
        return placed.bytes


def _block(buffers: list[Buffer], alive: Lifetimes, ends: set[Buffer]) -> Block:
    """Return the memory of a buffer, or of several numbers side by side."""
    spans = [alive.spans.get(buffer, (0, 0)) for buffer in buffers]
    last = alive.end if ends.intersection(buffers) else max(death for _, death in spans)
    size = buffers[0].nbytes if len(buffers) == 1 else len(buffers) * WORD
    return Block(align(max(1, size)), min(birth for birth, _ in spans), last)


def _new_numbers(
    program: KernelProgram, copied: list[tuple[int, View]], arena: list[Buffer]
) -> list[tuple[int, View]]:
    """Return the numbers that a run leaves in memory of their own, in the order of their keepers.

    They lie side by side: hundreds of step counters are read at once.
    """
    read = Counter(view.buffer for view in (*program.fetches, *(view for _, view in copied)))
    own = {buffer for buffer in arena if read[buffer] == 1 and buffer.nbytes <= WORD}
    states = program.states
    found = [(s, v) for s, v in copied if states[s].number and v.buffer in own and v.whole]
    keepers: dict[int, int] = {}  # in the order of first use
    for s, _ in found:
        keepers.setdefault(states[s].keeper, len(keepers))
    found.sort(key=lambda pair: keepers[states[pair[0]].keeper])
    return sorted(found, key=lambda pair: pair[1].dtype.char)


def _fetch_buffers(fetched: Sequence[View], written: Sequence[tuple[int, View]]) -> set[Buffer]:
    """Return the buffers that are handed out as they are: each run makes them anew."""
    states = {view.buffer for _, view in written}
    counts: dict[Buffer, int] = {}
    for view in fetched:
        counts[view.buffer] = counts.get(view.buffer, 0) + 1
    return {
        view.buffer
        for view in fetched
        if view.buffer.kind == "arena"
        and view.buffer not in states
        and counts[view.buffer] == 1
        and view.whole
    }
