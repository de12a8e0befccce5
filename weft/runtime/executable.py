"""Executables: a graph as machine code, with its memory.

A run calls the native functions in order on the arrays it was given, with calls of reference
kernels between them where an operator has no lowering, and writes the states at the end.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from sys import getrefcount
from threading import Lock
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..codegen.gemm import give_scratch
from ..codegen.program import ARENA, CONSTANTS, ProgramText, write_program
from ..codegen.regions import Place
from ..codegen.target import Target, host
from ..core.dispatch import canonical
from ..core.errors import IndexOutOfRange
from ..core.locks import fork_safe_lock
from ..core.shape import Shape
from ..core.threads import get_num_threads
from ..graph.graph import Graph
from ..graph.node import resolve_attrs
from ..graph.run import Sizes, bind_sizes, has_unknown_sizes
from ..graph.state import State
from ..lower.dynamic import OBJECT, is_dynamic
from ..lower.in_place import writes_in_place
from ..lower.kernels import LibraryKernel, calls_library, may_fail
from ..lower.lifetimes import lifetimes, uses_of
from ..lower.lowering import Lowered
from ..lower.storage import Buffer, View
from ..passes.arena import Block, align, place_blocks
from .arena import aligned_empty
from .buffers import pooled_empty
from .calls import ArraySpec, Entry, make_entry
from .clock import clock_symbols
from .driving import behind_window, drive, place_window
from .inspection import Inspection
from .native import link
from .objects import object_code
from .threads import pool_symbols
from .timing import Timing

Array = np.ndarray[Any, Any]

# Held while a program that writes states runs, from its reading them to its writing them, and while
# another one looks up the arrays of those it reads. Whoever holds an array is safe afterwards: what
# others see is not written to. A fork waits for it, so that a child has no half of an update.
_states = fork_safe_lock()


class Executable(Inspection):
    """A static graph, compiled. Its outputs are the fetches, then the new values of states."""

    timing: Timing | None = None  # takes the times of kernels, in the copy that a profile runs

    def __init__(
        self,
        graph: Graph,
        fetches: int,
        commits: Sequence[State],
        target: Target | None = None,
        *,
        own_arena: bool = True,
    ) -> None:
        self.graph = graph
        self._lock = _states if commits else Lock()
        self.target = host() if target is None else target
        self.lowered = Lowered(graph)
        self.lowered.copies += give_scratch(self.lowered.kernels, self.target, get_num_threads())
        self.fetches = fetches
        self.own_arena = own_arena  # else every call of `entry` is lent one, and nothing else runs
        self.commits = list(commits)
        self.outputs = self.lowered.outputs
        self.layout = _Layout(self.lowered, self.outputs[:fetches], self._written())
        self.text: ProgramText = write_program(
            self.lowered.kernels, self.layout.places, self.target
        )
        self._load()
        _alive.add(self)

    def _written(self) -> list[tuple[State, View]]:
        return list(zip(self.commits, self.outputs[self.fetches :], strict=True))

    def _load(self) -> None:
        timing = self.timing
        modules = self.text.modules if timing is None else timing.modules
        objects = [object_code(text, self.target) for text in modules.values()]
        names = self.text.entries
        layout = self.layout
        self.arena: Array = aligned_empty(max(64, layout.arena_bytes) if self.own_arena else 64)
        self._arrays: dict[Buffer, Array] = {}
        self._views: dict[View, Array] = {}
        self._objects: dict[Buffer, Array] = {}  # whose shapes only a run can tell
        self._sizes: Sizes = {}
        constants = [np.ascontiguousarray(buffer.source) for buffer in layout.constants]
        self._counter: Array = np.zeros(1, np.int64)
        self._runs = 0
        self._complete = False
        self._ends_native = bool(names) and self.text.steps[-1] is names[-1]
        records = [] if timing is None else [timing.record]
        memory = [self.arena, self._counter, *constants, *records]
        self.memory: Array = np.array([array.ctypes.data for array in memory], np.uint64)
        self._arrays.update(zip(layout.constants, constants, strict=True))
        for buffer, place in layout.places.items():
            arena = not place.brought and place.entry == ARENA
            if self.own_arena and arena and not place.moves:
                part = self.arena[place.offset : place.offset + buffer.nbytes]
                self._arrays[buffer] = part.view(buffer.dtype)
        copied = [(s, v, layout.places[v.buffer].brought) for s, v in layout.copied]
        self._own_results = [(s, self._view(v)) for s, v, brought in copied if not brought]
        self._other_results = [(s, v) for s, v, brought in copied if brought]
        self._entries: dict[str, Entry] = {}
        if names:
            library = link(objects, names, pool_symbols() | clock_symbols())
            specs = layout.specs()
            for name in names:
                self._entries[name] = make_entry(
                    library.address(name),
                    specs,
                    context=self.memory.ctypes.data,
                    exclusive=self.own_arena,
                    keep=(library, self.memory, memory),
                )

    # -- running -----------------------------------------------------------------------------------

    def run(self, feeds: Sequence[Array]) -> list[Array]:
        """Run on arrays of the shapes it was compiled for; return the fetches."""
        with self._lock:
            return self._run(feeds)

    def _run(self, feeds: Sequence[Array]) -> list[Array]:
        layout = self.layout
        held = [state.read() for state in layout.changed]
        states = held if _are_alone(held) else _parted(held)
        with _states:
            only_read = [state.read() for state in layout.only_read]
        brought = self._brought(feeds, [*states, *only_read])
        try:
            self._take_steps(brought)
            fetched = self._fetched(brought)
            self._commit(held, brought)
        except BaseException:
            if self._ended():  # an interrupt came too late to leave all states as they were
                self._commit(held, brought)
            raise
        finally:
            self._let_go()
        return fetched

    @property
    def entry(self) -> Entry | None:
        """The native function, if a run is only a call of it, on what `layout.brought` names.

        None where a run does more: calls reference kernels, reads states, or copies fetches.
        """
        layout, steps = self.layout, self.text.steps
        plain = len(steps) == 1 and isinstance(steps[0], str) and not layout.states
        made = all(view.buffer in layout.fresh_set for view in self.outputs)
        return self._entries[steps[0]] if plain and made else None

    def lend_arena(self, arena: Array) -> None:
        """Let the calls of `entry` that follow compute in given memory."""
        self.memory[ARENA] = arena.__array_interface__["data"][0]

    def _execute(self, feeds: Sequence[Array], states: Sequence[Array]) -> None:
        """Run all kernels on feeds and states; those updated in place are written to."""
        try:
            self._take_steps(self._brought(feeds, states))
        finally:
            self._let_go()

    def _brought(self, feeds: Sequence[Array], states: Sequence[Array]) -> list[Array]:
        """Return all arrays that the code takes."""
        fresh = [pooled_empty(b.shape, b.dtype) for b in self.layout.fresh]
        return [*(feeds[i] for i in self.layout.used_feeds), *states, *fresh]

    def _take_steps(self, brought: list[Array]) -> None:
        if self.layout.has_library:
            self._arrays.update(zip(self.layout.brought, brought, strict=True))
        self._take(self.text.steps, brought)
        self._complete = True

    def _take(self, steps: Sequence[Any], brought: list[Array]) -> None:
        """Run native functions and what Python calls, in order."""
        for step in steps:
            if isinstance(step, str):
                self._call_native(self._entries[step], brought)
                self._check_indices()
            elif not isinstance(step, LibraryKernel):
                drive(step, partial(self._take, brought=brought), self._view, self._word)
            elif self.timing is None:
                self._call_library(step)
            else:
                with self.timing.library_call(step):
                    self._call_library(step)

    def _word(self, buffer: Buffer) -> Array:
        """Return a number in memory that windows move with."""
        return self._arrays[buffer].reshape(())

    def _let_go(self) -> None:
        """Be ready for another run; nobody but their owners may hold the arrays of this one."""
        self._runs = self._counter.item()
        self._complete = False
        self._objects.clear()
        self._sizes.clear()
        if self.layout.has_library:
            for buffer in self.layout.brought:
                self._arrays.pop(buffer, None)

    def _call_native(self, entry: Entry, brought: list[Array]) -> None:
        """Run native code; arrays that do not suit it are replaced by copies."""
        while (wrong := entry(tuple(brought))) is not None:
            assert wrong >= 0, "a program runs one call at a time"
            buffer = self.layout.brought[wrong]
            suited = np.array(brought[wrong], buffer.dtype, order="C").reshape(buffer.shape)
            brought[wrong] = suited
            if self.layout.has_library:
                self._arrays[buffer] = suited

    def _ended(self) -> bool:
        """Tell whether all steps were taken; an interrupt may hide that the last has returned."""
        return self._complete or (self._ends_native and self._counter.item() != self._runs)

    def _fetched(self, brought: list[Array]) -> list[Array]:
        """Return the fetches: arrays made for them, or copies of what the arena holds."""
        return [
            self._read(view, brought).copy()
            if entry is None
            else _shaped(brought[entry], view.shape)
            for view, entry in self.layout.fetched
        ]

    def _commit(self, held: list[Array], brought: list[Array]) -> None:
        """Write the states; those changed in place are written already."""
        layout = self.layout
        # A number is read off at once: no copy of the memory it lies in is needed.
        copies = [(s, a if s.number else a.copy()) for s, a in self._own_results]
        copies += [(s, self._read(view, brought).copy()) for s, view in self._other_results]
        changed = brought[layout.first_state :]
        for state, old, new in zip(layout.changed, held, changed, strict=False):
            if new is not old:
                state.write(new)
        for state, array in copies:
            state.write(array)

    def _read(self, view: View, brought: list[Array]) -> Array:
        """Return the value of a view when the code has run."""
        place = self.layout.places.get(view.buffer)
        if place is None or not place.brought:
            return self._view(view)
        return _seen(brought[place.entry], view)

    def _check_indices(self) -> None:
        """Raise if code met an index out of range; no state has changed then.

        Which index it was the interpreter tells, which repeats what fails.
        """
        if self.met_bad_index():
            raise IndexOutOfRange("an index is out of range")

    def met_bad_index(self) -> bool:
        """Tell whether the last run met an index out of range; then forget it."""
        flag = self.lowered.flag
        if flag is None or not flag.buffer.source[0]:
            return False
        flag.buffer.source[0] = 0
        return True

    def _view(self, view: View) -> Array:
        """Return a view as an array; those of the program's own memory are made once."""
        if view.buffer.kind == OBJECT:
            return self._objects[view.buffer]
        known = self._views.get(view)
        if known is None:
            known = self._new_view(view)
            place = self.layout.places[view.buffer]
            if not place.brought and not place.moves:
                self._views[view] = known
        return known

    def _new_view(self, view: View) -> Array:
        buffer, offset = behind_window(view.buffer, view.offset, self._word)
        array = self._arrays[self.layout.shares.get(buffer, buffer)]
        return _seen(array, replace(view, offset=offset))

    def _call_library(self, kernel: LibraryKernel) -> None:
        operands: list[Any] = [None if v is None else self._view(v) for v in kernel.inputs]
        op = kernel.node.op
        if op.variadic:
            fixed = len(op.inputs) - 1
            operands = [*operands[:fixed], operands[fixed:]]
        attrs = self._attrs(kernel)
        with np.errstate(all="ignore"):
            if op.kind == "control":
                made = op.kernel(*operands, *attrs, sizes=self._sizes)
            else:
                made = op.kernel(*operands, *attrs)
        results = [made] if op.outputs == 1 else list(made)
        for view, result in zip(kernel.outputs, results, strict=True):
            if view.buffer.kind == OBJECT:
                self._objects[view.buffer] = np.asarray(result)
                bind_sizes(view.buffer.source, np.shape(result), self._sizes)
            else:
                self._view(view)[...] = result

    def _attrs(self, kernel: LibraryKernel) -> tuple[Any, ...]:
        """Return the attributes of a call; what only this run can tell is put in and checked."""
        if not is_dynamic(kernel.node):
            return kernel.attrs
        attrs = resolve_attrs(kernel.attrs, self._sizes)
        if kernel.node.op.kind == "control" or not has_unknown_sizes(kernel.node):
            return attrs
        given = tuple(None if v is None else self._view(v) for v in kernel.inputs)
        return canonical(kernel.node.op, given, attrs)


