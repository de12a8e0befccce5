"""Turn LLVM IR text into object code, and object code into functions of this process.

    code = compile_module(text, host())
    library = link([code], exports=["axpy"], symbols={"weft_parallel_for": address})
    library.address("axpy")

Only text enters and only bytes and addresses leave. There is no pass pipeline: kernels are written
as vectors already, and the optimising passes gain nothing on them.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from ....core.errors import WeftError
from ....core.locks import fork_safe_lock
from ..codegen.target import Target, host
from ..codegen.text import QUICK
from .emission import Machine, emitted, generator, parsed

BEST = 3  # of LLVM's levels of code generation

# LLVM is used by one thread at a time.
_lock = fork_safe_lock("llvm")
_numbers = itertools.count()
_dead: list[Any] = []  # trackers of code to be unloaded


class CodegenError(WeftError, RuntimeError):
    """LLVM rejected what Weft wrote; `ir` is the whole text. Always a bug in Weft."""

    def __init__(self, problem: str, ir: str = "") -> None:
        super().__init__(f"{problem}\nThis is a bug in Weft, not in your program.")
        self.ir = ir


class Library:
    """Linked code; its addresses are valid for as long as the object lives."""

    __slots__ = ("_addresses", "_tracker")

    def __init__(self, tracker: Any, addresses: dict[str, int]) -> None:
        self._tracker = tracker
        self._addresses = addresses

    def address(self, name: str) -> int:
        """Return where an exported symbol lies in memory."""
        return self._addresses[name]

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():  # afterwards threads may still stand in the code
            _dead.append(self._tracker)
            _unload()


def _unload() -> None:
    """Unload code that nobody holds, now or with the next one: any thread may find itself here.

    It may hold other locks, and must not wait for this one.
    """
    if _lock.acquire(blocking=False):
        try:
            while _dead:
                _dead.pop().close()
        finally:
            _lock.release()


def compile_module(text: str, target: Target) -> bytes:
    """Return the object code of an LLVM module."""
    with _lock, _reported(text):
        return emitted(text, machine_of(target), level_of(text))


def assembly(text: str, target: Target) -> str:
    """Return the assembly text of an LLVM module: what `compile_module` makes, to be read."""
    with _lock, _reported(text), parsed(text) as module:
        listing: str = generator(machine_of(target), level_of(text)).emit_assembly(module)
        return listing


def link(
    objects: Sequence[bytes],
    exports: Sequence[str],
    symbols: Mapping[str, int] | None = None,
) -> Library:
    """Load object code for this machine.

    `exports` are the names that `Library.address` can be asked for, `symbols` the addresses of what
    the code uses from outside; what is in neither is looked up in this process (memcpy, fmod ...).
    """
    builder = llvm.JITLibraryBuilder().add_current_process()
    for code in objects:
        builder.add_object_img(code)
    for name, address in (symbols or {}).items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    with _lock:
        _unload()
        try:
            tracker = builder.link(_linker(), f"weft.{next(_numbers)}")
        except RuntimeError as error:
            raise CodegenError(f"linking failed: {error}") from None
        return Library(tracker, {name: tracker[name] for name in exports})


@contextmanager
def _reported(text: str) -> Iterator[None]:
    """Turn what LLVM says against a text into an error of ours."""
    try:
        yield
    except RuntimeError as error:
        raise CodegenError(_with_line(str(error), text), text) from None


def _with_line(message: str, text: str) -> str:
    """Add the numbered line of IR that a message points at, with its neighbours."""
    match = re.search(r"<string>:(\d+)", message)
    if match is None:
        return f"LLVM rejects a module: {message.strip()}"
    number, lines = int(match[1]), text.split("\n")
    around = range(max(1, number - 2), min(len(lines), number + 2) + 1)
    shown = "\n".join(f"{'>' if n == number else ' '} {n:5} {lines[n - 1]}" for n in around)
    return f"LLVM rejects a module: {message.strip()}\n{shown}"


def level_of(text: str) -> int:
    """Return how well code is generated: a module says itself whether it is worth any effort."""
    return 0 if text.startswith(QUICK) else BEST


def machine_of(target: Target) -> Machine:
    """Return what LLVM needs to know of a target."""
    return Machine(target.triple, target.cpu, target.features)


@cache
def _linker() -> Any:
    """Return the process's linker. JITLink keeps an object's sections near one another."""
    machine = generator(machine_of(host()), BEST)
    return llvm.create_lljit_compiler(machine, use_jit_link=sys.platform != "win32")
