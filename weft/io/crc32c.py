"""CRC-32C (Castagnoli), the checksum of TFRecords, LevelDB tables and TensorFlow's checkpoints.

The checksum of a message is the sum (XOR) of what each of its bytes gives by its distance from the
end, so a block is one gather from a table of distances and one reduction; blocks are then joined,
each moving what came before by its own length.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

_POLYNOMIAL: Final = 0x82F63B78  # of Castagnoli, its bits reversed
_BLOCK: Final = 1024  # bytes in a block
_ROWS: Final = 256  # blocks that are taken at once, so that memory stays small
_SHORT: Final = 32  # bytes, up to which one by one is faster
_MASK_DELTA: Final = 0xA282EAD8
_ONES: Final = 0xFFFFFFFF


def crc32c(data: Any, start: int = 0) -> int:
    """Return the CRC-32C of bytes; `start` is that of the bytes before them.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    values = np.frombuffer(data, np.uint8)
    register = start ^ _ONES
    whole = len(values) // _BLOCK * _BLOCK
    for at in range(0, whole, _BLOCK * _ROWS):
        part = values[at : min(at + _BLOCK * _ROWS, whole)]
        for block in _sums(part.reshape(-1, _BLOCK)).tolist():
            register = _moved(register) ^ block
    rest = values[whole:]
    if len(rest) > _SHORT:
        return _long_rest(register, rest) ^ _ONES
    for byte in rest.tolist():
        register = _bytewise()[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register ^ _ONES


def masked_crc32c(data: Any) -> int:
    """Return the checksum as files hold it: turned and shifted, for data that hold checksums too.

    >>> hex(masked_crc32c(b"123456789"))
    '0xc78ab0e5'
    """
    return mask(crc32c(data))


def mask(value: int) -> int:
    """Return a checksum in the form that files hold."""
    return ((value >> 15 | value << 17) + _MASK_DELTA) & _ONES


def unmask(value: int) -> int:
    """Return the checksum that a file holds in its own form."""
    turned = (value - _MASK_DELTA) & _ONES
    return (turned >> 17 | turned << 15) & _ONES


def _sums(blocks: Array) -> Array:
    """Return what each block gives by itself, shape (blocks,)."""
    width = blocks.shape[1]
    places = blocks + np.arange(width - 1, -1, -1, dtype=np.int32) * np.int32(256)
    sums: Array = np.bitwise_xor.reduce(_distances().take(places), axis=1)
    return sums


def _long_rest(register: int, rest: Array) -> int:
    """Return the register after fewer bytes than a block has; it is added to the first four."""
    first = rest[:4] ^ np.frombuffer(register.to_bytes(4, "little"), np.uint8)
    return int(_sums(np.concatenate([first, rest[4:]])[None])[0])


def _moved(register: int) -> int:
    """Return the register after a block of zeros."""
    a, b, c, d = _block_of_zeros()
    return (
        a[register & 0xFF] ^ b[register >> 8 & 0xFF] ^ c[register >> 16 & 0xFF] ^ d[register >> 24]
    )


@cache
def _bytewise() -> list[int]:
    """Return the register after each byte, from nothing."""
    table: list[int] = _table().tolist()
    return table


@cache
def _table() -> Array:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


@cache
def _distances() -> Array:
    """Return what a byte gives that has d bytes behind it, at 256 d + byte."""
    table = _table()
    rows = [table]
    for _ in range(_BLOCK - 1):
        rows.append(table[rows[-1] & 0xFF] ^ rows[-1] >> 8)
    return np.concatenate(rows)


@cache
def _block_of_zeros() -> list[list[int]]:
    """Return four tables: what a block of zeros makes of each byte of the register.

    A byte in the register is as good as that byte in the data: the first one has a block less one
    byte behind it.
    """
    rows = _distances().reshape(_BLOCK, 256)
    return [rows[_BLOCK - 1 - i].tolist() for i in range(4)]
