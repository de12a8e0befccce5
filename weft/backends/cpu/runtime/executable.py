"""Executables: a graph as machine code, with its memory.

A run calls the native functions in order on the arrays it was given, with calls of reference
kernels between them where an operator has no lowering, and writes the states at the end.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from operator import is_
from threading import RLock
from types import MethodType
from typing import Any
from weakref import WeakSet

import numpy as np

from ....core.dispatch import ERRORS
from ....core.dtype import Array
from ....core.errors import ArgumentTypeError, GraphError, IndexOutOfRange, is_from_signal
from ....graph.state import KeptTogether, kept_together
from ....lower.kernels import CallKernel
from ....lower.memory import WORD, MemoryPlan
from ....lower.storage import View
from ...host import call_operator, shown
from ...protocol import DirectRun
from ...states import STATES
from .analysis import Analysis, Code
from .bound_run import REFUSED, BoundRun, bind_run
from .buffers import array_maker
from .calls import BUSY, ArraySpec, Entry, make_entry, poll_symbols
from .clock import clock_symbols
from .driving import drive
from .inspection import Inspection
from .launches import NativeCall
from .linking import Library, link
from .memory import ProgramMemory
from .sharing import CALLED_INSIDE, Sized, run_lock_of
from .short_run import ShortRun, shaped
from .states import are_alone, numbers_in, parted, read_all
from .threads import pool_symbols
from .timing import Timing


def linked(objects: Sequence[bytes], entries: Sequence[str]) -> Library:
    """Return machine code with what it needs of the runtime."""
    return link(objects, entries, pool_symbols() | poll_symbols() | clock_symbols())


class Executable(Inspection):
    """A program, compiled for feeds of certain shapes."""

    timing: Timing | None = None  # takes the times of kernels, in the copy that a profile runs
    _trusts_feeds = True  # else what suits the code is found out by calling it

    def __init__(
        self,
        code: Code,
        analysis: Analysis | None = None,
        *,
        own_arena: bool = True,
        sized: Sized | None = None,
    ) -> None:
        """Load code; the analysis tells how it came about, for those who look inside."""
        self.plan = code.plan
        self.sized = sized
        self._analysis = analysis
        self._run_lock = run_lock_of(self.plan) if sized is None else sized.run_lock
        self.own_arena = own_arena  # else every call of `entry` is lent one, and nothing else runs
        self._load(code.objects)
        _alive.add(self)

    @property
    def layout(self) -> MemoryPlan:
        """Where everything lies."""
        return self.plan.memory

    def _load(self, objects: Sequence[bytes]) -> None:
        """Make the code ready to run, with memory of its own."""
        self._runs = 0
        self._complete = False
        self._calls_library = self.plan.calls_library
        self._ends_native = bool(self.plan.entries) and self.plan.steps[-1] == self.plan.entries[-1]
        self._allocate()
        self._find_states()
        self._find_fetches()
        self._entries = self._link(objects) if self.plan.entries else {}
        self._short = self._short_run()
        self._short_as_fed = self._short.unchecked() if self._short else None
        self._bound: BoundRun | None = None

    def _allocate(self) -> None:
        """Make the memory that is the program's own."""
        layout, sources, flag = self.layout, self.plan.sources, self.plan.flag
        records = [] if self.timing is None else [self.timing.record]
        sized = None if self.sized is None else self.sized.memory
        own = self.own_arena
        self.memory = ProgramMemory(layout, sources.constants, records, own=own, sized=sized)
        states = [sources.states[buffer.slot] for buffer in layout.numbers]
        self._numbers = numbers_in(self.memory.numbers, states)
        self._flag = None if flag is None else self.memory.arrays[flag.buffer]

    def _link(self, objects: Sequence[bytes]) -> dict[str, Entry]:
        """Return the native functions of the code."""
        sized = self.sized if self.timing is None else None
        self._library = linked(objects, self.plan.entries) if sized is None else sized.library
        return {name: self.make_entry(name) for name in self.plan.entries}

    def make_entry(self, name: str, *, alone: bool = False) -> Entry:
        """Return a native function of the code.

        alone   whether it refuses states that it would change and that others hold
        """
        return make_entry(
            self._library.address(name),
            arrays=_specs(self.layout, alone=alone),
            context=self.memory.table.ctypes.data,
            exclusive=self.own_arena,
            keep=(self._library, self.memory.table, self.memory.held),
        )

    def _find_fetches(self) -> None:
        """Find which arguments hold fetches; others are copied from where they lie."""
        layout = self.layout
        self._makers = [array_maker(b.shape, b.dtype) for b in layout.fresh]
        handed_out = (*layout.fresh, *layout.donated)
        made = {buffer: layout.places[buffer].entry for buffer in handed_out}
        self._fetches = [(view, made.get(view.buffer)) for view in self.plan.fetches]

    def _find_states(self) -> None:
        """Find the states that a run reads, and where it leaves their new values."""
        layout, states = self.layout, self.plan.sources.states
        kept = [states[buffer.slot] for buffer in layout.states]
        self._states_changed = kept[: layout.changed]
        copied = [(states[s], v, layout.places[v.buffer].is_argument) for s, v in layout.copied]
        self._own_results = [(s, self.memory.view(v)) for s, v, passed in copied if not passed]
        self._other_results = [(s, v) for s, v, passed in copied if passed]
        self._new_numbers = self._numbers_left(layout.new_numbers)
        self._changed = kept_together(self._states_changed)
        self._only_read = kept_together(kept[layout.changed :])

    def _numbers_left(
        self, numbers: Sequence[tuple[int, View]]
    ) -> list[tuple[KeptTogether, Array]]:
        """Return the states that are numbers, and where a run leaves their new values."""
        if not numbers or not self.own_arena:
            return []
        first = self.layout.places[numbers[0][1].buffer].offset
        words = self.memory.arena[first : first + WORD * len(numbers)].view(np.int64)
        return numbers_in(words, [self.plan.sources.states[number] for number, _ in numbers])

    # -- running -----------------------------------------------------------------------------------

    def run(self, feeds: Sequence[Array]) -> list[Array]:
        """Run on arrays of the shapes it was compiled for; return the fetches."""
        with self._run_lock.lock:
            return (self._short and self._short.run(feeds)) or self._run(feeds)

    @property
    def checks_feeds(self) -> bool:
        """Whether `run_unchecked` may be called: the code takes, and so looks at, every feed."""
        at_once = len(self.plan.steps) == 1 and isinstance(self.plan.steps[0], str)
        return at_once and len(self.layout.used_feeds) == self.layout.feeds

    def run_unchecked(self, feeds: tuple[Any, ...]) -> list[Array] | None:
        """Return the fetches; None if the feeds, which may be anything, are not as compiled for.

        None too if something else is wrong: a checked run tells what.
        """
        with self._run_lock.lock:
            fetched: list[Array] | None
            if self._bound is not None:
                fetched = self._bound(self, feeds)
                return self._run_warily(feeds) if fetched is REFUSED else fetched
            if self._short_as_fed is not None:
                return self._short_as_fed(feeds)
            fetched = self._run_warily(feeds)
            usual = self.own_arena and self.timing is None and not self.layout.donated
            if fetched is not None and usual:
                self._bound = bind_run(self)
            return fetched

    @property
    def direct(self) -> DirectRun | None:
        """The shortest way to run, which is there once `run_unchecked` has taken the long one."""
        bound = self._bound
        run = self._short_as_fed if bound is None else MethodType(bound, self)
        if run is None:
            return None
        states = [self.plan.sources.states[buffer.slot] for buffer in self.layout.states]
        return DirectRun(run, self, self._run_lock, REFUSED, states)

    def _run_warily(self, feeds: tuple[Any, ...]) -> list[Array] | None:
        if len(feeds) != self.layout.feeds:
            return None
        self._trusts_feeds = False
        try:
            return self._run(feeds)
        except ERRORS as error:
            if is_from_signal(error):
                raise
            return None
        finally:
            self._trusts_feeds = True

    def _run(self, feeds: Sequence[Array]) -> list[Array]:
        if self._run_lock.running:
            raise GraphError(CALLED_INSIDE)
        held = read_all(self._changed)
        states = held if are_alone(held) else parted(held)
        if self._only_read:
            with STATES:
                states = [*states, *read_all(self._only_read)]
        arguments = self._arguments(feeds, states)
        try:
            self._run_lock.running = True
            self._take_steps(arguments)
            fetched = self._fetched(arguments)
            self._commit(held, arguments)
        except BaseException:
            self.met_bad_index()  # an interrupt may have come before that was looked at
            if self._ended():  # an interrupt came too late to leave all states as they were
                self._commit(held, arguments)
            raise
        finally:
            self._run_lock.running = False  # the first step: no interrupt comes before it
            self._let_go()
        return fetched

    def _recovers(self, error: BaseException, arguments: list[Array]) -> bool:
        """After a bound run has failed, tell whether a checked run may follow and say why.

        If the code had come to its end the states are written, as `_run` does.
        """
        self.met_bad_index()
        if self._ended():
            first = self.layout.first_state
            self._commit(arguments[first : first + self.layout.changed], arguments)
            return False
        return isinstance(error, ERRORS) and not is_from_signal(error)

    @property
    def entry(self) -> Entry | None:
        """The native function, if a run is only a call of it, on what `layout.arguments` names.

        None where a run does more: calls reference kernels, reads states, or copies fetches.
        """
        layout, steps = self.layout, self.plan.steps
        plain = len(steps) == 1 and isinstance(steps[0], str) and not layout.states
        made = not self.plan.commits and all(entry is not None for _, entry in self._fetches)
        return self._entries[steps[0]] if plain and made else None

    @property
    def native(self) -> NativeCall | None:
        """The same as what a list of launches takes; None where a run does more."""
        layout, usual = self.layout, self.own_arena and self.timing is None
        if self.entry is None or not usual or layout.numbers or layout.donated:
            return None
        first = len(layout.arguments) - len(layout.fresh)
        order = [entry - first for _, entry in self._fetches if entry is not None]
        if sorted(order) != [*range(len(layout.fresh))]:  # two fetches of one array, say
            return None
        made = [*map(order.index, range(len(order)))]
        run, context = self._library.address(self.plan.steps[0]), self.memory.table.ctypes.data
        return NativeCall(self, run, context, layout.used_feeds, made)

    def ended_badly(self) -> bool:
        """Be ready for another run after one in a list; tell whether it met a bad index."""
        self._let_go()
        return self.met_bad_index()

    def _short_run(self) -> ShortRun | None:
        """Return the short way to run, where a run is one native call and nothing else."""
        entry, layout, plan = self.entry, self.layout, self.plan
        if entry is None or not self.own_arena or layout.numbers or plan.flag is not None:
            return None
        if self.timing is not None or self.sized is not None or not self._fetches:
            return None
        if layout.donated:  # a result is what was fed, not what is made here
            return None
        first = len(layout.arguments) - len(layout.fresh)
        order = [(e - first, view.shape) for view, e in self._fetches if e is not None]
        return ShortRun(entry, layout.used_feeds, self._makers, order)

    def _execute(self, feeds: Sequence[Array], states: Sequence[Array]) -> None:
        """Run all kernels on feeds and states; those updated in place are written to."""
        try:
            self._take_steps(self._arguments(feeds, states))
        finally:
            self._let_go()

    def _arguments(self, feeds: Sequence[Array], states: Sequence[Array]) -> list[Array]:
        """Return all arrays that the code takes; numbers go where it looks for them."""
        for kept, words in self._numbers:
            words[...] = kept.read()
        fresh = [make() for make in self._makers]
        return [*[feeds[i] for i in self.layout.used_feeds], *states, *fresh]

    def _take_steps(self, arguments: list[Array]) -> None:
        if self._calls_library:
            self.memory.arrays.update(zip(self.layout.arguments, arguments, strict=True))
        self._take(self.plan.steps, arguments)
        self._complete = True

    def _take(self, steps: Sequence[Any], arguments: list[Array]) -> None:
        """Run native functions and what Python calls, in order."""
        for step in steps:
            if isinstance(step, str):
                self._call_native(self._entries[step], arguments)
                self._check_indices()
            elif not isinstance(step, CallKernel):
                run = partial(self._take, arguments=arguments)
                drive(step, run, self.memory.view, self.memory.word)
            elif self.timing is None:
                call_operator(step, self.memory.view, self.memory.objects, self.memory.sizes)
            else:
                with self.timing.library_call(step):
                    call_operator(step, self.memory.view, self.memory.objects, self.memory.sizes)

    def _let_go(self) -> None:
        """Be ready for another run; nobody but their owners may hold the arrays of this one."""
        self._runs = self.memory.counter.item()
        self._complete = False
        if self._calls_library:
            self.memory.forget_run()

    def _call_native(self, entry: Entry, arguments: list[Array]) -> None:
        """Run native code; arrays that do not suit it are replaced by copies."""
        replaced = BUSY  # arrays are looked at in order
        while (wrong := entry(tuple(arguments))) is not None:
            if wrong == BUSY:
                raise GraphError(CALLED_INSIDE)
            assert wrong > replaced, f"a copy of array {wrong} does not suit the code either"
            if wrong < self.layout.first_state and not self._trusts_feeds:
                raise ArgumentTypeError(f"feed {wrong} is not as the code takes it")
            buffer = self.layout.arguments[wrong]
            # Filled, not reshaped: reshape returns a view, and states must own their memory.
            suited: Array = np.empty(buffer.shape, buffer.dtype)
            suited[...] = arguments[wrong].reshape(buffer.shape)
            arguments[wrong] = suited
            replaced = wrong
            if self._calls_library:
                self.memory.arrays[buffer] = suited

    def _ended(self) -> bool:
        """Tell whether all steps were taken; an interrupt may hide that the last has returned."""
        return self._complete or (self._ends_native and self.memory.counter.item() != self._runs)

    def _fetched(self, arguments: list[Array]) -> list[Array]:
        """Return the fetches: arrays made for them, or copies of what the arena holds."""
        return [
            self._read(view, arguments).copy()
            if entry is None
            else shaped(arguments[entry], view.shape)
            for view, entry in self._fetches
        ]

    def _commit(self, held: list[Array], arguments: list[Array]) -> None:
        """Write the states; those changed in place are written already."""
        layout = self.layout
        copies = [(s, a.copy()) for s, a in self._own_results]
        copies += [(s, self._read(view, arguments).copy()) for s, view in self._other_results]
        changed = arguments[layout.first_state : layout.first_state + len(held)]
        if not all(map(is_, changed, held)):
            for state, new in zip(self._states_changed, changed, strict=True):
                state.write(new)
        for state, array in copies:
            state.write(array)
        for kept, words in self._new_numbers:
            kept.write(words.tolist())

    def _read(self, view: View, arguments: list[Array]) -> Array:
        """Return the value of a view when the code has run."""
        place = self.layout.places.get(view.buffer)
        if place is None or not place.is_argument:
            return self.memory.view(view)
        return shown(arguments[place.entry], view)

    def _check_indices(self) -> None:
        """Raise if code met an index out of range; no state has changed then.

        Which index it was the interpreter tells, which repeats what fails.
        """
        if self.met_bad_index():
            raise IndexOutOfRange("an index is out of range")

    def met_bad_index(self) -> bool:
        """Tell whether the last run met an index out of range; then forget it."""
        if self._flag is None or not self._flag[0]:
            return False
        self._flag[0] = 0
        return True


_alive: WeakSet[Executable] = WeakSet()


def _renew_locks() -> None:
    """End, in a forked child, the runs of threads that only its parent has."""
    for executable in [*_alive]:
        if executable._run_lock.lock.acquire(blocking=False):
            executable._run_lock.lock.release()
        else:
            executable._run_lock.lock = RLock()
            executable._trusts_feeds, executable._run_lock.running = True, False
            executable._let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def _specs(layout: MemoryPlan, *, alone: bool) -> list[ArraySpec]:
    """Return what the code demands of the arrays that each run passes."""
    changed, fresh = set(layout.in_place), {*layout.fresh, *layout.donated.values()}
    return [
        ArraySpec(
            buffer.dtype,
            buffer.shape,
            writeable=buffer in changed or buffer in fresh,
            owner=buffer in changed,
            alone=alone and buffer in changed,
        )
        for buffer in layout.arguments
    ]
