"""Messages, written field by field."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np

from .kinds import BYTES, FIXED32, FIXED64, VARINT
from .varints import Buffer, varint


class MessageWriter:
    """Builds a message field by field; every method returns the writer.

    >>> MessageWriter().varint(1, 150).content().hex()
    '089601'
    """

    def __init__(self) -> None:
        self._parts: list[Buffer] = []

    def content(self) -> bytes:
        """Return the message."""
        return b"".join(self._parts)

    def varint(self, number: int, value: int) -> MessageWriter:
        """Write an integer of int32, int64, uint32 or uint64, an enum or a truth value."""
        return self._put(number, VARINT, varint(int(value)))

    def zigzag(self, number: int, value: int) -> MessageWriter:
        """Write an integer of sint32 or sint64."""
        return self.varint(number, (value << 1) ^ (value >> 63))

    def fixed32(self, number: int, value: int) -> MessageWriter:
        """Write an unsigned integer as four bytes."""
        return self._put(number, FIXED32, struct.pack("<I", value))

    def fixed64(self, number: int, value: int) -> MessageWriter:
        """Write an unsigned integer as eight bytes."""
        return self._put(number, FIXED64, struct.pack("<Q", value))

    def float32(self, number: int, value: float) -> MessageWriter:
        """Write a number as four bytes."""
        return self._put(number, FIXED32, struct.pack("<f", value))

    def float64(self, number: int, value: float) -> MessageWriter:
        """Write a number as eight bytes."""
        return self._put(number, FIXED64, struct.pack("<d", value))

    def raw(self, number: int, value: Buffer) -> MessageWriter:
        """Write bytes."""
        self._put(number, BYTES, varint(len(value)))
        self._parts.append(value)
        return self

    def text(self, number: int, value: str) -> MessageWriter:
        """Write text."""
        return self.raw(number, value.encode())

    def message(self, number: int, inner: MessageWriter) -> MessageWriter:
        """Write a message."""
        return self.raw(number, inner.content())

    def packed_floats(self, number: int, values: Any) -> MessageWriter:
        """Write a list of numbers of four bytes."""
        return self.raw(number, np.asarray(values, "<f4").tobytes())

    def packed_doubles(self, number: int, values: Any) -> MessageWriter:
        """Write a list of numbers of eight bytes."""
        return self.raw(number, np.asarray(values, "<f8").tobytes())

    def packed_varints(self, number: int, values: Iterable[int]) -> MessageWriter:
        """Write a list of integers."""
        return self.raw(number, b"".join(varint(int(value)) for value in values))

    def _put(self, number: int, kind: int, value: Buffer) -> MessageWriter:
        self._parts += (varint(number << 3 | kind), value)
        return self
