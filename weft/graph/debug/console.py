"""The prompt of a breakpoint, and what every prompt of the debugger understands."""

from __future__ import annotations

import cmd
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import StringIO
from typing import IO, Any, TextIO

import numpy as np

from ...core.errors import ArgumentError, ArgumentTypeError, GraphError
from .effects import Array, EffectPlace, QuitDebugger
from .frames import Stack, StackLine, listing
from .running import found_in_run
from .shown import described, shown

_streams: ContextVar[tuple[Any, Any]] = ContextVar("weft_debug_streams", default=(None, None))


@contextmanager
def console(stdin: TextIO | None, stdout: IO[str] | None) -> Iterator[None]:
    """Let prompts of the debugger read from and write to other streams; None: the terminal's."""
    _check_streams(stdin, stdout)
    token = _streams.set((stdin, stdout))
    try:
        yield
    finally:
        _streams.reset(token)


def _check_streams(stdin: Any, stdout: Any) -> None:
    for stream, name, act in ((stdin, "stdin", "readline"), (stdout, "stdout", "write")):
        if stream is not None and not hasattr(stream, act):
            raise ArgumentTypeError(
                f"{name} must be a file of text, such as io.StringIO(), or None for the "
                f"terminal. Received: {stream!r:.60}"
            )


class Prompt(cmd.Cmd):
    """Reads commands at a stop of a program."""

    prompt = "(wf) "
    doc_header = "Commands (an empty line repeats the last one):"

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        _check_streams(stdin, stdout)
        given_in, given_out = _streams.get()
        # A process without a terminal may have none: what is read ends at once, and nobody listens.
        stdin = stdin or given_in or (StringIO() if sys.stdin is None else None)
        stdout = stdout or given_out or (StringIO() if sys.stdout is None else None)
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None and sys.stdin is sys.__stdin__
        self.stack: Stack = ()
        self.depth = 0

    # -- what stops differ in ----------------------------------------------------------------------

    def known(self) -> Mapping[str, Array]:
        """Return the values that are at hand, by name."""
        raise NotImplementedError

    def find(self, name: str) -> Array:
        """Return a value by its name, computed if need be; raise if there is none."""
        raise ArgumentError(f"no value is named {name!r:.60}")

    # -- reading and writing -----------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Write a line."""
        self.stdout.write(text + "\n")
        self.stdout.flush()

    def stop_here(self, title: str, stack: Stack) -> None:
        """Show where the program stands, and read commands until one goes on."""
        self.stack, self.depth = stack, 0
        self.say(title)
        if stack:
            self.say(f"> {stack[0]}")
        self.cmdloop()

    def onecmd(self, line: str) -> bool:
        """Run one command; errors in it are shown."""
        try:
            return bool(super().onecmd(line))
        except QuitDebugger:
            raise
        except Exception as error:
            self.say(f"*** {type(error).__name__}: {error}")
            return False

    def default(self, line: str) -> Any:
        """Take the end of the input for `continue`, and anything else for a value to print."""
        if line == "EOF":
            return self.do_continue("")
        return self.do_print(line)

    # -- commands ----------------------------------------------------------------------------------

    def do_print(self, line: str) -> None:
        """Show a value, `print NAME`, or a Python expression of the values at hand."""
        if not line:
            self.say("print what? `values` lists what is there")
            return
        known = self.known()
        if line in known:
            self.say(shown(line, known[line]))
            return
        try:
            self.say(shown(line, self.find(line)))
        except (ArgumentError, GraphError) as missing:
            self._evaluate(line, known, missing)

    def _evaluate(self, line: str, known: Mapping[str, Array], missing: Exception) -> None:
        try:
            self.say(str(eval(line, {"np": np}, dict(known))))  # the user's own, at a prompt
        except (NameError, SyntaxError):
            raise missing from None

    def do_values(self, line: str) -> None:
        """List the values at hand."""
        known = self.known()
        for name, array in known.items():
            self.say(f"{name}: {described(array)}")
        if not known:
            self.say("no values are at hand; print NAME looks further")

    def do_where(self, line: str) -> None:
        """Show the lines of the user's that built what stands here, innermost last."""
        if not self.stack:
            self.say("the line is not known")
            return
        for i, at in reversed(list(enumerate(self.stack))):
            self.say(f"{'>' if i == self.depth else ' '} {at}")

    def do_list(self, line: str) -> None:
        """Show the text around the line."""
        if self.stack:
            self.say(listing(self.stack[self.depth]))
        else:
            self.say("the line is not known")

    def do_up(self, line: str) -> None:
        """Go up to the line that called this one, in the stack of what stands here."""
        self._move(1, "this is the outermost line that is known")

    def do_down(self, line: str) -> None:
        """Go back down to the line that this one called."""
        self._move(-1, "this is the innermost line")

    def _move(self, step: int, end: str) -> None:
        depth = self.depth + step
        if 0 <= depth < len(self.stack):
            self.depth = depth
            self.say(f"> {self.stack[depth]}")
        else:
            self.say(end)

    def do_continue(self, line: str) -> bool:
        """Go on."""
        return True

    def do_quit(self, line: str) -> bool:
        """End the run; a program has written no state then."""
        raise QuitDebugger("the run was ended at the prompt of the debugger")

    def do_pdb(self, line: str) -> None:
        """Open Python's own debugger at the frame that runs the program."""
        import pdb  # noqa: PLC0415, T100  (this command is what it is for)

        pdb.Pdb(stdin=self.stdin, stdout=self.stdout).set_trace(sys._getframe())

    do_p, do_v, do_w, do_l = do_print, do_values, do_where, do_list
    do_u, do_d, do_c, do_q = do_up, do_down, do_continue, do_quit

    def get_names(self) -> list[str]:
        """Return what `help` lists: not the short forms."""
        return [name for name in super().get_names() if len(name) > len("do_x")]


class BreakpointPrompt(Prompt):
    """The prompt of wf.debug.breakpoint."""

    def __init__(self, values: Mapping[str, Array], running: Any) -> None:
        super().__init__()
        self._values, self._running = values, running

    def known(self) -> Mapping[str, Array]:
        """Return what the breakpoint was given."""
        return self._values

    def find(self, name: str) -> Array:
        """Return a value of the graph, computed node by node on what the run was given."""
        if self._running is None:
            return super().find(name)
        program, feeds = self._running
        return found_in_run(program, feeds, name)


def stop_at(
    arrays: Sequence[Array], place: EffectPlace, labels: Sequence[str], stack: Sequence[Any]
) -> None:
    """Open the prompt of a breakpoint, unless PYTHONBREAKPOINT=0 says that nothing stops."""
    if os.environ.get("PYTHONBREAKPOINT") == "0":
        return
    values = {name: np.array(array) for name, array in zip(labels, arrays, strict=True)}
    prompt = BreakpointPrompt(values, None if place.log is None else place.log.running)
    lines = tuple(StackLine(*at) for at in stack)
    unwritten = "; no state is written yet" if place.name else ""
    prompt.stop_here(f"stopped at {place}{unwritten}", lines)
