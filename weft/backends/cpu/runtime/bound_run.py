"""A run written out for one program: a Python function without loops, calls of keepers, or lists.

A training step of a small network takes a microsecond or two of machine code, and ten times as long
to read its states one keeper after another. Here the same run is text for exactly these states,
where each is read where it is kept:

    adam_0_state = adam_0.state
    adam_0_state_parameter_1 = adam_0_state[parameter_1]
    changed = (parameter_1._value, adam_0_state_parameter_1['exp_avg'], ...)

Nothing is remembered from run to run, so nothing can be out of date. What an array must be like the
native code finds out itself. Whatever is not as usual is refused: then the general run
(executable.py) copies arrays that others hold, or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from struct import Struct
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.errors import is_from_signal
from ....core.generated import ObjectNames, define
from ....core.specialize import function, indent
from ....graph.state import Alone, ItemStep, State
from ....lower.storage import View
from ...host import shown
from ...states import STATES
from .calls import sees_references
from .states import ALONE

if TYPE_CHECKING:
    from .executable import Executable

BoundRun = Callable[["Executable", tuple[Any, ...]], Any]

REFUSED = object()  # in place of fetches: something is not as usual, and nothing has run

# The word of a number, by its dtype. Where this refuses what NumPy would convert, the general run
# is taken.
_FORMATS = {np.dtype(np.bool_): "?7x", np.dtype(np.int64): "q", np.dtype(np.float64): "d"}

# Where native code does not see references, Python counts them, which takes longer.
_ALONE_OR_REFUSED = (
    "if max(map(getrefcount, changed)) > ALONE:  # others hold an array, and would see it change",
    "    return REFUSED",
)


def bind_run(executable: Executable) -> BoundRun:
    """Return a function that runs a program on feeds as they come; they may be anything.

    The program must be one native call on all of its feeds (`Executable.checks_feeds`), with memory
    of its own. The function returns the fetches, REFUSED if nothing has run, or None if the run
    came to nothing and a checked one tells why; its caller holds the lock.
    """
    return _Writer(executable).bound()


class _StateNames(ObjectNames):
    """Names for what a run mentions, and for what it reads on its way to states."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []  # which read the containers of states

    def place(self, state: State) -> str | None:
        """Return the expression for where a state is kept, which can be assigned to as well.

        Containers on the way there are read once.
        """
        path = state.path
        if path is None:
            return None
        text = self.of(path.root)
        for step in path.steps[:-1]:
            text = self._container(text, step)
        return text + self._suffix(path.steps[-1])

    def _container(self, text: str, step: str | ItemStep) -> str:
        found = f"{text}{self._suffix(step)}"
        known = self.known(found)
        if known is None:
            known = self.new(found, f"{text}_{step if isinstance(step, str) else self._key(step)}")
            self.lines.append(f"{known} = {found}")
        return known

    def _suffix(self, step: str | ItemStep) -> str:
        return f".{step}" if isinstance(step, str) else f"[{self._key(step)}]"

    def _key(self, step: ItemStep) -> str:
        return repr(step.key) if type(step.key) in (str, int) else self.of(step.key)


