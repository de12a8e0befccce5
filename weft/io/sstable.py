"""Sorted tables of keys and values: the files of LevelDB, and of TensorFlow's checkpoints.

    blocks      entries (bytes shared with the key before, rest of the key, value), then where keys
                stand whole; after each block a byte for its compression and a masked CRC-32C
    the footer  48 bytes: where the block of other things and the index block are, a magic number

The index block leads from the last key of each block to its place. Blocks that are compressed
(snappy, in LevelDB's own files) are refused, and said to be.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from .crc32c import masked_crc32c
from .errors import FileFormatError, FileMissingError, ReadError
from .wire import WireError, read_varint, varint

_MAGIC: Final = struct.pack("<Q", 0xDB4775248B80FB57)
_FOOTER: Final = 48
_TRAILER: Final = struct.Struct("<BI")  # how a block is compressed, and its checksum
_PLAIN: Final = 0
_COMPRESSIONS: Final = {1: "snappy", 2: "zlib", 4: "zlib", 7: "zstd"}
_RESTART: Final = 16  # keys from one that stands whole to the next
_BLOCK: Final = 1 << 12  # bytes after which a block is ended
# Keys that share their beginnings are short in a file and long when they are read. No table of ours
# or TensorFlow's comes near this many times its own size; one that was made to fill memory does.
_EXPANSION: Final = 100


class SortedTable:
    """A table file: its keys and values, in the order of the keys.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "table")
    >>> write_table(path, {b"b": b"2", b"a": b"1"})
    >>> dict(SortedTable(path).items())
    {b'a': b'1', b'b': b'2'}
    """

    def __init__(self, path: Any) -> None:
        self.path = Path(path)
        self._data = memoryview(_content(self.path))
        self._index = self._read_footer()

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys and values, after the checksum of their block was compared."""
        left = _EXPANSION * len(self._data)
        for _, handle in self._entries(*self._index):
            offset, at = self._varint(handle, 0, self._index[0])
            size, _ = self._varint(handle, at, self._index[0])
            for key, value in self._entries(offset, size):
                left -= len(key)
                if left < 0:
                    raise self._error(offset, "keys take more memory than any whole table has")
                yield key, value

    # -- parts -------------------------------------------------------------------------------------

    def _error(self, offset: int, problem: str) -> FileFormatError:
        return FileFormatError(f"{self.path}, offset {offset}: {problem}")

    def _varint(self, data: Any, at: int, offset: int) -> tuple[int, int]:
        try:
            return read_varint(data, at, offset)
        except WireError as error:
            raise self._error(error.offset, error.problem) from None

    def _read_footer(self) -> tuple[int, int]:
        """Return where the index block is, and its size."""
        start = len(self._data) - _FOOTER
        if start < 0 or self._data[-8:] != _MAGIC:
            raise self._error(
                max(start, 0),
                f"expected a table, which ends with {_MAGIC.hex()}; found "
                f"{self._data[-8:].hex() or 'nothing'}",
            )
        footer = self._data[start:-8]
        at = self._varint(footer, 0, start)[1]
        at = self._varint(footer, at, start)[1]  # the block of other things is passed over
        offset, at = self._varint(footer, at, start)
        return offset, self._varint(footer, at, start)[0]

    def _block(self, offset: int, size: int) -> memoryview:
        """Return a block after comparing its checksum."""
        if offset + size + _TRAILER.size > len(self._data):
            raise self._error(
                offset, f"a block claims {size} bytes, and the file has {len(self._data)}"
            )
        kind, stored = _TRAILER.unpack_from(self._data, offset + size)
        computed = masked_crc32c(self._data[offset : offset + size + 1])
        if stored != computed:
            raise self._error(
                offset,
                f"the checksum of a block of {size} bytes is {stored:#010x} instead of "
                f"{computed:#010x}: the file is damaged",
            )
        if kind != _PLAIN:
            raise self._error(
                offset,
                f"the block is compressed ({_COMPRESSIONS.get(kind, f'kind {kind}')}), and only "
                "tables without compression are read; write it again without",
            )
        return self._data[offset : offset + size]

    def _entries(self, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
        block = self._block(offset, size)
        restarts = struct.unpack_from("<I", block, size - 4)[0] if size >= 4 else size
        stop = size - 4 * (restarts + 1)
        if stop < 0:
            raise self._error(offset, f"a block of {size} bytes claims {restarts} whole keys")
        at, key = 0, b""
        while at < stop:
            start = at
            shared, at = self._varint(block[:stop], at, offset)
            rest, at = self._varint(block[:stop], at, offset)
            length, at = self._varint(block[:stop], at, offset)
            if shared > len(key) or rest + length > stop - at:
                raise self._error(
                    offset + start,
                    f"an entry shares {shared} bytes with a key of {len(key)}, and claims "
                    f"{rest + length} of {stop - at} bytes",
                )
            key = key[:shared] + block[at : at + rest].tobytes()
            at += rest + length
            yield key, block[at - length : at].tobytes()


def is_table(path: Any) -> bool:
    """Tell by the last bytes of a file whether it is a table."""
    place = Path(path)
    if not place.is_file() or place.stat().st_size < _FOOTER:
        return False
    with place.open("rb") as file:
        file.seek(-len(_MAGIC), 2)
        return file.read() == _MAGIC


def write_table(path: Any, entries: Mapping[bytes, bytes]) -> None:
    """Write keys and values as a table without compression."""
    made, index = bytearray(), {}
    block = _BlockWriter()
    for key in sorted(entries):
        block.add(key, entries[key])
        if len(block.content) >= _BLOCK:
            index[key] = _appended(made, block)
            block = _BlockWriter()
    if block.count or not index:
        index[max(entries, default=b"")] = _appended(made, block)
    others = _appended(made, _BlockWriter())
    leading = _BlockWriter(1)
    for key in sorted(index):
        leading.add(key, index[key])
    footer = others + _appended(made, leading)
    Path(path).write_bytes(made + footer.ljust(_FOOTER - 8, b"\0") + _MAGIC)


class _BlockWriter:
    """Entries that follow one another; every `interval`-th key stands whole."""

    def __init__(self, interval: int = _RESTART) -> None:
        self.content = bytearray()
        self.count = 0
        self._interval = interval
        self._restarts = [0]
        self._last = b""

    def add(self, key: bytes, value: bytes) -> None:
        """Add an entry; keys come in their order."""
        shared = 0
        if self.count % self._interval:
            most = min(len(key), len(self._last))
            shared = next((i for i in range(most) if key[i] != self._last[i]), most)
        elif self.count:
            self._restarts.append(len(self.content))
        self.content += varint(shared) + varint(len(key) - shared) + varint(len(value))
        self.content += key[shared:] + value
        self._last = key
        self.count += 1

    def finished(self) -> bytes:
        """Return the block with where keys stand whole."""
        places = (*self._restarts, len(self._restarts))
        return bytes(self.content) + struct.pack(f"<{len(places)}I", *places)


def _appended(made: bytearray, block: _BlockWriter) -> bytes:
    """Add a block to a file; return where it is and its size, as an index holds them."""
    content = block.finished() + bytes([_PLAIN])
    handle = varint(len(made)) + varint(len(content) - 1)
    made += content + struct.pack("<I", masked_crc32c(content))
    return handle


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise FileMissingError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise ReadError(f"cannot read {path}: {error}") from error
