"""Executables: a graph as machine code, with its memory.

A run calls the native functions in order on the arrays it was given, with calls of reference
kernels between them where an operator has no lowering, and writes the states at the end.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from ..codegen.program import Place, ProgramText, write_program
from ..codegen.target import Target, host
from ..graph.graph import Graph
from ..graph.state import State
from ..lower.indexing import IndexCheck
from ..lower.kernels import ColumnKernel, GemmKernel, Kernel, LibraryKernel, RowKernel
from ..lower.lowering import Lowered
from ..lower.scalar import postorder
from ..lower.storage import Buffer, View, contiguous
from ..passes.arena import Block, align, place_blocks
from .arena import aligned_empty
from .calls import ArraySpec, Entry, make_entry
from .clock import clock_symbols
from .inspection import Inspection
from .native import link
from .objects import object_code
from .threads import pool_symbols
from .timing import Timing

Array = np.ndarray[Any, Any]
ARENA = 0


class Executable(Inspection):
    """A static graph, compiled. Its outputs are the fetches, then the new values of states."""

    timing: Timing | None = None  # takes the times of kernels, in the copy that a profile runs

    def __init__(
        self, graph: Graph, fetches: int, commits: Sequence[State], target: Target | None = None
    ) -> None:
        self.graph = graph
        self._lock = Lock()
        self.target = host() if target is None else target
        self.lowered = Lowered(graph)
        self.fetches = fetches
        self.commits = list(commits)
        self.outputs = self.lowered.outputs
        self.layout = _Layout(self.lowered, self.outputs[:fetches], self._written())
        self.text: ProgramText = write_program(
            self.lowered.kernels, self.layout.places, self.target
        )
        self._load()

    def _written(self) -> list[tuple[State, View]]:
        return list(zip(self.commits, self.outputs[self.fetches :], strict=True))

    def _load(self) -> None:
        timing = self.timing
        modules = self.text.modules if timing is None else timing.modules
        objects = [object_code(text, self.target) for text in modules.values()]
        names = [step for step in self.text.steps if isinstance(step, str)]
        layout = self.layout
        self.arena: Array = aligned_empty(max(64, layout.arena_bytes))
        self._arrays: dict[Buffer, Array] = {}
        self._views: dict[View, Array] = {}
        constants = [np.ascontiguousarray(buffer.source) for buffer in layout.constants]
        memory = [self.arena, *constants, *([] if timing is None else [timing.record])]
        self.memory: Array = np.array([array.ctypes.data for array in memory], np.uint64)
        self._arrays.update(zip(layout.constants, constants, strict=True))
        for buffer, place in layout.places.items():
            if not place.brought and place.entry == ARENA:
                part = self.arena[place.offset : place.offset + buffer.nbytes]
                self._arrays[buffer] = part.view(buffer.dtype)
        self._entries: dict[str, Entry] = {}
        if names:
            library = link(objects, names, pool_symbols() | clock_symbols())
            specs = [_spec(b) for b in layout.brought]
            for name in names:
                self._entries[name] = make_entry(
                    library.address(name),
                    specs,
                    context=self.memory.ctypes.data,
                    exclusive=True,
                    keep=(library, self.memory, memory),
                )

    # -- running -----------------------------------------------------------------------------------

    def admits(self, feeds: Sequence[Array]) -> bool:
        """Tell whether all indices that code uses unchecked lie within their rows."""
        inputs = self.graph.inputs
        return all(_in_range(feeds[inputs.index(c.feed)], c) for c in self.lowered.checks)

    def run(self, feeds: Sequence[Array]) -> list[Array]:
        """Run on arrays of the shapes it was compiled for; return the fetches."""
        with self._lock:
            layout = self.layout
            self._execute(feeds, [_owned(b.source, b in layout.in_place) for b in layout.states])
            return self._finish()

    def _execute(self, feeds: Sequence[Array], states: Sequence[Array]) -> None:
        """Run all kernels on feeds and states; those updated in place are written to."""
        layout = self.layout
        given = [array for array, used in zip(feeds, layout.used_feeds, strict=True) if used]
        fresh = [np.empty(b.shape, b.dtype) for b in layout.fresh]
        brought = (*given, *states, *fresh)
        arrays = self._arrays
        if layout.has_library:
            arrays.update(zip(layout.brought, brought, strict=True))
        for step in self.text.steps:
            if isinstance(step, str):
                wrong = self._entries[step](brought)
                if wrong is not None:
                    brought = self._made_fit(brought)
                    assert self._entries[step](brought) is None, wrong
            elif self.timing is None:
                self._call_library(step)
            else:
                with self.timing.library_call():
                    self._call_library(step)
        arrays.update(zip(layout.brought, brought, strict=True))

    def _made_fit(self, brought: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return the arrays in C order and aligned."""
        pairs = zip(self.layout.brought, brought, strict=True)
        return tuple(np.require(a, b.dtype, ["C", "A"]).reshape(b.shape) for b, a in pairs)

    def _finish(self) -> list[Array]:
        """Write the states, and return copies of what the arena holds."""
        layout = self.layout
        fetched = []
        for view in self.outputs[: self.fetches]:
            array = self._view(view)
            fetched.append(array if view.buffer in layout.fresh_set else array.copy())
        written = [
            (state, self._arrays[layout.in_place_of[state]])
            if state in layout.in_place_of
            else (state, self._view(view).copy())
            for state, view in self._written()
        ]
        for state, array in written:
            state.write(
                array if array.shape == state.type.shape else array.reshape(state.type.shape)
            )
        for buffer in layout.brought:
            del self._arrays[buffer]  # nobody but their owners may hold them
        return fetched

    def _view(self, view: View) -> Array:
        """Return a view as an array; those of the program's own memory are made once."""
        known = self._views.get(view)
        if known is None:
            known = self._new_view(view)
            if not self.layout.places[view.buffer].brought:
                self._views[view] = known
        return known

    def _new_view(self, view: View) -> Array:
        buffer = self.layout.shares.get(view.buffer, view.buffer)
        flat = self._arrays[buffer].reshape(-1)
        size = view.dtype.itemsize
        strides = [step * size for step in view.strides]
        return np.lib.stride_tricks.as_strided(flat[view.offset :], view.shape, strides)

    def _call_library(self, kernel: LibraryKernel) -> None:
        operands: list[Any] = [None if v is None else self._view(v) for v in kernel.inputs]
        op = kernel.node.op
        if op.variadic:
            fixed = len(op.inputs) - 1
            operands = [*operands[:fixed], operands[fixed:]]
        with np.errstate(all="ignore"):
            if op.kind == "control":
                made = op.kernel(*operands, *kernel.attrs, sizes={})
            else:
                made = op.kernel(*operands, *kernel.attrs)
        results = [made] if op.outputs == 1 else list(made)
        for view, result in zip(kernel.outputs, results, strict=True):
            self._view(view)[...] = result