class _Writer:
    """Writes the text of the run of one program. Its own variables end in no `_` and a number."""

    def __init__(self, executable: Executable) -> None:
        self.executable = executable
        self.layout = executable.layout
        self.states = executable.plan.sources.states
        self.names = _StateNames()
        kept = [self.states[buffer.slot] for buffer in self.layout.states]
        self.changed, self.only_read = kept[: self.layout.changed], kept[self.layout.changed :]
        self.copied = [(self.states[number], view) for number, view in self.layout.copied]
        self.new_numbers = [self.states[number] for number, _ in self.layout.new_numbers]
        self.fresh = [f"fresh{i}" for i in range(len(self.layout.fresh))]

    def bound(self) -> BoundRun:
        """Return the function."""
        (name,) = self.executable.plan.steps
        source = self.source()
        scope: dict[str, Any] = {
            **self.names.scope,
            "ALONE": ALONE,
            "REFUSED": REFUSED,
            "STATES": STATES,
            "entry": self.executable.make_entry(name, alone=sees_references()),
            "getrefcount": getrefcount,
            "is_from_signal": is_from_signal,
            "run_lock": self.executable._run_lock,
            "runs": self.executable.memory.counter.data,
            "shown": shown,
        }
        return define("run", source, scope, "run")

    def source(self) -> str:
        """Return the text of the function."""
        tuples = [
            n for n, some in (("changed", self.changed), ("only_read", self.only_read)) if some
        ]
        every = ["*feeds", *[f"*{name}" for name in tuples], *self.fresh]
        lines = [
            "if run_lock.running:",
            "    return REFUSED",
            "try:",
            *indent(self._before() or ["pass"]),
            "except Exception as error:  # a state is gone, or is no array",
            "    if is_from_signal(error):",
            "        raise",
            "    return REFUSED",
            *(_ALONE_OR_REFUSED if self.changed and not sees_references() else ()),
            "try:",
            "    run_lock.running = True",
            f"    if entry({', '.join(['feeds', *tuples, *self.fresh])}) is None:",
            *indent([*self._after(), f"return [{', '.join(self._fetches())}]"], 2),
            "except BaseException as error:",
            f"    if executable._recovers(error, [{', '.join(every)}]):",
            "        return None",
            "    raise",
            "finally:",
            "    run_lock.running = False  # first: no interrupt comes before it",
            "    executable._runs = runs[0]",
            "return REFUSED  # an array, or others hold one",
        ]
        return function("run", "executable, feeds", lines) + "\n"

    # -- before the call ---------------------------------------------------------------------------

    def _before(self) -> list[str]:
        """Return what reads states, and makes new arrays."""
        lines = self._read("changed", self.changed)
        only_read = self._read("only_read", self.only_read)
        if only_read and not self.executable.plan.writes:  # else the lock is held already
            only_read = ["with STATES:", *indent(only_read)]
        lines += only_read
        lines += self._numbers()
        for state in [*(state for state, _ in self.copied), *self.new_numbers]:
            self.names.place(state)
        lines += self._containers()
        for name, maker in zip(self.fresh, self.executable._makers, strict=True):
            lines.append(f"{name} = {self.names.of(maker, 'make')}()")
        return lines

    def _read(self, name: str, states: Sequence[State]) -> list[str]:
        values = [self._value(state) for state in states]
        return [*self._containers(), f"{name} = ({', '.join(values)},)"] if states else []

    def _numbers(self) -> list[str]:
        """Return what puts numbers where the code looks for them."""
        states = [self.states[buffer.slot] for buffer in self.layout.numbers]
        if not states:
            return []
        words = self.names.of(self.executable.memory.numbers.data, "words")
        pack = self.names.of(_words(states).pack_into, "pack")
        values = [
            text
            for _, some in groupby(states, lambda s: s.keeper)
            for text in self._kept_numbers([*some])
        ]
        return [*self._containers(), f"{pack}({', '.join([words, '0', *values])})"]

    def _kept_numbers(self, states: Sequence[State]) -> list[str]:
        """Return expressions for numbers of one keeper, which is asked once if it must be."""
        plain = [state.path is not None or isinstance(state.keeper, Alone) for state in states]
        if all(plain):
            return [self._value(state) for state in states]
        keys = self.names.of(tuple(state.place for state in states), "keys")
        return [f"*{self.names.of(states[0].keeper)}.read({keys})"]

    def _containers(self) -> list[str]:
        """Return the lines that read the containers of states mentioned since the last time."""
        lines, self.names.lines = self.names.lines, []
        return lines

    def _value(self, state: State) -> str:
        """Return the expression for what a state holds."""
        place = self.names.place(state)
        if place is not None:
            return place
        if isinstance(state.keeper, Alone):
            return f"{self.names.of(state.keeper.get, 'get')}()"
        return f"{self.names.of(state.keeper)}.read(({self._key(state)},))[0]"

    def _key(self, state: State) -> str:
        return self.names.of(state.place, "key")

    # -- after the call ----------------------------------------------------------------------------

    def _after(self) -> list[str]:
        """Return what looks for bad indices and writes states; whatever may fail comes first."""
        lines = []
        if self.executable._flag is not None:
            flag = self.names.of(self.executable._flag.data, "flag")
            lines += [f"if {flag}[0]:", f"    {flag}[0] = 0", "    return None"]
        lines += [f"copy{i} = {self._copied(*pair)}" for i, pair in enumerate(self.copied)]
        news = [f"new{i}" for i in range(len(self.new_numbers))]
        if news:
            lines.append(f"{', '.join(news)}, = {self._words_left()}")
        lines += [self._write(state, f"copy{i}") for i, (state, _) in enumerate(self.copied)]
        return lines + list(map(self._write, self.new_numbers, news))

    def _words_left(self) -> str:
        """Return the expression for the numbers that a run has left, side by side."""
        first = self.layout.places[self.layout.new_numbers[0][1].buffer].offset
        arena = self.names.of(self.executable.memory.arena.data, "arena")
        unpack = self.names.of(_words(self.new_numbers).unpack_from, "unpack")
        return f"{unpack}({arena}, {first})"

    def _copied(self, state: State, view: View) -> str:
        copy = self._copy(view)
        return f"{copy}.item()" if state.number else copy

    def _write(self, state: State, value: str) -> str:
        place = self.names.place(state)
        if place is not None:
            return f"{place} = {value}"
        return f"{self.names.of(state.keeper)}.write(({self._key(state)},), ({value},))"

    def _fetches(self) -> list[str]:
        return [self._fetch(view, entry) for view, entry in self.executable._fetches]

    def _fetch(self, view: View, entry: int | None) -> str:
        if entry is None:
            return self._copy(view)
        name = self._argument(entry)
        same = self.layout.arguments[entry].shape == view.shape
        return name if same else f"{name}.reshape({view.shape})"

    def _copy(self, view: View) -> str:
        """Return the expression for a copy of what a run has left somewhere."""
        place = self.layout.places.get(view.buffer)
        if place is None or not place.is_argument:
            return f"{self.names.of(self.executable.memory.view(view), 'view')}.copy()"
        return f"shown({self._argument(place.entry)}, {self.names.of(view)}).copy()"

    def _argument(self, entry: int) -> str:
        """Return the expression for one of the arrays that the code is passed."""
        parts = (
            *(f"feeds[{i}]" for i in range(self.layout.first_state)),
            *(f"changed[{i}]" for i in range(len(self.changed))),
            *(f"only_read[{i}]" for i in range(len(self.only_read))),
            *self.fresh,
        )
        return parts[entry]


def _words(states: Sequence[State]) -> Struct:
    """Return the form of numbers that lie side by side, a word for each."""
    return Struct("=" + "".join(_FORMATS[state.type.dtype] for state in states))
