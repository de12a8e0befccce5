"""Call a program: check what is fed, and run it as machine code or node by node."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakSet

from numpy import ndarray

from ..core.anomaly import detecting_anomaly
from ..core.config import config
from ..core.device import AUTO, device
from ..core.device_array import DeviceError, all_to_host, has_own_memory, is_placed, moved
from ..core.dim import SizeVar
from ..core.dispatch import ERRORS
from ..core.effects import EffectLog, current_log, logging_to
from ..core.errors import ArgumentError, ShapeError, is_from_signal, note_outside, user_stacklevel
from ..core.imports import injected
from ..core.shape import Shape
from ..core.tensor import PLAIN
from .feeds import as_feed
from .nan_search import came_with, search_nan
from .node import Value, type_text
from .placement import SEVERAL
from .run import Array, Program, Results, Sizes, Take, bind_sizes, check_told_sizes
from .sized_code import SizedCode
from .special import STATE

_compile_program = injected("compile_program")
_compile_sized = injected("compile_for_sizes")

Run = Callable[[tuple[Any, ...]], "list[Array] | None"]

MOST_SHAPES = 64
_calls: WeakSet[ProgramCall] = WeakSet()


def forget_code() -> None:
    """Let every program be compiled anew: what decides about code has changed."""
    for call in list(_calls):
        call.forget()


class ProgramCall:
    """A program, with what is known about calling it: the types of feeds, code for their shapes."""

    def __init__(self, program: Program, what: str, on: str | None = None) -> None:
        """Call a program on a device, by default on that which its nodes are placed on."""
        self.program = program
        self.what = what  # the function of the user's that errors name
        self.device = _checked_device(program.device if on is None else on)
        self.own_memory = self.device in (SEVERAL, AUTO) or has_own_memory(self.device)
        self._told_host = False
        _check_states(program, self.device, what)
        self._types = [(value.dtype, value.type.shape) for value in program.feeds]
        self._executables: dict[tuple[Shape, ...], Any] = {}
        self._sized = SizedCode([shape for _, shape in self._types])
        self._ran: Any = None
        self._latest: Run | None = None
        self._trapped: ProgramCall | None = None
        self.has_effects = program.has_effects
        self._latest_trapped: Run | None = None
        _calls.add(self)

    def forget(self) -> None:
        """Forget all machine code."""
        self._ran = self._latest = self._latest_trapped = self._trapped = None
        self._executables.clear()
        self._sized = SizedCode([shape for _, shape in self._types])

    @property
    def current(self) -> ProgramCall | None:
        """What runs as the configuration says: this, or with the NaN trap on the same with one."""
        return self._trapped if config.nan_trap and not self.program.trapped else self

    @property
    def direct(self) -> Any:
        """The shortest way to run the code that ran last, if it has one: see backends."""
        call = self.current
        return None if call is None or call._ran is None else call._ran.direct

    def run_unchecked(self, fed: Iterable[Any]) -> list[Array] | None:
        """Return the fetches, if what is fed suits the code that ran last, which finds out itself.

        None if it does not, or if there is no such code: then check what is fed, and run.
        """
        latest = self._latest_trapped if config.nan_trap else self._latest
        if latest is None or config.debug_interpret or detecting_anomaly():
            return None
        return latest(tuple([x._value if x.__class__ in PLAIN else x for x in fed]))

    def arrays(self, fed: Iterable[Any]) -> list[Array]:
        """Return what is fed as arrays of the dtypes and shapes that the values can have."""
        arrays = [x._value if x.__class__ in PLAIN else x for x in fed]
        for i, (array, (dtype, shape)) in enumerate(zip(arrays, self._types, strict=True)):
            # An unknown size is equal to no number: such a shape is checked in full.
            if array.__class__ is not ndarray or array.dtype != dtype or array.shape != shape:
                arrays[i] = as_feed(self.program.feeds[i], array, self.what)
                if is_placed(array):
                    self._check_place(i, array)
        return arrays

    def _check_place(self, position: int, value: Any) -> None:
        """Raise if a value is on another device than the program, which copies nothing unasked."""
        if value.device != self.device and self.device not in (SEVERAL, AUTO):
            name = self.program.feeds[position].name
            raise ArgumentError(
                f"{self.what}: {name} is on {str(value.device)!r}, and the program runs on "
                f"{self.device!r}; give x.to({self.device!r})"
            )

    def run(self, arrays: list[Array], compiled: bool | None = None) -> list[Array]:
        """Return the fetches; write the states. None for compiled: as the configuration says.

        Going from node to node is the reference: it runs what code refuses, repeats what fails to
        say where, with the user's line, and looks for the first NaN if that is asked for.
        """
        wanted = not config.debug_interpret if compiled is None else compiled
        run = self._run_trapped if config.nan_trap and not detecting_anomaly() else self._run
        if not self.has_effects:
            return run(arrays, wanted)
        log = EffectLog((self.program, arrays))
        with logging_to(log):
            try:
                return run(arrays, wanted)
            except Exception as error:
                if log.has_shown:  # to do it again, elsewhere, would show it again
                    note_outside(error)
                raise

    def _begin(self) -> None:
        """Begin an attempt, which shows no more than what those before it have not shown."""
        log = current_log() if self.has_effects else None
        if log is not None:
            log.begin()

    def _run(self, arrays: list[Array], compiled: bool) -> list[Array]:
        failure = None
        if compiled and not detecting_anomaly():
            try:
                executable = self._code(arrays)
                if executable is not None:
                    self._begin()
                    fetched: list[Array] = executable.run(arrays)
                    self.remember(executable)
                    return fetched
            except ERRORS as error:
                if is_from_signal(error) or (self.own_memory and _is_devices(error)):
                    raise
                if _is_last_attempt():
                    raise
                failure = error
        if self.own_memory:
            self._tell_host(asked=not compiled or failure is not None)
            arrays = all_to_host(arrays)
        sizes = self._told([array.shape for array in arrays])
        self._begin()
        results = _committed(self.program.run(arrays, sizes))
        if failure is not None:
            _report(failure, self.what)
        is_one = self.own_memory and self.device not in (SEVERAL, AUTO)
        return [moved(y, self.device) for y in results] if is_one else results

    def _tell_host(self, *, asked: bool) -> None:
        """Say, once, that a program for a device runs on the host, unless that was asked for."""
        if not asked and not self._told_host and not detecting_anomaly():
            self._told_host = True
            warnings.warn(
                f"{self.what}: a shape depends on values, so that there is no program of "
                f"{self.device!r}: it runs node by node on the host, on copies",
                RuntimeWarning,
                stacklevel=user_stacklevel(),
            )

    def _run_trapped(self, arrays: list[Array], compiled: bool) -> list[Array]:
        """Do the same; raise AnomalyError before anything is written if a NaN was made.

        Code that stops may have met a NaN. Only going from node to node tells who made it, or that
        it came from outside, which is no error: then the code runs without the trap.
        """
        executable = self.executable(arrays) if compiled else None
        if executable is not None:
            self._begin()
            try:
                fetched: list[Array] = executable.run(arrays)
                self._latest_trapped = self._without_flag(_unchecked(executable))
                assert self._trapped is not None
                self._trapped.remember(executable)
                return fetched[: len(self.program.fetches)]
            except ERRORS as error:
                if is_from_signal(error) or _is_last_attempt():
                    raise
        self._begin()
        results = search_nan(self.program, arrays, self._told([array.shape for array in arrays]))
        if executable is None:
            return _committed(results)
        _report_outside(came_with(self.program, arrays), self.what)
        return self._run(arrays, compiled)

    def run_steps(self, arrays: list[Array], take: Take) -> list[Array]:
        """Return the fetches, with each node run by a function; write the states."""
        sizes = self._told([array.shape for array in arrays])
        with logging_to(EffectLog((self.program, arrays))):
            return _committed(self.program.run(arrays, sizes, take))

    def _without_flag(self, run: Run | None) -> Run | None:
        """Return what runs a program with a trap, and leaves out the flag behind its fetches."""
        count = len(self.program.fetches)

        def fetch(feeds: tuple[Any, ...]) -> list[Array] | None:
            assert run is not None
            fetched = run(feeds)
            return None if fetched is None else fetched[:count]

        return None if run is None else fetch

    def executables(self) -> list[Any]:
        """Return the machine code there is so far."""
        fixed = [code for code in self._executables.values() if code is not None]
        trapped = [] if self._trapped is None else self._trapped.executables()
        return [*fixed, *self._sized.executables(), *trapped]

    def compiled(self) -> Iterator[tuple[Program, dict[Value, Shape] | None, Any]]:
        """Yield the machine code there is, with its program and the shapes that it is for, if any.

        None stands for many sizes.
        """
        for shapes, code in self._executables.items():
            if code is not None:
                yield self.program, dict(zip(self.program.feeds, shapes, strict=True)), code
        yield from ((self.program, None, code) for code in self._sized.executables())
        if self._trapped is not None:
            yield from self._trapped.compiled()

    def remember(self, executable: Any) -> None:
        """Let `run_unchecked` try code that ran first."""
        self._ran = executable if executable.checks_feeds else None
        self._latest = _unchecked(executable)

    def executable(self, arrays: list[Array]) -> Any:
        """Return the machine code for feeds of the shapes at hand, made at their first use."""
        if config.nan_trap and not self.program.trapped:
            if self._trapped is None:
                self._trapped = ProgramCall(self.program.with_trap(), self.what, self.device)
            return self._trapped._code(arrays)
        return self._code(arrays)

    def _code(self, arrays: list[Array]) -> Any:
        return self.code_for(tuple([array.shape for array in arrays]))

    def code_for(self, shapes: tuple[Shape, ...]) -> Any:
        """Return the machine code for feeds of some shapes, made at their first use."""
        try:
            return self._executables[shapes]
        except KeyError:
            fed = self.fed_shapes(shapes)
            return self._sized.find(shapes, self._compile_for_sizes) or self._for_shapes(
                shapes, fed
            )

    def _for_shapes(self, shapes: tuple[Shape, ...], fed: dict[Value, Shape]) -> Any:
        """Return new machine code for feeds of certain shapes."""
        made = self.keep(shapes, _compile_program(self.program, fed, device=self.device))
        if made is not None:
            made.fixed_because = self._sized.why_fixed()
        return made

    def _compile_for_sizes(self, pattern: tuple[Shape, ...], sizes: Mapping[SizeVar, int]) -> Any:
        """Return machine code for many sizes, those in the shapes of feeds."""
        fed = dict(zip(self.program.feeds, pattern, strict=True))
        return _compile_sized(self.program, fed, sizes, device=self.device)

    def fed_shapes(self, shapes: Sequence[Shape]) -> dict[Value, Shape]:
        """Return the shapes of feeds by their values; raise if they contradict one another."""
        self._told(shapes)
        return dict(zip(self.program.feeds, shapes, strict=True))

    def keep(self, shapes: tuple[Shape, ...], made: Any) -> Any:
        """Keep new machine code; of several threads that make the same, the first one's."""
        if len(self._executables) >= MOST_SHAPES:  # each holds an arena
            self._executables.pop(next(iter(self._executables)), None)
        return self._executables.setdefault(shapes, made)

    def _told(self, shapes: Sequence[Shape]) -> Sizes:
        """Return the sizes that feeds tell; raise if they contradict one another."""
        sizes: Sizes = {}
        pairs = list(zip(self.program.feeds, shapes, strict=True))
        for value, shape in pairs:
            bind_sizes(value, shape, sizes)
        for value, shape in pairs:
            check_told_sizes(value, shape, sizes)
        return sizes