class _Layout:
    """Which buffer lies where: in the arena, or behind an entry of the table."""

    def __init__(
        self, lowered: Lowered, fetched: Sequence[View], written: Sequence[tuple[State, View]]
    ) -> None:
        self.lowered = lowered
        self.places: dict[Buffer, Place] = {}
        views = [*lowered.views.values(), *lowered.copies]
        buffers = list(dict.fromkeys(view.buffer for view in views))
        uses = _uses(lowered.kernels)
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
        self.used_feeds = [value in feeds for value in lowered.graph.inputs]
        self.states = [b for b in buffers if b.kind == "state"]
        self.fresh = [b for b in buffers if b in self.fresh_set]
        given = [feeds[value] for value in lowered.graph.inputs if value in feeds]
        self.brought = [*given, *self.states, *self.fresh]
        for i, buffer in enumerate(self.brought):
            self.places[buffer] = Place(True, i)
        for i, buffer in enumerate(self.constants):
            self.places[buffer] = Place(False, 1 + i)
        kept = {view.buffer for view in (*fetched, *(v for _, v in written))}
        self.arena_bytes = self._place_arena(arena, uses, kept)
        for buffer, state in self.shares.items():
            self.places[buffer] = self.places[state]
        self.has_library = any(isinstance(k, LibraryKernel) for k in lowered.kernels)

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
        last_library = max(
            (i for i, k in enumerate(lowered.kernels) if isinstance(k, LibraryKernel)), default=-1
        )
        found: dict[State, Buffer] = {}
        for state, view in written:
            buffer = old.get(state)
            if buffer is None or view.buffer.kind != "arena" or view.buffer in self.fresh_set:
                continue
            maker = min(uses[view.buffer])
            fits = view == contiguous(view.buffer, view.shape) and view.dtype == buffer.dtype
            free = max(uses.get(buffer, [-1])) <= maker and maker > last_library
            alone = sum(v.buffer is view.buffer for _, v in written) == 1
            if fits and free and alone and _is_elementwise(lowered.kernels[maker], buffer, view):
                found[state] = buffer
        return found

    def _place_arena(
        self, buffers: list[Buffer], uses: dict[Buffer, list[int]], kept: set[Buffer]
    ) -> int:
        end = len(self.lowered.kernels)
        blocks = []
        for buffer in buffers:
            times = uses.get(buffer, [0])
            death = end if buffer in kept else max(times)
            blocks.append(Block(align(max(1, buffer.nbytes)), min(times), death))
        placed = place_blocks(blocks)
        for buffer, offset in zip(buffers, placed.offsets, strict=True):
            self.places[buffer] = Place(False, ARENA, offset)
        return placed.bytes


