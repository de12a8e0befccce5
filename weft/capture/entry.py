"""The quick way into a trace: one written function from the arguments of a call to its result.

Most calls of a jitted function are like one before: the same nest of tensors, of the same shapes
and dtypes, and nothing else that the trace depends on has changed. The function takes the arguments
apart, tests what must be tested, and runs the program. Shapes and dtypes of arrays it leaves to the
machine code, which looks at them anyway. Everything else goes the general way, by signatures.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..core.config import config
from ..core.device import scopes
from ..core.errors import is_final
from ..core.generated import ObjectNames, define
from ..core.modes import is_grad_enabled, modes
from ..core.specialize import function, indent
from ..core.tree import Structure
from . import written_guards, written_run
from .outside import Leaves, Outside, TensorArgument
from .trace import MISSED, Trace
from .written_arguments import ArgumentTest, ArgumentWriter, NotWrittenError, leaf_name
from .written_guards import GuardWriter
from .written_run import RunWriter

Entry = Callable[[tuple[Any, ...], dict[str, Any]], Any]

MOST_ENTRIES = 8  # that are tried in each call
SETTLED = 4  # runs after which a program has a direct run, or has none
MOST_WRITTEN = 64  # of one function: where calls differ more, writing costs more than it saves


class Entries:
    """The quick ways into the traces of a function.

    quick   those that are tried in each call, in this order
    """

    def __init__(self) -> None:
        self.quick: tuple[Entry, ...] = ()
        self._kept: OrderedDict[tuple[Trace, Any], Entry | None] = OrderedDict()
        self._left = MOST_WRITTEN
        self._looks = False  # whether entries look at shapes themselves

    def note(self, trace: Trace, structure: Structure, leaves: Leaves) -> None:
        """Note that a call goes the general way into a trace that holds; the next one need not."""
        direct = _direct(trace)
        if scopes or modes.base is not None or (direct is None and trace.runs < SETTLED):
            return
        key = (trace, None if direct is None else direct.code)
        if key not in self._kept:
            if not self._left:
                return
            self._begin_looking()
            self._left -= 1
            self._kept[key] = write_entry(trace, direct, structure, leaves, looks=self._looks)
        self._kept.move_to_end(key, last=False)
        while len(self._kept) > MOST_ENTRIES:
            self._kept.popitem()
        self.quick = tuple(entry for entry in self._kept.values() if entry is not None)

    def _begin_looking(self) -> None:
        """Write all entries again when there is a second: none is to run a program to find out."""
        if self._kept and not self._looks:
            self._looks = True
            self._kept.clear()


def _direct(trace: Trace) -> Any:
    """Return how the program of a trace runs at once, where nothing else belongs to a run."""
    is_more = type(trace) is not Trace or trace.held or trace.split_run is not None
    return None if is_more else trace.call.direct


def write_entry(
    trace: Trace, direct: Any, structure: Structure, leaves: Leaves, *, looks: bool = True
) -> Entry | None:
    """Return a function from arguments to the result of a trace, or MISSED.

    It is for calls like one whose arguments are given. None if there is something among them that
    it cannot tell by itself.

    direct   how the program runs at once; None if that is left to the trace
    looks    whether it looks at shapes and dtypes that the machine code looks at too
    """
    writer = EntryWriter(trace, ObjectNames())
    try:
        arguments = writer.arguments(structure, leaves, looks or direct is None)
        text = writer.around(arguments) if direct is None else writer.within(arguments, direct)
    except NotWrittenError:
        return None
    scope = {**written_guards.SCOPE, **written_run.SCOPE, **_SCOPE, **writer.names.scope}
    return define("enter", text, scope, "entry")


class EntryWriter:
    """Writes the way into one trace."""

    def __init__(self, trace: Trace, names: ObjectNames) -> None:
        self.trace = trace
        self.names = names

    def arguments(self, structure: Structure, leaves: Leaves, looks: bool) -> ArgumentWriter:
        """Return what takes arguments apart and tests them."""
        fed = self.trace.fed
        return ArgumentWriter(structure, leaves, self.names, fed, self._fed(), looks)

    def around(self, arguments: ArgumentWriter) -> str:
        """Return the text of the function, which leaves the rest to the trace."""
        holds = f"{self.names.of(self.trace.holds, 'holds')}(leaves)"
        conditions = [*arguments.conditions(()), *self._surroundings()]
        lines = [
            *_tests(arguments, conditions),
            _all_leaves(arguments),
            *_lines(ArgumentTest(holds)),
            f"return {self.names.of(self.trace.run, 'run')}(leaves)",
        ]
        return _function(["try:", *indent(lines), *_UNLESS_MISSED])

    def within(self, arguments: ArgumentWriter, direct: Any) -> str:
        """Return the text of the function with everything in it."""
        trace, names, leaves = self.trace, self.names, arguments.leaves
        guards = GuardWriter(trace.tests, names, leaf_name, {id(s.owner) for s in direct.states})
        conditions = [
            *arguments.conditions(trace.tests.outer()),
            *trace.identities.conditions(names, leaf_name, leaves),
            *self._surroundings(),
            *guards.conditions(),
            "config.nan_trap" if config.nan_trap else "not config.nan_trap",
            f"{names.of(trace.call.current, 'call')}._ran is {names.of(direct.code, 'code')}",
        ]
        run = RunWriter(trace, names, leaf_name, guards.nodes, flagged=config.nan_trap)
        after = run.after(names.of(trace.counter, "runs"))
        asked = any("leaves" in line for line in (run.feeds(), *after))
        tests = [
            *_tests(arguments, conditions),
            *([_all_leaves(arguments)] if asked else []),
            f"feeds = {run.feeds()}",
        ]
        lines = [
            *["try:", *indent(tests), *_UNLESS_MISSED],
            f"with {names.of(direct.guard, 'guard')}.lock:",
            f"    fetched = {names.of(direct.run, 'run')}(feeds)",
            f"if fetched is None or fetched is {names.of(direct.refused, 'refused')}:",
            "    return MISSED",
            *after,
        ]
        return _function(lines)

    def _fed(self) -> set[int]:
        """Return the positions of arguments that are fed as they are."""
        return {
            get.position
            for get in self.trace.feeds
            if isinstance(get, (TensorArgument, Outside)) and get.position is not None
        }

    def _surroundings(self) -> Iterator[str]:
        """Yield the conditions on what is the same for all functions."""
        yield "not scopes and modes.base is None and not config.debug_interpret"
        yield f"config.default_float == {config.default_float!r}"
        grad = "(not modes.grad_overrides or is_grad_enabled())"
        yield grad if is_grad_enabled() else f"not {grad}"


# What is gone is not as it was; of what is wrong otherwise the general way tells.
_UNLESS_MISSED = [
    "except Exception as error:",
    "    if is_final(error):",
    "        raise",
    "    return MISSED",
]


def _function(lines: list[str]) -> str:
    return function("enter", "args, kwargs", lines) + "\n"


def _tests(arguments: ArgumentWriter, conditions: Iterable[str]) -> list[str]:
    """Return what takes arguments apart, and tests conditions, each once."""
    steps = [*arguments.taken_apart(), *map(ArgumentTest, dict.fromkeys(conditions))]
    return [line for step in steps for line in _lines(step)]


def _lines(step: str) -> list[str]:
    """Return a line as it is, and a condition as a test."""
    return [f"if not ({step}):", "    return MISSED"] if isinstance(step, ArgumentTest) else [step]


def _all_leaves(arguments: ArgumentWriter) -> str:
    """Return what makes `leaves`."""
    return f"leaves = ({''.join(f'{leaf_name(i)}, ' for i in range(len(arguments.leaves)))})"


_SCOPE: dict[str, Any] = {
    "MISSED": MISSED,
    "is_final": is_final,
    "is_grad_enabled": is_grad_enabled,
    "scopes": scopes,
}
