"""Messages, read: the fields of one by number."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .kinds import BYTES, FIXED32, FIXED64, GROUP, GROUP_END, NAMES, VARINT
from .varints import Array, Buffer, WireError, read_varint, unpack_varints

MAX_DEPTH: Final = 100  # messages in messages, as protobuf's own readers allow
_MAX_NUMBER: Final = (1 << 29) - 1
_WIDTH: Final = 3  # of what is kept of a field: its wire type, where its value starts and stops


class Message:
    """The fields of one message, by number.

    data     the bytes of the message
    offset   where they stand in the file, for errors
    name     what errors call the message

    Singular getters return the last value, as the format asks for, or a default. Lists of numbers
    are read packed and one by one alike.

    >>> from weft.io import wire
    >>> made = wire.MessageWriter().varint(1, 150).text(2, "abc").packed_floats(3, [1.0, 2.5])
    >>> message = wire.Message(made.content())
    >>> message.integer(1), message.text(2), message.floats(3).tolist(), 4 in message
    (150, 'abc', [1.0, 2.5], False)
    """

    def __init__(
        self, data: Buffer, *, offset: int = 0, name: str = "message", depth: int = 0
    ) -> None:
        if depth > MAX_DEPTH:
            raise WireError(offset, f"messages are nested more than {MAX_DEPTH} deep")
        self.data = memoryview(data).cast("B")
        self.offset = offset
        self.name = name
        self._depth = depth
        self._found: dict[int, array[int]] = {}
        at = 0
        while at < len(self.data):
            at = self._enter(at)

    def __contains__(self, number: int) -> bool:
        return number in self._found

    def numbers(self) -> list[int]:
        """Return the numbers of the fields that are there, in the order of their first values."""
        return list(self._found)

    def count(self, number: int) -> int:
        """Return how many values a field has; a packed list counts as one."""
        return len(self._found.get(number, ())) // _WIDTH

    # -- one value -----------------------------------------------------------------------------

    def integer(self, number: int, default: int = 0) -> int:
        """Return a signed integer: int32, int64 or an enum."""
        value = self.unsigned(number, default)
        return value - (1 << 64) if value >= 1 << 63 else value

    def unsigned(self, number: int, default: int = 0) -> int:
        """Return an integer of uint32 or uint64."""
        place = self._last(number, VARINT)
        return default if place is None else read_varint(self.data, place[0], self.offset)[0]

    def zigzag(self, number: int, default: int = 0) -> int:
        """Return an integer of sint32 or sint64."""
        if number not in self:
            return default
        value = self.unsigned(number)
        return (value >> 1) ^ -(value & 1)

    def boolean(self, number: int, default: bool = False) -> bool:
        """Return a truth value."""
        return bool(self.unsigned(number, int(default)))

    def fixed32(self, number: int, default: int = 0) -> int:
        """Return an unsigned integer of four bytes."""
        return int(self._fixed(number, FIXED32, "<I", default))

    def fixed64(self, number: int, default: int = 0) -> int:
        """Return an unsigned integer of eight bytes."""
        return int(self._fixed(number, FIXED64, "<Q", default))

    def float32(self, number: int, default: float = 0.0) -> float:
        """Return a number of four bytes."""
        return float(self._fixed(number, FIXED32, "<f", default))

    def float64(self, number: int, default: float = 0.0) -> float:
        """Return a number of eight bytes."""
        return float(self._fixed(number, FIXED64, "<d", default))

    def view(self, number: int, default: Buffer = b"") -> memoryview:
        """Return bytes as a view of those that were given."""
        place = self._last(number, BYTES)
        return memoryview(default) if place is None else self.data[slice(*place)]

    def raw(self, number: int, default: Buffer = b"") -> bytes:
        """Return bytes."""
        return self.view(number, default).tobytes()

    def text(self, number: int, default: str = "") -> str:
        """Return text."""
        place = self._last(number, BYTES)
        return default if place is None else self._decoded(number, *place)

    def message(self, number: int, name: str | None = None) -> Message | None:
        """Return a message, its values one after another if there are several; None for none."""
        places = list(self._places(number, BYTES))
        if len(places) < 2:
            return self._inner(number, *places[0], name) if places else None
        joined = b"".join(self.data[start:stop] for start, stop in places)
        return Message(
            joined,
            offset=self.offset + places[0][0],
            name=name or f"field {number} of {self.name}",
            depth=self._depth + 1,
        )

    # -- many ----------------------------------------------------------------------------------

    def integers(self, number: int) -> Array:
        """Return a list of int32, int64 or enums as an int64 array."""
        return self.unsigneds(number).view(np.int64)

    def unsigneds(self, number: int) -> Array:
        """Return a list of uint32 or uint64 as a uint64 array."""
        parts = [
            self._varint(start) if kind == VARINT else self._varints(start, stop)
            for kind, start, stop in self._listed(number, VARINT)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.uint64)

    def floats(self, number: int) -> Array:
        """Return a list of numbers of four bytes; a packed one is a view of what was given."""
        return self._fixed_list(number, FIXED32, np.dtype("<f4"))

    def doubles(self, number: int) -> Array:
        """Return a list of numbers of eight bytes; a packed one is a view of what was given."""
        return self._fixed_list(number, FIXED64, np.dtype("<f8"))

    def views(self, number: int) -> Iterator[memoryview]:
        """Yield the values of a repeated field of bytes as views."""
        return (self.data[start:stop] for start, stop in self._places(number, BYTES))

    def texts(self, number: int) -> list[str]:
        """Return the values of a repeated field of text."""
        return [self._decoded(number, *place) for place in self._places(number, BYTES)]

    def messages(self, number: int, name: str | None = None) -> Iterator[Message]:
        """Yield the messages of a repeated field."""
        return (self._inner(number, *place, name) for place in self._places(number, BYTES))

    def map(self, number: int, name: str | None = None) -> dict[str, Message]:
        """Return the messages of a map from text; of entries with one key the last stands."""
        found = {}
        for entry in self.messages(number, name):
            inner = entry.message(2, name)
            empty = Message(b"", offset=entry.offset, depth=self._depth + 2)
            found[entry.text(1)] = empty if inner is None else inner
        return found

    # -- how fields are found ------------------------------------------------------------------

    def _enter(self, at: int) -> int:
        """Note the field at a place; return the place after it."""
        number, kind, start = self._key(at)
        if kind == GROUP_END:
            raise self._error(at, f"a group of number {number} ends that never began")
        stop = self._skip(number, kind, start)
        entry = self._found.get(number)
        if entry is None:
            entry = self._found[number] = array("q")
        if kind == BYTES:  # the value stands behind its length
            start = read_varint(self.data, start, self.offset)[1]
        entry.extend((kind, start, stop))
        return stop

    def _key(self, at: int) -> tuple[int, int, int]:
        key, start = read_varint(self.data, at, self.offset)
        number, kind = key >> 3, key & 7
        if not 0 < number <= _MAX_NUMBER or kind > FIXED32:
            raise self._error(
                at, f"expected a field, found number {number} of wire type {kind}; is it a message?"
            )
        return number, kind, start

    def _skip(self, number: int, kind: int, start: int) -> int:
        """Return the place after a value."""
        if kind == VARINT:
            return read_varint(self.data, start, self.offset)[1]
        if kind == GROUP:
            return self._skip_group(number, start)
        length = 8 if kind == FIXED64 else 4
        if kind == BYTES:
            length, start = read_varint(self.data, start, self.offset)
        if length > len(self.data) - start:
            raise self._error(
                start,
                f"field {number} claims {length} bytes, and {len(self.data) - start} are left",
            )
        return start + length

    def _skip_group(self, number: int, at: int) -> int:
        """Return the place after a group, the old form of a message; they are passed over."""
        still_open = [number]
        while still_open:
            if self._depth + len(still_open) > MAX_DEPTH:
                raise self._error(at, f"groups are nested more than {MAX_DEPTH} deep")
            if at >= len(self.data):
                raise self._error(at, f"the group of number {still_open[-1]} does not end")
            inner, kind, start = self._key(at)
            if kind == GROUP:
                still_open.append(inner)
                at = start
            elif kind == GROUP_END:
                if inner != still_open.pop():
                    raise self._error(at, f"a group of number {inner} ends that never began")
                at = start
            else:
                at = self._skip(inner, kind, start)
        return at

    # -- how values are read -------------------------------------------------------------------

    def _error(self, at: int, problem: str) -> WireError:
        return WireError(self.offset + at, f"{self.name}: {problem}")

    def _fields(self, number: int) -> Iterator[tuple[int, int, int]]:
        entry = self._found.get(number, ())
        for i in range(0, len(entry), _WIDTH):
            yield entry[i], entry[i + 1], entry[i + 2]

    def _places(self, number: int, wanted: int) -> Iterator[tuple[int, int]]:
        for kind, start, stop in self._fields(number):
            self._check(number, kind, wanted, start)
            yield start, stop

    def _listed(self, number: int, wanted: int) -> Iterator[tuple[int, int, int]]:
        for kind, start, stop in self._fields(number):
            if kind != BYTES:
                self._check(number, kind, wanted, start)
            yield kind, start, stop

    def _check(self, number: int, kind: int, wanted: int, at: int) -> None:
        if kind != wanted:
            raise self._error(at, f"field {number} should be {NAMES[wanted]}; found {NAMES[kind]}")

    def _last(self, number: int, wanted: int) -> tuple[int, int] | None:
        entry = self._found.get(number)
        if entry is None:
            return None
        self._check(number, entry[-3], wanted, entry[-2])
        return entry[-2], entry[-1]

    def _fixed(self, number: int, kind: int, code: str, default: Any) -> Any:
        place = self._last(number, kind)
        return default if place is None else struct.unpack_from(code, self.data, place[0])[0]

    def _fixed_list(self, number: int, kind: int, dtype: np.dtype[Any]) -> Array:
        parts = []
        for found, start, stop in self._listed(number, kind):
            if (stop - start) % dtype.itemsize:
                raise self._error(
                    start,
                    f"field {number} has {stop - start} bytes, no whole number of values of "
                    f"{dtype.itemsize} (wire type {found})",
                )
            parts.append(np.frombuffer(self.data[start:stop], dtype))
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, dtype), *parts])

    def _varint(self, start: int) -> Array:
        return np.array([read_varint(self.data, start, self.offset)[0]], np.uint64)

    def _varints(self, start: int, stop: int) -> Array:
        """Return the values of a packed list."""
        values = unpack_varints(self.data[start:stop])
        if values is None:
            raise self._error(start, "a packed list of varints is damaged")
        return values

    def _decoded(self, number: int, start: int, stop: int) -> str:
        try:
            return str(self.data[start:stop], "utf-8")
        except UnicodeDecodeError as error:
            raise self._error(
                start + error.start, f"field {number} should be text in UTF-8: {error.reason}"
            ) from None

    def _inner(self, number: int, start: int, stop: int, name: str | None) -> Message:
        return Message(
            self.data[start:stop],
            offset=self.offset + start,
            name=name or f"field {number} of {self.name}",
            depth=self._depth + 1,
        )
