"""Lists of what native code does in one call: programs, and copies of rows between them.

    launches = LaunchList()
    launches.gather(target, source, rows, 3, 400)
    launches.program(call, addresses)
    launches.run()

A call of a program from Python takes microseconds, and so does each array that is gathered for it
or that is cut out of another; here both take what a function in C does. Nothing is checked: targets
and sources are addresses of memory that somebody keeps, of the sizes that the programs have.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....core.dtype import Array
from ....core.shape import size_of
from ..codegen.target import host
from .calls import Entry, make_entry, native_calls_work
from .linking import Library, link
from .native.launches import (
    ADD,
    COPY,
    END,
    EXPORT,
    FILL,
    GATHER,
    RUN,
    SCATTER,
    SCATTER_ADD,
    launches_text,
)
from .objects import runtime_code

if TYPE_CHECKING:
    from .executable import Executable

MOST_WORDS = 1 << 16  # of a list, after which signals get their turn
ADDED = frozenset(ADD)  # the letters of dtypes whose rows can be added


class NativeCall(NamedTuple):
    """A program as one native function.

    owner     whose code it is, and whose lock is held while it runs
    run       where it lies
    context   the address that it takes besides those of its arguments
    feeds     which feeds it takes, in order
    made      for each array that it makes, which takes follow the feeds: which fetch it is
    """

    owner: Executable
    run: int
    context: int
    feeds: Sequence[int]
    made: Sequence[int]


class LaunchList:
    """Commands for native code, in order."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self._owners: dict[int, Executable] = {}

    def __bool__(self) -> bool:
        return bool(self.words)

    @property
    def is_long(self) -> bool:
        """Whether it is time to run it."""
        return len(self.words) > MOST_WORDS

    def runs(self, call: NativeCall) -> None:
        """Have the lock of a program that somebody writes down by its words."""
        self._owners[id(call.owner)] = call.owner

    def program(self, call: NativeCall, arguments: Sequence[int]) -> None:
        """Run a program on the addresses of its arguments: feeds it takes, and what it makes."""
        self.runs(call)
        self.words += (RUN, call.run, call.context, len(arguments))
        self.words += arguments

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy bytes."""
        self.words += (COPY, target, source, 0, 0, nbytes)

    def gather(self, target: int, source: int, rows: int, count: int, nbytes: int) -> None:
        """Put rows of a source, by their numbers, side by side."""
        self.words += (GATHER, target, source, rows, count, nbytes)

    def fill(self, target: int, source: int, count: int, nbytes: int) -> None:
        """Put one row several times side by side."""
        self.words += (FILL, target, source, 0, count, nbytes)

    def scatter(self, target: int, source: int, rows: int, count: int, nbytes: int) -> None:
        """Put rows that lie side by side where their numbers say."""
        self.words += (SCATTER, target, source, rows, count, nbytes)

    def add(self, letter: str, target: int, source: int, elements: int) -> None:
        """Add numbers of a dtype to others."""
        self.words += (ADD[letter], target, source, 0, 0, elements)

    def scatter_add(
        self, letter: str, target: int, source: int, rows: int, count: int, elements: int
    ) -> None:
        """Add rows that lie side by side to those whose numbers are given, one after another."""
        self.words += (SCATTER_ADD[letter], target, source, rows, count, elements)

    def run(self) -> bool:
        """Do it all, and be empty; tell whether programs met no index out of range."""
        words, self.words = self.words, []
        owners, self._owners = self._owners, {}
        words.append(END)
        locks = {id(owner._run_lock): owner._run_lock for owner in owners.values()}
        with ExitStack() as held:
            for _, lock in sorted(locks.items()):  # in one order, whoever takes several
                held.enter_context(lock.inside())
            _entry()(np.array(words, np.int64))
        ended = [owner.ended_badly() for owner in owners.values()]  # each is asked
        return not any(ended)


def add_rows(target: Array, rows: Array, given: Array) -> None:
    """Add rows to those of an array whose numbers are given, one after another.

    target   an array in C order, whose dtype is among `ADDED`
    """
    rows, given = np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(given, target.dtype)
    elements = size_of(target.shape[1:])
    assert given.size == rows.size * elements, "a row for each number"
    where = address_of(target), address_of(given), address_of(rows)
    words = SCATTER_ADD[target.dtype.char], *where, rows.size, elements, END
    _entry()(np.array(words, np.int64))


# The words of commands as text: for functions that are written for many commands at once.


def program_words(run: Any, context: Any, arguments: Sequence[str]) -> str:
    """Return the words of what `program` does, of expressions."""
    return ", ".join(map(str, (RUN, run, context, len(arguments), *arguments)))


def copy_words(target: Any, source: Any, nbytes: Any) -> str:
    """Return the words of what `copy` does."""
    return f"{COPY}, {target}, {source}, 0, 0, {nbytes}"


def gather_words(target: Any, source: Any, rows: Any, count: Any, nbytes: Any) -> str:
    """Return the words of what `gather` does."""
    return f"{GATHER}, {target}, {source}, {rows}, {count}, {nbytes}"


def fill_words(target: Any, source: Any, count: Any, nbytes: Any) -> str:
    """Return the words of what `fill` does."""
    return f"{FILL}, {target}, {source}, 0, {count}, {nbytes}"


def scatter_words(target: Any, source: Any, rows: Any, count: Any, nbytes: Any) -> str:
    """Return the words of what `scatter` does."""
    return f"{SCATTER}, {target}, {source}, {rows}, {count}, {nbytes}"


def add_words(letter: str, target: Any, source: Any, elements: Any) -> str:
    """Return the words of what `add` does."""
    return f"{ADD[letter]}, {target}, {source}, 0, 0, {elements}"


def scatter_add_words(
    letter: str, target: Any, source: Any, rows: Any, count: Any, elements: Any
) -> str:
    """Return the words of what `scatter_add` does."""
    return f"{SCATTER_ADD[letter]}, {target}, {source}, {rows}, {count}, {elements}"


def address_of(array: Array) -> int:
    """Return where the data of an array begins."""
    found: int = array.__array_interface__["data"][0]
    return found


def array_at(address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return memory that somebody else keeps as an array."""
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory: Any = (ctypes.c_uint8 * count).from_address(address)
    found: Array = np.frombuffer(memory, dtype).reshape(shape)
    return found


def launches_work() -> bool:
    """Tell whether lists can be run here."""
    return native_calls_work()


@cache
def _entry() -> Entry:
    library = _library()
    return make_entry(library.address(EXPORT), 1, keep=library)


@cache
def _library() -> Library:
    return link([runtime_code(launches_text(host()), host())], [EXPORT])
