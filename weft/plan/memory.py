"""Lay out the memory of a program: what lies in the arena, and what each run passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ..core.dim import is_known
from ..lower.lifetimes import InChains, Lifetimes, lifetimes
from ..lower.memory import ARENA, CONSTANTS, NUMBERS, WORD, MemoryPlan, Place
from ..lower.program import KernelProgram
from ..lower.storage import Buffer, View
from .arena import ArenaBlock, ChainSpan, align, place_blocks
from .in_place import writes_in_place
from .row_commits import without_copies

Commit = tuple[int, View]  # a state by its number, and where its new value lies


def with_memory(program: KernelProgram) -> KernelProgram:
    """Return a program with places for all its buffers."""
    buffers = program.used_buffers
    order = InChains(program.kernels)
    handed = _handed_out(program)
    donated = _taken_from_feeds(program, handed, order)
    fresh = handed - set(donated)
    in_place = _in_place(program, handed, order)
    shared = {v.buffer: in_place[s] for s, v in program.commits if s in in_place}
    own = [b for b in buffers if b.kind == "arena" and b not in handed and b not in shared]
    copied = [(s, v) for s, v in program.commits if s not in in_place]
    numbers = _new_numbers(program, copied, own)
    outside = _outside_arena(program, buffers, fresh, set(in_place.values()))
    if program.is_sized:  # where it lies in the arena follows from the sizes of a run
        addressed = tuple(own)
        first = CONSTANTS + len(outside.constants) + 1
        arena = {b: Place(False, first + i) for i, b in enumerate(own)}
        arena_bytes = 0
    else:
        addressed = None
        together = [view.buffer for _, view in numbers]
        arena, arena_bytes = arena_places(own, together, when_alive(program))
    places = {**outside.places, **arena}
    places |= {buffer: places[taken] for buffer, taken in (*shared.items(), *donated.items())}
    _place_windows(buffers, places)
    plan = replace(
        outside,
        places=places,
        shared=shared,
        copied=tuple(pair for pair in copied if pair not in numbers),
        new_numbers=tuple(numbers),
        arena_bytes=arena_bytes,
        addressed=addressed,
        donated=donated,
    )
    return replace(without_copies(program, shared), memory=plan)


# -- what each run passes --------------------------------------------------------------------------


def _outside_arena(
    program: KernelProgram,
    buffers: Sequence[Buffer],
    fresh: Collection[Buffer],
    changed: Collection[Buffer],
) -> MemoryPlan:
    """Return the plan of what lies outside of the arena, which is empty."""
    feeds = {b.slot: b for b in buffers if b.kind == "feed"}
    used = tuple(i for i in range(program.feeds) if i in feeds)
    kept = [(b, program.states[b.slot]) for b in buffers if b.kind == "state"]
    kept.sort(key=lambda pair: pair[1].keeper)  # those of one keeper are read at once
    numbers = sorted((b for b, slot in kept if slot.number), key=lambda b: b.dtype.char)
    states = sorted((b for b, slot in kept if not slot.number), key=lambda b: b not in changed)
    made = tuple(b for b in buffers if b in fresh)
    constants = tuple(b for b in buffers if b.kind == "constant")
    arguments = (*(feeds[i] for i in used), *states, *made)
    return MemoryPlan(
        feeds=program.feeds,
        used_feeds=used,
        states=tuple(states),
        changed=len(changed),
        fresh=made,
        constants=constants,
        numbers=tuple(numbers),
        arguments=arguments,
        places=_entries(arguments, constants, numbers),
        shared={},
        copied=(),
        new_numbers=(),
        arena_bytes=0,
    )


def _entries(
    arguments: Iterable[Buffer], constants: Iterable[Buffer], numbers: Iterable[Buffer]
) -> dict[Buffer, Place]:
    """Return which entries of their tables buffers are."""
    places = {buffer: Place(True, i) for i, buffer in enumerate(arguments)}
    places |= {b: Place(False, CONSTANTS + i) for i, b in enumerate(constants)}
    return places | {b: Place(False, NUMBERS, i * WORD) for i, b in enumerate(numbers)}


def _handed_out(program: KernelProgram) -> set[Buffer]:
    """Return the buffers that are handed out as they are: each run makes them anew."""
    written = {view.buffer for _, view in program.commits}
    counts = Counter(view.buffer for view in program.fetches)
    return {
        view.buffer
        for view in program.fetches
        if view.buffer.kind == "arena"
        and view.buffer not in written
        and counts[view.buffer] == 1
        and view.whole
    }


# -- feeds that are given away -------------------------------------------------------------------


def _taken_from_feeds(
    program: KernelProgram, fresh: Collection[Buffer], order: InChains
) -> dict[Buffer, Buffer]:
    """Return the results that take the memory of feeds which the program may write over.

    As with states, that is done when nothing can fail any more: a run that fails is repeated from
    node to node, and says what was wrong.
    """
    wanted = {view.buffer for view in program.outputs}
    feeds = [b for b in program.buffers if b.slot in program.donated and b.kind == "feed"]
    results = [v for v in program.fetches if v.buffer in fresh and v.buffer in order.uses]
    found: dict[Buffer, Buffer] = {}
    for feed in (feed for feed in feeds if feed not in wanted and is_known(feed.shape)):
        for view in results:
            fits = is_known(view.shape) and view.buffer.nbytes == feed.nbytes
            if fits and view.buffer not in found and _may_take(view, feed, order):
                found[view.buffer] = feed
                break
    return found


def _may_take(view: View, feed: Buffer, order: InChains) -> bool:
    """Tell whether a result can be written over a feed that nobody reads any more then."""
    maker, uses = min(order.uses[view.buffer]), order.uses.get(feed, ())
    if maker in uses:
        return _may_replace(view, feed, order)
    free = all(order.is_before(at, maker) for at in (*uses, *order.failures))
    return free and view.whole and view.dtype == feed.dtype


# -- states that are changed in place --------------------------------------------------------------


def _in_place(
    program: KernelProgram, fresh: Collection[Buffer], order: InChains
) -> dict[int, Buffer]:
    """Return the states whose own memory can take their new values, and its buffers."""
    old = {b.slot: b for b in program.buffers if b.kind == "state"}
    wanted = {view.buffer for view in program.outputs}  # read when the run has ended
    written = Counter(view.buffer for _, view in program.commits)
    found: dict[int, Buffer] = {}
    for number, view in program.commits:
        buffer = old.get(number)
        if buffer is None or buffer in wanted or not program.states[number].held:
            continue
        alone = view.buffer.kind == "arena" and written[view.buffer] == 1
        if alone and view.buffer not in fresh and _may_replace(view, buffer, order):
            found[number] = buffer
    return found


def _may_replace(view: View, old: Buffer, order: InChains) -> bool:
    """Tell whether a new value can be written over an old one, when nothing can fail any more."""
    maker = min(order.uses[view.buffer])
    fits = view.whole and view.dtype == old.dtype
    before = [at for at in order.uses.get(old, ()) if at != maker]
    free = all(order.is_before(at, maker) for at in (*before, *order.failures))
    return fits and free and writes_in_place(order.kernels[maker], view, old)


# -- the arena -------------------------------------------------------------------------------------


def when_alive(program: KernelProgram) -> Lifetimes:
    """Return when buffers are alive: from kernel to kernel, what is wanted then to the end."""
    return lifetimes(program.kernels).until_the_end(view.buffer for view in program.outputs)


def arena_places(
    buffers: Sequence[Buffer], together: Sequence[Buffer], alive: Lifetimes
) -> tuple[dict[Buffer, Place], int]:
    """Return where buffers lie in the arena, some of them side by side, and its size."""
    beside = set(together)
    apart = [[b] for b in buffers if b not in beside]
    groups = [list(together), *apart] if together else apart
    placed = place_blocks([_block(group, alive) for group in groups])
    pairs = zip(groups, placed.offsets, strict=True)
    places = {b: Place(False, ARENA, o + i * WORD) for g, o in pairs for i, b in enumerate(g)}
    return places, placed.bytes


def _block(buffers: list[Buffer], alive: Lifetimes) -> ArenaBlock:
    """Return the memory of a buffer, or of several numbers side by side."""
    if len(buffers) == 1:
        return arena_block(buffers[0], alive, align(max(1, buffers[0].nbytes)))
    spans = [alive.spans.get(buffer, (0, 0)) for buffer in buffers]
    birth, death = min(birth for birth, _ in spans), max(death for _, death in spans)
    return ArenaBlock(align(len(buffers) * WORD), birth, death)


def arena_block(buffer: Buffer, alive: Lifetimes, nbytes: int) -> ArenaBlock:
    """Return a buffer as so many bytes of the arena, alive when it is."""
    part = alive.chains.get(buffer)
    chain = None if part is None else ChainSpan(part.number, part.start, part.end)
    return ArenaBlock(nbytes, *alive.spans.get(buffer, (0, 0)), chain)


def _new_numbers(
    program: KernelProgram, copied: Sequence[Commit], arena: Sequence[Buffer]
) -> list[Commit]:
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


# -- windows ---------------------------------------------------------------------------------------


def _place_windows(buffers: Iterable[Buffer], places: dict[Buffer, Place]) -> None:
    for buffer in buffers:
        if buffer.kind == "window":
            _place_window(buffer, places)


def _place_window(buffer: Buffer, places: dict[Buffer, Place]) -> Place:
    """Add where a window lies to the places of what is behind it."""
    known = places.get(buffer)
    if known is None:
        window, size = buffer.window, buffer.dtype.itemsize
        assert window is not None, f"{buffer} has no place"
        base = _place_window(window.buffer, places)
        moves = (*base.moves, (places[window.word], window.step * size))
        known = Place(base.is_argument, base.entry, base.offset + window.offset * size, moves)
        places[buffer] = known
    return known
