"""Data of a library: texts, numbers and records, each kind in one piece, referred to by address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .image import Address, Image, Word

TEXTS, NUMBERS, RECORDS, CONSTANTS = "weft_texts", "weft_words", "weft_records", "weft_constants"
_LINE = 64


class LibraryData:
    """Collects data, and adds it to an image when all is there."""

    def __init__(self) -> None:
        self._texts = bytearray()
        self._known: dict[str, int] = {}
        self._numbers: list[int] = []
        self._rows: dict[tuple[int, ...], int] = {}
        self._records: list[Word] = []
        self._constants: list[np.ndarray[Any, Any]] = []
        self._constant_bytes = 0
        self._held: dict[int, Address] = {}

    def text(self, text: str) -> Address:
        """Return the address of a text."""
        if text not in self._known:
            self._known[text] = len(self._texts)
            self._texts += text.encode() + b"\0"
        return Address(TEXTS, self._known[text])

    def numbers(self, numbers: Sequence[int]) -> Address:
        """Return the address of numbers of 64 bits; equal ones lie in one place."""
        key = tuple(map(int, numbers))
        if key not in self._rows:
            self._rows[key] = len(self._numbers)
            self._numbers += key
        return Address(NUMBERS, 8 * self._rows[key])

    def records(self, words: Sequence[Word]) -> Address:
        """Return the address of words, some of which are addresses."""
        at = len(self._records)
        self._records += words
        return Address(RECORDS, 8 * at)

    def constant(self, array: np.ndarray[Any, Any]) -> Address:
        """Return the address of an array that is only read."""
        if id(array) not in self._held:
            at = -(-self._constant_bytes // _LINE) * _LINE
            self._constants.append(array)
            self._constant_bytes = at + array.nbytes
            self._held[id(array)] = Address(CONSTANTS, at)
        return self._held[id(array)]

    def add_to(self, image: Image) -> None:
        """Add everything to an image."""
        image.add_bytes(TEXTS, bytes(self._texts) + b"\0")
        image.add_data(NUMBERS, [*self._numbers, 0], constant=True)
        image.add_data(RECORDS, [*self._records, 0])
        if self._constants:
            image.add_blob(CONSTANTS, in_lines(self._constants), self._constant_bytes)


def in_lines(arrays: Sequence[np.ndarray[Any, Any]]) -> Iterator[bytes]:
    """Yield the bytes of arrays, each at a multiple of a cache line."""
    at = 0
    for array in arrays:
        gap = -at % _LINE
        yield bytes(gap)
        yield little_endian(array)
        at += gap + array.nbytes


def little_endian(array: np.ndarray[Any, Any]) -> bytes:
    """Return the bytes of an array in C order."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
