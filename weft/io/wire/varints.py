"""Integers in as few bytes as they need: seven bits in each, the low ones first."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from ..errors import FileFormatError

Buffer: TypeAlias = bytes | bytearray | memoryview
Array: TypeAlias = np.ndarray[Any, Any]

_LARGEST: Final = 10  # bytes


class WireError(FileFormatError):
    """Bytes are no message, or not the one expected; `offset` says where."""

    def __init__(self, offset: int, problem: str) -> None:
        super().__init__(offset, problem)
        self.offset = offset
        self.problem = problem

    def __str__(self) -> str:
        return f"offset {self.offset}: {self.problem}"


def read_varint(data: Buffer, at: int, offset: int = 0) -> tuple[int, int]:
    r"""Return the varint at a place, 0 to 2**64 - 1, and the place after it.

    >>> read_varint(b"\xac\x02", 0)
    (300, 2)
    """
    value = shift = 0
    for place in range(at, min(at + _LARGEST, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                raise WireError(offset + at, "a varint is larger than 64 bits")
            return value, place + 1
        shift += 7
    problem = "is longer than 10 bytes" if len(data) - at >= _LARGEST else "was cut off"
    raise WireError(offset + at, f"a varint {problem}")


def unpack_varints(data: Buffer) -> Array | None:
    r"""Return varints that stand one after another as a uint64 array; None if they are damaged.

    >>> unpack_varints(b"\x01\xac\x02").tolist()
    [1, 300]
    """
    values = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(values < 0x80)
    if not len(values):
        return np.zeros(0, np.uint64)
    if not len(ends) or ends[-1] != len(values) - 1:
        return None
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > _LARGEST or (values[ends[lengths == _LARGEST]] > 1).any():
        return None
    made = np.zeros(len(ends), np.uint64)
    for k in range(longest):
        there = np.flatnonzero(lengths > k)
        part = (values[starts[there] + k] & 0x7F).astype(np.uint64)
        made[there] |= part << np.uint64(7 * k)
    return made


def varint(value: int) -> bytes:
    """Return an integer as a varint; a negative one as its 64 bits.

    >>> varint(300).hex(), len(varint(-1))
    ('ac02', 10)
    """
    rest = value & ((1 << 64) - 1)
    made = bytearray()
    while rest >= 0x80:
        made.append(rest & 0x7F | 0x80)
        rest >>= 7
    made.append(rest)
    return bytes(made)