def _owned(state: State, in_place: bool) -> Array:
    """Return the array of a state; one that is written in place must belong to the state alone."""
    array = state.read()
    # Two references are this function's own: the variable and getrefcount's argument.
    if in_place and (
        sys.getrefcount(array) > 3 or not array.flags.writeable or array.base is not None
    ):
        array = array.copy()
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return array


def _spec(buffer: Buffer) -> ArraySpec:
    written = buffer.kind in ("arena", "state")
    return ArraySpec(buffer.dtype, buffer.shape, writeable=written and buffer.kind == "arena")


def _in_range(array: Array, check: IndexCheck) -> bool:
    if check.ignored is not None:
        array = array[array != check.ignored]
    return not array.size or bool(array.min() >= 0 and array.max() < check.size)


def _uses(kernels: Sequence[Kernel]) -> dict[Buffer, list[int]]:
    """Return when each buffer is read or written."""
    found: dict[Buffer, list[int]] = {}
    for i, kernel in enumerate(kernels):
        for view in views_of(kernel):
            found.setdefault(view.buffer, []).append(i)
    return found


def views_of(kernel: Kernel) -> list[View]:
    """Return all that a kernel reads and writes."""
    if isinstance(kernel, (RowKernel, ColumnKernel)):
        return [operand.view for operand in kernel.operands]
    if isinstance(kernel, GemmKernel):
        bias = [] if kernel.bias is None else [kernel.bias]
        return [kernel.x, kernel.y, kernel.out, *bias]
    return [v for v in (*kernel.inputs, *kernel.outputs) if v is not None]


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
        and view == contiguous(view.buffer, view.shape)
    }


def _is_elementwise(kernel: Kernel, old: Buffer, new: View) -> bool:
    """Tell whether each new element depends on no other element of the old ones."""
    if not isinstance(kernel, RowKernel):
        return False
    exprs = postorder([output.value for output in kernel.outputs])
    places = {o.strides for o in kernel.operands if o.view.buffer is new.buffer}
    read = [o for o in kernel.operands if o.view.buffer is old]
    same_places = all(o.view.offset == 0 and {o.strides} == places for o in read)
    return same_places and all(expr.kind != "reduce" for expr in exprs)