_alive: WeakSet[Executable] = WeakSet()


def _renew_locks() -> None:
    """Free, in a forked child, what the threads hold that only its parent has."""
    for executable in [*_alive]:
        if executable._lock is not _states:
            executable._lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class _Layout:
    """Which buffer lies where: in the arena, or behind an entry of the table."""

    def __init__(
        self, lowered: Lowered, fetched: Sequence[View], written: Sequence[tuple[State, View]]
    ) -> None:
        self.lowered = lowered
        self.outputs = fetched
        self.places: dict[Buffer, Place] = {}
        buffers = lowered.buffers()
        uses = uses_of(lowered.kernels)
        self.fresh_set = _fetch_buffers(fetched, written)
        self.in_place_of = self._in_place(lowered, written, uses)
        self.in_place = set(self.in_place_of.values())
        self.shares = {v.buffer: self.in_place_of[s] for s, v in written if s in self.in_place_of}
        arena = [
            b
            for b in buffers
            if b.kind == "arena" and b not in self.fresh_set and b not in self.shares
        ]
        self.constants = [b for b in buffers if b.kind == "constant"]
        feeds = {b.source: b for b in buffers if b.kind == "feed"}
        self.used_feeds = [i for i, v in enumerate(lowered.graph.inputs) if v in feeds]
        states = [b for b in buffers if b.kind == "state"]
        self.states = sorted(states, key=lambda b: b not in self.in_place)
        self.changed: list[State] = [b.source for b in self.states if b in self.in_place]
        self.only_read: list[State] = [b.source for b in self.states if b not in self.in_place]
        self.fresh = [b for b in buffers if b in self.fresh_set]
        given = [feeds[value] for value in lowered.graph.inputs if value in feeds]
        self.first_state = len(given)
        self.brought = [*given, *self.states, *self.fresh]
        for i, buffer in enumerate(self.brought):
            self.places[buffer] = Place(True, i)
        for i, buffer in enumerate(self.constants):
            self.places[buffer] = Place(False, CONSTANTS + i)
        kept = {view.buffer for view in (*fetched, *(v for _, v in written))}
        self.arena_bytes = self._place_arena(arena, kept)
        for buffer, state in self.shares.items():
            self.places[buffer] = self.places[state]
        for buffer in (b for b in buffers if b.kind == "window"):
            place_window(buffer, self.places)
        self.has_library = any(map(calls_library, lowered.kernels))
        self.fetched = [
            (v, self.places[v.buffer].entry if v.buffer in self.fresh_set else None)
            for v in fetched
        ]
        self.copied = [(s, v) for s, v in written if s not in self.in_place_of]

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

    def _in_place(
        self,
        lowered: Lowered,
        written: Sequence[tuple[State, View]],
        uses: dict[Buffer, list[int]],
    ) -> dict[State, Buffer]:
        """Return the states whose own memory can take their new values, and its buffers."""
        old = {
            v.buffer.source: v.buffer for v in lowered.views.values() if v.buffer.kind == "state"
        }
        last_failure = max((i for i, k in enumerate(lowered.kernels) if may_fail(k)), default=-1)
        wanted = {view.buffer for view in (*self.outputs, *(v for _, v in written))}
        found: dict[State, Buffer] = {}
        for state, view in written:
            buffer = old.get(state)
            if buffer is None or view.buffer.kind != "arena" or view.buffer in self.fresh_set:
                continue
            if not state.held:
                continue
            maker = min(uses[view.buffer])
            fits = view.whole and view.dtype == buffer.dtype
            free = max(uses.get(buffer, [-1])) <= maker and maker > last_failure
            alone = sum(v.buffer is view.buffer for _, v in written) == 1
            if buffer in wanted:  # the old value is read when the run has ended
                continue
            if fits and free and alone and writes_in_place(lowered.kernels[maker], view, buffer):
                found[state] = buffer
        return found

    def _place_arena(self, buffers: list[Buffer], kept: set[Buffer]) -> int:
        alive = lifetimes(self.lowered.kernels)
        blocks = []
        for buffer in buffers:
            birth, death = alive.spans.get(buffer, (0, 0))
            last = alive.end if buffer in kept else death
            blocks.append(Block(align(max(1, buffer.nbytes)), birth, last))
        placed = place_blocks(blocks)
        for buffer, offset in zip(buffers, placed.offsets, strict=True):
            self.places[buffer] = Place(False, ARENA, offset)
        return placed.bytes


