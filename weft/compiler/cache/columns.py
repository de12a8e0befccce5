"""Plans as plain data: JSON of lists, numbers and words, then the bytes of arrays.

Each part of a plan has a kind, which writes and reads a column: a list of items of that kind. So a
plan is a table, and what is checked is checked by the column. Reading makes what the kinds name and
nothing else. What belongs to the process is kept by number (states and constants of the program) or
by name (operators, dtypes).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import Array, as_dtype
from ...graph.identity.fingerprint import Fingerprint
from ...graph.state import State
from ...lower.storage import Buffer

MAGIC = b"WEFTPLN1"
_HEAD = struct.Struct("<8sQ")


class NotPlainError(Exception):
    """A plan holds what only the process that made it has."""


class ForeignError(ValueError):
    """Bytes are no plan of this program."""


class Writer:
    """Numbers what is referred to: states, and the buffers and arrays that are met."""

    def __init__(self, known: Fingerprint) -> None:
        self.buffers: dict[Buffer, int] = {}
        self.held: list[Array] = []  # arrays that are none of the program's
        self._arrays = {id(literal.array): i for i, literal in enumerate(known.literals)}
        self._literals = len(known.literals)
        self._states = {state: i for i, state in enumerate(known.states)}

    def buffer(self, buffer: Buffer) -> int:
        """Return the number of a buffer; those behind a window are numbered before it."""
        number = self.buffers.get(buffer)
        if number is None:
            if buffer.window is not None:
                self.buffer(buffer.window.buffer)
                self.buffer(buffer.window.word)
            number = self.buffers[buffer] = len(self.buffers)
        return number

    def array(self, array: Array) -> int:
        """Return the number of an array: of the program's constants, then those that are held."""
        number = self._arrays.get(id(array))
        if number is None:
            number = self._arrays[id(array)] = self._literals + len(self.held)
            self.held.append(array)
        return number

    def state(self, state: State) -> int:
        """Return the number of a state of the program."""
        if state not in self._states:
            raise NotPlainError(f"{state} is not one of the program's")
        return self._states[state]


class Reader:
    """Finds by number what is referred to."""

    def __init__(self, known: Fingerprint) -> None:
        self.states = known.states
        self.arrays = [literal.array for literal in known.literals]
        self.buffers: list[Buffer] = []


# -- bytes -----------------------------------------------------------------------------------------


def to_bytes(tables: Any, arrays: Sequence[Array]) -> bytes:
    """Return plain data and arrays as bytes."""
    text = json.dumps(tables, separators=(",", ":")).encode()
    blobs = [np.ascontiguousarray(array).tobytes() for array in arrays]
    return b"".join((_HEAD.pack(MAGIC, len(text)), text, *blobs))


def from_bytes(content: bytes) -> tuple[Any, memoryview]:
    """Return the plain data in bytes, and the bytes of arrays that follow it."""
    if len(content) < _HEAD.size:
        raise ForeignError(f"a plan has at least {_HEAD.size} bytes. Received: {len(content)}")
    magic, length = _HEAD.unpack_from(content)
    if magic != MAGIC:
        raise ForeignError(f"a plan starts with {MAGIC!r}. Received: {magic!r}")
    start = _HEAD.size
    text = content[start : start + length].decode("ascii")
    return json.loads(text), memoryview(content)[start + length :]


def arrays_in(blobs: memoryview, types: Iterable[tuple[Any, Any]]) -> list[Array]:
    """Return the arrays that lie one after another, each with memory of its own."""
    made: list[Array] = []
    start = 0
    for dtype, shape in types:
        array: Array = np.ndarray(shape, dtype, blobs, start)
        start += array.nbytes
        made.append(array.copy())
    return made


# -- kinds -----------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """How a column of items is written and read."""

    write: Callable[[Writer, Sequence[Any]], Any]
    read: Callable[[Reader, Any], list[Any]]


def plain(expected: type) -> Kind:
    """Return the kind of numbers and words that JSON has itself."""

    def read(_: Reader, data: Any) -> list[Any]:
        if data.__class__ is not list or not {expected}.issuperset(map(type, data)):
            raise ForeignError(f"expected a list of {expected.__name__}. Received: {data!r:.60}")
        found: list[Any] = data
        return found

    return Kind(lambda _, items: list(items), read)


_NUMBERS, _WORDS, _TRUTHS = plain(int), plain(str), plain(bool)


def numbered(
    number: Callable[[Writer, Any], int], known: Callable[[Reader], Sequence[Any]]
) -> Kind:
    """Return the kind of what is referred to by number."""

    def read(r: Reader, data: Any) -> list[Any]:
        numbers, found = _NUMBERS.read(r, data), known(r)
        if numbers and not 0 <= min(numbers) <= max(numbers) < len(found):
            raise ForeignError(f"expected numbers below {len(found)}. Received: {numbers!r:.60}")
        return [found[i] for i in numbers]

    return Kind(lambda w, items: [number(w, x) for x in items], read)