def _checked_device(name: str) -> str:
    """Return the name of a device; raise unless Weft runs on it, or chooses among several."""
    return name if name == SEVERAL else str(device(name))


def _is_last_attempt() -> bool:
    """Tell whether what a program exchanged is not there any more, so that it cannot be repeated.

    Then nothing but an exchange can have failed, and would again.
    """
    log = current_log()
    return log is not None and log.is_last


def _is_devices(error: Exception) -> bool:
    """Tell whether an error is a device's own, which the host has no better word for."""
    return isinstance(error, (DeviceError, MemoryError))


def _check_states(program: Program, where: str, what: str) -> None:
    """Raise if a state is in the memory of another device than the one that a program runs on."""
    if where in (SEVERAL, AUTO):
        return
    for node in program.order:
        if node.op is STATE and node.device != where and has_own_memory(node.device):
            raise ArgumentError(
                f"{what}: {node.name} is on {node.device!r}, and the program runs on {where!r}; "
                f"move it by .to({where!r}), or run on {node.device!r}"
            )


def _report(failure: Exception, what: str) -> None:
    """Warn that code failed at what the reference can do: nothing is wrong, but it was slow."""
    advice = "give it more memory" if isinstance(failure, MemoryError) else "please report this"
    warnings.warn(
        f"{what}: the compiled program failed ({type(failure).__name__}: {failure}), but its graph "
        f"runs node by node, which was done and is slower; {advice}, or say compiled=False",
        RuntimeWarning,
        stacklevel=user_stacklevel(),
    )