def _shaped(array: Array, shape: Shape) -> Array:
    return array if array.shape == shape else array.reshape(shape)


def _most_references(arrays: list[Array]) -> int:
    return max(map(getrefcount, arrays), default=0)


def _of_one_owner() -> int:
    owner = [np.zeros(1)]
    return _most_references(list(owner))


_ALONE = _of_one_owner()  # what is seen of an array that its owner and one list hold


def _are_alone(arrays: list[Array]) -> bool:
    """Tell whether nobody but its owner, and the list, holds an array."""
    return _most_references(arrays) <= _ALONE


def _parted(arrays: list[Array]) -> list[Array]:
    """Return copies of the arrays that others hold too, and would see change."""
    references = list(map(getrefcount, arrays))
    return [a.copy() if n > _ALONE else a for a, n in zip(arrays, references, strict=True)]


def _seen(array: Array, view: View) -> Array:
    """Return the part of a buffer's array that a view shows."""
    size = view.dtype.itemsize
    strides = [step * size for step in view.strides]
    flat = np.ascontiguousarray(array).reshape(-1)  # a feed may have gaps
    return as_strided(flat[view.offset :], view.shape, strides)


def _fetch_buffers(fetched: Sequence[View], written: Sequence[tuple[State, View]]) -> set[Buffer]:
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
