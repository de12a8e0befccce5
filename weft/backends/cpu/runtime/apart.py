"""Let another process make part of a program's object code.

LLVM is used by one thread of a process at a time (llvmlite's own lock), so it is a second process
that keeps a second processor busy:

    with compiling_apart(machine):
        ...                    # it starts while the program is planned
        begin(module, made)    # as modules are written
        finish(made)           # the last ones are made here, until both have nothing left

Nothing depends on it. It makes the same bytes; a module that does not come back is made here; and
it ends with the block that started it, or when this process ends, whose streams it reads.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import local
from typing import NamedTuple

import llvmlite

from . import emission
from .emission import READY, REPLY, REQUEST, Machine

AHEAD = 3  # modules that the other process has to do: it never waits, and is done soon after us
PATIENCE = 10.0  # seconds; a process that takes longer for a module is given up


class ObjectRequest(NamedTuple):
    """Code to be made: its key, its text and how well."""

    key: bytes
    text: str
    level: int


Made = Callable[[ObjectRequest, bytes | None], None]  # is given code; None: to be made here


class CompilerProcess:
    """A process that makes object code."""

    def __init__(self, machine: Machine) -> None:
        found = str(Path(llvmlite.__file__).parent.parent)
        command = [sys.executable, "-I", "-S", str(emission.__file__), found, *machine]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for us
        )
        self._sent: dict[int, ObjectRequest] = {}
        self._numbers = 0
        self._ready = False

    @property
    def is_ready(self) -> bool:
        """Whether it waits for modules, or makes some; EOFError if it cannot."""
        if not self._ready and self._has_said(0.0):
            self._ready = self._read(len(READY)) == READY
        return self._ready

    @property
    def busy(self) -> int:
        """Return how many modules it has to do."""
        return len(self._sent)

    def send(self, module: ObjectRequest) -> None:
        """Give it a module; OSError if it is gone."""
        assert self._process.stdin is not None
        text = module.text.encode()
        self._numbers += 1
        self._sent[self._numbers] = module
        content = memoryview(REQUEST.pack(self._numbers, module.level, len(text)) + text)
        while content:
            content = content[self._process.stdin.write(content) :]

    def received(self, patience: float) -> tuple[ObjectRequest, bytes] | None:
        """Return a module that is done, if one is or will be soon; OSError if it is gone."""
        if not self._has_said(patience):
            return None
        number, size = REPLY.unpack(self._read(REPLY.size))
        code = self._read(size)
        return self._sent.pop(number), code

    def _has_said(self, patience: float) -> bool:
        stream = self._process.stdout
        assert stream is not None
        return bool(select.select([stream], [], [], patience)[0])

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        parts = bytearray()
        while len(parts) < size:
            part = self._process.stdout.read(size - len(parts))
            if not part:
                raise EOFError("the compiler's process has ended")
            parts += part
        return bytes(parts)

    def left(self) -> list[ObjectRequest]:
        """Return what it has not done."""
        return list(self._sent.values())

    def close(self) -> None:
        """End it at once."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert stream is not None
                stream.close()
        self._process.wait()


class _Work(local):
    """What a thread has to compile, and who helps it."""

    helper: CompilerProcess | None = None
    machine: Machine | None = None
    waiting: deque[ObjectRequest] | None = None


_work = _Work()


def is_possible() -> bool:
    """Tell whether a process of Python can be started here, and would do what it is told."""
    name = os.path.basename(sys.executable or "").lower()
    return os.name == "posix" and name.startswith("python") and not hasattr(sys, "frozen")


@contextmanager
def compiling_apart(machine: Machine) -> Iterator[None]:
    """Have another process help this thread to compile, as long as the block runs."""
    if _work.helper is not None or not is_possible():
        yield
        return
    try:
        _work.helper = CompilerProcess(machine)
    except (OSError, ValueError):  # no more processes, or memory: then without
        yield
        return
    _work.waiting, _work.machine = deque(), machine
    try:
        yield
    finally:
        helper, _work.helper, _work.waiting = _work.helper, None, None
        if helper is not None:
            helper.close()


def has_help(machine: Machine) -> bool:
    """Tell whether another process helps this thread to make code for a machine."""
    return _work.waiting is not None and _work.machine == machine


def begin(module: ObjectRequest, made: Made) -> None:
    """Have a module made, sooner or later."""
    assert _work.waiting is not None, "another process helps"
    _work.waiting.append(module)
    _feed(made)


def finish(made: Made) -> None:
    """Make all modules that were begun, the last ones here and the first ones there."""
    waiting = _work.waiting
    while waiting:
        made(waiting.pop(), None)
        _feed(made)
    _wait(made)


def _feed(made: Made) -> None:
    """Take what is done, and give the other process something to do."""
    helper, waiting = _work.helper, _work.waiting
    if helper is None or not waiting:
        return
    try:
        while helper.busy and _take(helper, made, 0.0):
            pass
        while helper.is_ready and waiting and helper.busy < AHEAD:
            helper.send(waiting.popleft())
    except (OSError, EOFError):
        _give_up(made)


def _wait(made: Made) -> None:
    """Take all that the other process still makes."""
    helper = _work.helper
    try:
        while helper is not None and helper.busy:
            if not _take(helper, made, PATIENCE):
                _give_up(made)
                return
    except (OSError, EOFError):
        _give_up(made)


def _take(helper: CompilerProcess, made: Made, patience: float) -> bool:
    """Take a module that is done; return whether there was one."""
    found = helper.received(patience)
    if found is not None:
        made(found[0], found[1] or None)
    return found is not None


def _give_up(made: Made) -> None:
    """Go on without the other process."""
    helper, _work.helper = _work.helper, None
    if helper is not None:
        helper.close()
        for module in helper.left():
            made(module, None)