def _report_outside(name: str | None, what: str) -> None:
    """Warn that a NaN, which the trap stops at in each run, is no operation's doing."""
    if name is not None:
        warnings.warn(
            f"{what}: a NaN came in with {name}; no operation made it, so nothing is raised, but "
            "each such run goes from node to node too, which is slow",
            RuntimeWarning,
            stacklevel=user_stacklevel(),
        )


def _unchecked(executable: Any) -> Run | None:
    """Return what runs code on whatever it is given, if the code itself finds out what suits it."""
    return executable.run_unchecked if executable.checks_feeds else None


def _committed(results: Results) -> list[Array]:
    """Write the states that a run has computed, and return arrays of the caller's own."""
    commit(results)
    taken = results.borrowed | {id(array) for _, array in results.commits}
    return [_owned(array, taken) for array in results.fetched]


def commit(results: Results) -> None:
    """Write the new values of all states, after checking that they fit."""
    for state, array in results.commits:
        if array.dtype != state.type.dtype or array.shape != state.type.shape:
            raise ShapeError(
                f"{state.name} is {type_text(state.type)} and cannot be assigned "
                f"{array.dtype}{list(array.shape)}"
            )
    taken = set(results.borrowed)
    owned = [(state, _owned(array, taken)) for state, array in results.commits]
    for state, array in owned:
        state.write(array)


def _owned(array: Array, taken: set[int]) -> Array:
    """Return an array that nobody else holds: a copy, if it is taken or a view of another."""
    if array.base is not None or id(array) in taken or not array.flags.writeable:
        array = array.copy()
    taken.add(id(array))
    return array
