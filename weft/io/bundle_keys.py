"""Keys of the slices of partitioned variables: a name and numbers, in bytes that sort as they do.

a number from 0   how many bytes it has, then those, the highest first
text              as it is, 0x00 and 0xff followed by another byte, ended by 0x00 0x01
a signed number   as many leading ones as it has bytes, as UTF-8 does it; flipped if negative
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_END: Final = b"\x00\x01"
_ESCAPED: Final = {0x00: b"\x00\xff", 0xFF: b"\xff\x00"}
_SIGNED_BYTES: Final = 10  # of the longest: two for the leading ones, eight for the number


def slice_key(name: str, place: Iterable[tuple[int, int]]) -> bytes:
    """Return the key of a slice: of each dimension the start and the length, -1 for all of it."""
    extents = list(place)
    made = _unsigned(0) + _text(name.encode()) + _unsigned(len(extents))
    return made + b"".join(_signed(start) + _signed(length) for start, length in extents)


def _unsigned(value: int) -> bytes:
    content = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(content)]) + content


def _text(value: bytes) -> bytes:
    return b"".join(_ESCAPED.get(byte, bytes([byte])) for byte in value) + _END


def _signed(value: int) -> bytes:
    bits = (~value if value < 0 else value).bit_length()
    length = bits // 7 + 1
    content = value.to_bytes(_SIGNED_BYTES, "big", signed=True)[-length:]
    ones = (0xFFFF << (16 - length)) & 0xFFFF  # as many leading ones as there are bytes
    head = bytes([ones >> 8, ones & 0xFF])
    return bytes(a ^ b for a, b in zip(content, head, strict=False)) + content[2:]
