"""Executables: a graph as machine code, with its memory.

A run calls the native functions in order on the arrays it was given, with calls of reference
kernels between them where an operator has no lowering, and writes the states at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from threading import Lock
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..codegen.program import Place, ProgramText, write_program
from ..codegen.target import Target, host
from ..core.errors import IndexOutOfRange
from ..core.shape import Shape
from ..graph.graph import Graph
from ..graph.state import State
from ..lower.kernels import (
    ColumnKernel,
    GemmKernel,
    Kernel,
    LibraryKernel,
    RowKernel,
    ScanKernel,
    ScatterKernel,
)
from ..lower.lowering import Lowered
from ..lower.scalar import postorder
from ..lower.storage import Buffer, View, contiguous
from ..passes.arena import Block, align, place_blocks
from .arena import aligned_empty
from .calls import ArraySpec, Entry, make_entry
from .native import link
from .objects import object_code
from .threads import pool_symbols

Array = np.ndarray[Any, Any]
ARENA = 0
RUNS = -1  # the last entry of the table counts the runs whose native code came to its end


class Executable:
    """A static graph, compiled. Its outputs are the fetches, then the new values of states."""

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
        objects = [object_code(text, self.target) for text in self.text.modules.values()]
        names = [step for step in self.text.steps if isinstance(step, str)]
        layout = self.layout
        self.arena: Array = aligned_empty(max(64, layout.arena_bytes))
        self._arrays: dict[Buffer, Array] = {}
        self._views: dict[View, Array] = {}
        constants = [np.ascontiguousarray(buffer.source) for buffer in layout.constants]
        memory = [self.arena, *constants]
        self._runs = 0
        self._complete = False
        addresses = [array.ctypes.data for array in memory]
        self.memory: Array = np.array([*addresses, self._runs], np.uint64)
        self._arrays.update(zip(layout.constants, constants, strict=True))
        for buffer, place in layout.places.items():
            if not place.brought and place.entry == ARENA:
                part = self.arena[place.offset : place.offset + buffer.nbytes]
                self._arrays[buffer] = part.view(buffer.dtype)
        self._entries: dict[str, Entry] = {}
        if names:
            library = link(objects, names, pool_symbols())
            specs = layout.specs()
            for name in names:
                self._entries[name] = make_entry(
                    library.address(name),
                    specs,
                    context=self.memory.ctypes.data,
                    exclusive=True,
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
        others = [state.read() for state in layout.only_read]
        fresh = [np.empty(b.shape, b.dtype) for b in layout.fresh]
        brought = [*(feeds[i] for i in layout.used_feeds), *states, *others, *fresh]
        try:
            self._take_steps(brought)
            fetched = self._fetched(brought)
            self._commit(held, brought)
        except BaseException:
            if self._ended():  # an interrupt came too late to leave all states as they were
                self._commit(held, brought)
            raise
        finally:
            self._runs = int(self.memory[RUNS])
            self._complete = False
            if layout.has_library:  # nobody but their owners may hold them
                for buffer in layout.brought:
                    self._arrays.pop(buffer, None)
        return fetched

    def _take_steps(self, brought: list[Array]) -> None:
        if self.layout.has_library:
            self._arrays.update(zip(self.layout.brought, brought, strict=True))
        for step in self.text.steps:
            if isinstance(step, str):
                self._call_native(self._entries[step], brought)
                self._check_indices()
            else:
                self._call_library(step)
        self._complete = True

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
        return self._complete or int(self.memory[RUNS]) != self._runs

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
        copies = [(state, self._read(view, brought).copy()) for state, view in layout.copied]
        changed = brought[layout.first_state :]
        for state, old, new in zip(layout.changed, held, changed, strict=False):
            if new is not old:
                state.write(new)
        for state, array in copies:
            state.write(array)

    def _read(self, view: View, brought: list[Array]) -> Array:
        """Return the value of a view when the code has run."""
        place = self.layout.places[view.buffer]
        return _seen(brought[place.entry], view) if place.brought else self._view(view)

    def _check_indices(self) -> None:
        """Raise if code met an index out of range; no state has changed then.

        Which index it was the interpreter tells, which repeats what fails.
        """
        flag = self.lowered.flag
        if flag is not None and flag.buffer.source[0]:
            flag.buffer.source[0] = 0
            raise IndexOutOfRange("an index is out of range")

    def _view(self, view: View) -> Array:
        """Return a view as an array; those of the program's own memory are made once."""
        known = self._views.get(view)
        if known is None:
            known = self._new_view(view)
            if not self.layout.places[view.buffer].brought:
                self._views[view] = known
        return known

    def _new_view(self, view: View) -> Array:
        return _seen(self._arrays[self.layout.shares.get(view.buffer, view.buffer)], view)

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

    # -- looking inside ----------------------------------------------------------------------------

    def llvm_ir(self) -> str:
        """Return the code of all kernels and of the entry as LLVM IR."""
        return "\n".join(self.text.modules.values())

    def stats(self) -> dict[str, Any]:
        """Return how many kernels of each kind there are, and what runs in Python."""
        kinds = {
            RowKernel: "row",
            ColumnKernel: "column",
            ScatterKernel: "scatter",
            ScanKernel: "scan",
            GemmKernel: "gemm",
        }
        counts: dict[str, int] = {}
        for kernel in self.lowered.kernels:
            kind = kinds.get(type(kernel), "library")
            counts[kind] = counts.get(kind, 0) + 1
        library = [k.node.op.name for k in self.lowered.kernels if isinstance(k, LibraryKernel)]
        return {"kernels": counts, "library": library, "arena_bytes": self.layout.arena_bytes}


