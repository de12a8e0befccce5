"""Compressed files, read no further than they are asked for."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from .bounded import CHUNK
from .errors import DataFileError

_ANY_HEADER: Final = zlib.MAX_WBITS | 32  # gzip's or zlib's


class Inflating:
    """The bytes of a gzip or zlib file, as a stream; gzip's members follow one another."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._engine = zlib.decompressobj(_ANY_HEADER)
        self._waiting = b""  # compressed bytes that were read and not used yet

    def read(self, count: int) -> bytes:
        """Return up to `count` bytes; none at the end."""
        while True:
            if self._engine.eof and not self._next_member():
                return b""
            given = self._waiting or self._file.read(CHUNK)
            made = self._engine.decompress(given, count)
            self._waiting = self._engine.unconsumed_tail
            if made:
                return made
            if not given and not self._engine.eof:
                raise EOFError("the compressed data end in the middle")

    def _next_member(self) -> bool:
        rest = self._engine.unused_data or self._file.read(CHUNK)
        if not rest.strip(b"\0"):  # zeros may fill a file up
            return False
        self._engine, self._waiting = zlib.decompressobj(_ANY_HEADER), rest
        return True


@contextmanager
def opened(path: str, is_compressed: bool) -> Iterator[Any]:
    """Open a file for reading; say of compressed data that are damaged that they are."""
    with open(path, "rb") as file:
        try:
            yield Inflating(file) if is_compressed else file
        except (EOFError, zlib.error) as error:
            raise DataFileError(path, None, f"damaged compressed data: {error}") from None
