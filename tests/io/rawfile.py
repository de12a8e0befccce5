"""Building safetensors files byte by byte, good and bad."""

import json
import struct
from typing import Any


def entry(dtype: str = "F32", shape: tuple[Any, ...] = (1,), offsets: Any = (0, 4)) -> Any:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def raw(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    """Return a file with this header, and this length of it if another is claimed."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


GOOD = raw({"a": entry(), "b": entry("I64", (2,), (4, 20))}, bytes(range(20)))

# name -> (content, a word of the message)
MALFORMED: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", "header"),
    "shorter than a length": (b"abc", "header"),
    "header length beyond the file": (raw({}, length=2**20), "header"),
    "header length of 2**63": (raw({}, length=2**63), "header"),
    "header length of 2**64 - 1": (raw({}, length=2**64 - 1), "header"),
    "header cut off": (GOOD[:30], "header"),
    "header length of 0": (raw(b""), "header|JSON"),
    "not JSON": (raw(b"{nope"), "JSON"),
    "not UTF-8": (raw(b"\xff\xfe\xfd"), "UTF-8|unicode|utf"),
    "a list": (raw([1, 2]), "JSON"),
    "a number": (raw(b"17"), "JSON"),
    "nested lists": (raw(b"[" * 100_000), "JSON"),
    "nested objects": (raw(b'{"a":' * 100_000), "JSON"),
    "data cut off": (GOOD[:-1], "covered|incomplete"),
    "data too long": (GOOD + b"x", "covered|incomplete"),
    "no data": (raw({"a": entry()}), "covered|incomplete"),
    "overlapping": (raw({"a": entry(), "b": entry(offsets=(2, 6))}, bytes(6)), "offset"),
    "hole": (raw({"a": entry(), "b": entry(offsets=(8, 12))}, bytes(12)), "offset"),
    "hole at the start": (raw({"a": entry(offsets=(4, 8))}, bytes(8)), "offset"),
    "offsets reversed": (raw({"a": entry(offsets=(4, 0))}, bytes(4)), "offset|overflow"),
    "offsets negative": (raw({"a": entry(offsets=(-4, 0))}, bytes(4)), "JSON"),
    "offsets of one number": (raw({"a": entry(offsets=(4,))}, bytes(4)), "JSON"),
    "offsets huge": (raw({"a": entry(offsets=(0, 2**63))}, bytes(4)), "shape|covered|offset|info"),
    "shape larger than data": (raw({"a": entry(shape=(2,))}, bytes(4)), "shape|info"),
    "shape huge": (raw({"a": entry(shape=(2**31, 2**31))}, bytes(4)), "overflow|shape|info"),
    "shape overflows": (raw({"a": entry(shape=(2**40, 2**40))}, bytes(4)), "overflow"),
    "shape overflows to 0": (raw({"a": entry(shape=(2**62, 4), offsets=(0, 0))}), "overflow"),
    "shape negative": (raw({"a": entry(shape=(-1,))}, bytes(4)), "JSON"),
    "shape fractional": (raw({"a": entry(shape=(1.5,))}, bytes(4)), "JSON"),
    "shape text": (raw({"a": entry(shape=("1",))}, bytes(4)), "JSON"),
    "empty but huge": (raw({"a": entry(shape=(0, 2**62), offsets=(0, 0))}), "no array can have"),
    "too many dimensions": (raw({"a": entry(shape=(1,) * 70)}, bytes(4)), "no array can have"),
    "unknown dtype": (raw({"a": entry("F99")}, bytes(4)), "F99"),
    "float8": (raw({"a": entry("F8_E4M3", (4,))}, bytes(4)), "F8_E4M3, which Weft does not have"),
    "complex": (raw({"a": entry("C64", (1,), (0, 8))}, bytes(8)), "C64"),
    "no dtype": (raw({"a": {"shape": [1], "data_offsets": [0, 4]}}, bytes(4)), "JSON"),
    "metadata of numbers": (raw({"__metadata__": {"a": 1}}), "JSON"),
    "metadata a list": (raw({"__metadata__": []}), "JSON|metadata"),
}