class _Layout:
    """Which buffer lies where: in the arena, or behind an entry of the table."""

    def __init__(
        self, lowered: Lowered, fetched: Sequence[View], written: Sequence[tuple[State, View]]
    ) -> None:
        self.lowered = lowered
        self.outputs = fetched
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
            self.places[buffer] = Place(False, 1 + i)
        kept = {view.buffer for view in (*fetched, *(v for _, v in written))}
        self.arena_bytes = self._place_arena(arena, uses, kept)
        for buffer, state in self.shares.items():
            self.places[buffer] = self.places[state]
        self.has_library = any(isinstance(k, LibraryKernel) for k in lowered.kernels)
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
        last_failure = max((i for i, k in enumerate(lowered.kernels) if _may_fail(k)), default=-1)
        wanted = {view.buffer for view in (*self.outputs, *(v for _, v in written))}
        found: dict[State, Buffer] = {}
        for state, view in written:
            buffer = old.get(state)
            if buffer is None or view.buffer.kind != "arena" or view.buffer in self.fresh_set:
                continue
            if not state.held:
                continue
            maker = min(uses[view.buffer])
            fits = view == contiguous(view.buffer, view.shape) and view.dtype == buffer.dtype
            free = max(uses.get(buffer, [-1])) <= maker and maker > last_failure
            alone = sum(v.buffer is view.buffer for _, v in written) == 1
            if buffer in wanted:  # the old value is read when the run has ended
                continue
            if fits and free and alone and _keeps_places(lowered.kernels[maker], view, buffer):
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
    return as_strided(array.reshape(-1)[view.offset :], view.shape, strides)


def _uses(kernels: Sequence[Kernel]) -> dict[Buffer, list[int]]:
    """Return when each buffer is read or written."""
    found: dict[Buffer, list[int]] = {}
    for i, kernel in enumerate(kernels):
        for view in views_of(kernel):
            found.setdefault(view.buffer, []).append(i)
    return found


def views_of(kernel: Kernel) -> list[View]:
    """Return all that a kernel reads and writes."""
    if isinstance(kernel, (RowKernel, ColumnKernel, ScatterKernel, ScanKernel)):
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


def _may_fail(kernel: Kernel) -> bool:
    """Tell whether a kernel can find that a run must be given up."""
    return isinstance(kernel, LibraryKernel) or getattr(kernel, "flag", None) is not None


def _keeps_places(kernel: Kernel, made: View, old: Buffer) -> bool:
    """Tell whether a kernel may write a state where it reads it: each element at its place."""
    if not isinstance(kernel, RowKernel):
        return False
    exprs = postorder([output.value for output in kernel.outputs])
    if any(expr.kind == "reduce" for expr in exprs):
        return False
    result, *others = [o for o in kernel.operands if o.view.buffer is made.buffer]
    if others:  # the result is made in parts
        return False
    moved = {expr.data[0] for expr in exprs if expr.kind == "load_at"}
    return all(
        o.strides == result.strides and o.view.offset == made.offset and i not in moved
        for i, o in enumerate(kernel.operands)
        if o.view.buffer is old
    )