def named(name: Callable[[Any], str], find: Callable[[str], Any]) -> Kind:
    """Return the kind of what is found by its name; each name is looked up once."""

    def read(r: Reader, data: Any) -> list[Any]:
        names = _WORDS.read(r, data)
        found = {word: find(word) for word in set(names)}
        return [found[word] for word in names]

    return Kind(lambda _, items: [name(x) for x in items], read)


def listed(kind: Kind, make: Callable[[Iterable[Any]], Any] = list) -> Kind:
    """Return the kind of lists, or what else is made of items in a row."""

    def write(w: Writer, items: Sequence[Any]) -> Any:
        flat = list(chain.from_iterable(items))
        return [[len(x) for x in items], kind.write(w, flat) if flat else []]

    def read(r: Reader, data: Any) -> list[Any]:
        lengths, inner = data
        flat = kind.read(r, inner) if inner else []
        if sum(_NUMBERS.read(r, lengths)) != len(flat):
            raise ForeignError(f"expected {sum(lengths)} items. Received: {len(flat)}")
        rest = iter(flat)
        return [make(islice(rest, length)) for length in lengths]

    return Kind(write, read)


def optional(kind: Kind) -> Kind:
    """Return the kind of what may be None."""

    def write(w: Writer, items: Sequence[Any]) -> Any:
        there = [x is not None for x in items]
        return [there, kind.write(w, [x for x in items if x is not None])]

    def read(r: Reader, data: Any) -> list[Any]:
        there, inner = data
        rest = iter(kind.read(r, inner))
        return [next(rest) if is_there else None for is_there in _TRUTHS.read(r, there)]

    return Kind(write, read)


def fields(make: Callable[..., Any], kinds: Mapping[str, Kind]) -> Kind:
    """Return the kind of objects that are made of their attributes, in order."""

    def write(w: Writer, items: Sequence[Any]) -> Any:
        return [kind.write(w, [getattr(x, name) for x in items]) for name, kind in kinds.items()]

    return Kind(write, _reads_rows(make, tuple(kinds.values())))


def paired(first: Kind, second: Kind) -> Kind:
    """Return the kind of pairs."""

    def write(w: Writer, items: Sequence[Any]) -> Any:
        return [first.write(w, [a for a, _ in items]), second.write(w, [b for _, b in items])]

    return Kind(write, _reads_rows(lambda a, b: (a, b), (first, second)))


def _reads_rows(
    make: Callable[..., Any], kinds: Sequence[Kind]
) -> Callable[[Reader, Any], list[Any]]:
    def read(r: Reader, data: Any) -> list[Any]:
        columns = [kind.read(r, part) for kind, part in zip(kinds, data, strict=True)]
        if len({len(column) for column in columns}) != 1:
            raise ForeignError(f"expected columns of one length. Received: {data!r:.60}")
        return list(map(make, *columns))

    return read


def mapped(key: Kind, value: Kind) -> Kind:
    """Return the kind of dictionaries, which keep their order."""
    pairs = listed(paired(key, value), dict)
    return Kind(lambda w, items: pairs.write(w, [x.items() for x in items]), pairs.read)


_BASES = (np.ndarray, np.dtype, np.generic)  # whose classes are many; others are meant exactly


def tagged(kinds: Mapping[type, tuple[str, Kind]]) -> Kind:
    """Return the kind of what is one of several classes, told by a word; others are not plain."""
    by_word = dict(kinds.values())

    def word(x: Any) -> str:
        base = next((base for base in _BASES if isinstance(x, base)), x.__class__)
        if base not in kinds:
            raise NotPlainError(f"{type(x).__name__} has no place in a plan")
        return kinds[base][0]

    def write(w: Writer, items: Sequence[Any]) -> Any:
        words = [word(x) for x in items]
        apart: dict[str, list[Any]] = {}
        for tag, x in zip(words, items, strict=True):
            apart.setdefault(tag, []).append(x)
        return [words, {tag: by_word[tag].write(w, some) for tag, some in apart.items()}]

    def read(r: Reader, data: Any) -> list[Any]:
        words, apart = data
        rest = {tag: iter(by_word[tag].read(r, column)) for tag, column in apart.items()}
        return [next(rest[tag]) for tag in _WORDS.read(r, words)]

    return Kind(write, read)


def late(find: Callable[[], Kind]) -> Kind:
    """Return a kind that is known only later: one that holds itself."""
    return Kind(lambda w, items: find().write(w, items), lambda r, data: find().read(r, data))


def nothing(item: Any) -> Kind:
    """Return the kind of what has no content: one item, as often as it is counted."""
    return Kind(lambda _, items: len(items), lambda _, data: [item] * min(data, _MOST))


_MOST = 1_000_000  # items without content, of which a few bytes could ask for any number

DTYPE = named(lambda dtype: dtype.name, as_dtype)
SIZES = listed(_NUMBERS, tuple)
