"""TFRecord files: records of bytes with checksums, plain or compressed with gzip or zlib.

A record is its length as eight bytes, the checksum of those, its bytes, and the checksum of them;
integers are little-endian, checksums are masked CRC-32C. A plain file is a dataset with items by
index (`TFRecordDataset`); a compressed one can only be read from the start (`TFRecordStream`).
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Final

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..io import crc32c, wire
from .bounded import read_at_most, remaining_bytes
from .checks import as_choice, check_callable
from .dataset import Dataset, normal_index
from .errors import DataFileError, check_file
from .example import parse_example
from .inflate import opened
from .iterable import IterableDataset, Keep
from .streams import Array, enter_item

COMPRESSIONS: Final = ("auto", "none", "gzip", "zlib")
_HEAD: Final = struct.Struct("<QI")  # the length and its checksum
_FOOT: Final = struct.Struct("<I")
_GZIP_MAGIC: Final = b"\x1f\x8b"
_WBITS: Final = {"gzip": zlib.MAX_WBITS | 16, "zlib": zlib.MAX_WBITS}


def read_tfrecords(path: Any, *, compression: str = "auto", check: bool = True) -> Iterator[bytes]:
    """Yield the records of a TFRecord file.

    compression   "none", "gzip" or "zlib"; by default what the first bytes say
    check         whether the checksums of records are compared; those of lengths always are

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "a.tfrecord")
    >>> write_tfrecords(path, [b"one", b"two"])
    >>> list(read_tfrecords(path))
    [b'one', b'two']
    """
    return (content for _, content in _walk(check_file(path), compression, check))


def write_tfrecords(path: Any, records: Iterable[Any], *, compression: str = "none") -> None:
    """Write records of bytes as a TFRecord file."""
    with TFRecordWriter(path, compression=compression) as writer:
        for record in records:
            writer.write(record)


class TFRecordWriter:
    """Writes records into a TFRecord file; use it in `with`, or close it."""

    def __init__(self, path: Any, *, compression: str = "none") -> None:
        as_choice(self, "compression", compression, COMPRESSIONS[1:])
        wbits = _WBITS.get(compression)
        self._engine = None if wbits is None else zlib.compressobj(wbits=wbits)
        self._file = open(os.fspath(path), "wb")  # noqa: SIM115  (`close` closes it)

    def write(self, record: bytes | bytearray | memoryview) -> None:
        """Write one record."""
        if not isinstance(record, bytes | bytearray | memoryview):
            raise ArgumentTypeError(
                f"TFRecordWriter: a record is bytes. Received: {type(record).__name__}"
            )
        length = struct.pack("<Q", len(record))
        head = length + _FOOT.pack(crc32c.masked_crc32c(length))
        self._put(head + bytes(record) + _FOOT.pack(crc32c.masked_crc32c(record)))

    def flush(self) -> None:
        """Put everything written so far into the file."""
        if self._engine is not None:
            self._file.write(self._engine.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        """Finish the file; doing so twice is harmless."""
        if not self._file.closed:
            if self._engine is not None:
                self._file.write(self._engine.flush())
            self._file.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _put(self, content: bytes) -> None:
        if self._file.closed:
            raise ArgumentError("TFRecordWriter: the file is closed; open another one")
        self._file.write(content if self._engine is None else self._engine.compress(content))


class TFRecordDataset(Dataset):
    """The records of plain TFRecord files, by index.

    paths   a file, or several
    parse   makes an item of the bytes of a record; by default `parse_example`, which gives the
            features of a tf.train.Example as a dictionary
    check   whether the checksums of records are compared

    Where records stand is found by walking over their lengths once; a record is read, and its
    checksum compared, when it is asked for. Compressed files are for `TFRecordStream`.
    """

    def __init__(
        self, paths: Any, parse: Callable[[bytes], Any] | None = None, *, check: bool = True
    ) -> None:
        self.paths = _all_files(paths)
        self._parse, self._check = _parser(self, parse), check
        starts = [_record_starts(path) for path in self.paths]
        files = [np.full(len(found), i) for i, found in enumerate(starts)]
        # column 0: the file, column 1: where the record starts in it
        self._index = np.stack([np.concatenate(files), np.concatenate(starts)], axis=1)

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, index: Any) -> Any:
        number, start = self._index[normal_index(index, len(self), "TFRecordDataset")].tolist()
        path = self.paths[number]
        with open(path, "rb") as file:  # an open file does not survive the way to a worker
            file.seek(start)
            content = _next_record(path, file, start, self._check)
        if content is None:
            raise DataFileError(path, f"offset {start}", "the file was cut off since it was opened")
        return _parsed(self._parse, content, path, start)


class TFRecordStream(IterableDataset):
    """The records of TFRecord files one after another, plain or compressed.

    paths, parse, check   as those of `TFRecordDataset`
    compression           "none", "gzip" or "zlib"; by default what the first bytes of a file say

    Records that another worker takes, or that a loader skips to resume, are not parsed.
    """

    def __init__(
        self,
        paths: Any,
        parse: Callable[[bytes], Any] | None = None,
        *,
        compression: str = "auto",
        check: bool = True,
    ) -> None:
        self.paths = _all_files(paths)
        self._parse, self._check = _parser(self, parse), check
        self._compression = as_choice(self, "compression", compression, COMPRESSIONS)

    def __iter__(self) -> Iterator[Any]:
        return self.select(lambda place: True)

    def select(self, keep: Keep) -> Iterator[Any]:
        """Yield the items at the places that `keep` names, parsing no others."""
        place = 0
        for path in self.paths:
            for start, content in _walk(path, self._compression, self._check):
                enter_item(place)
                if keep(place):
                    yield _parsed(self._parse, content, path, start)
                place += 1


# -- reading ---------------------------------------------------------------------------------------


def _walk(path: str, compression: str, check: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a file, each with the offset at which it starts."""
    as_choice("read_tfrecords", "compression", compression, COMPRESSIONS)
    is_compressed = _is_compressed(path) if compression == "auto" else compression != "none"
    start = 0
    with opened(path, is_compressed) as stream:
        while (content := _next_record(path, stream, start, check, not is_compressed)) is not None:
            yield start, content
            start += _HEAD.size + len(content) + _FOOT.size


def _is_compressed(path: str) -> bool:
    """Tell by its first bytes whether a file is compressed: a length would have its checksum."""
    with open(path, "rb") as file:
        head = file.read(_HEAD.size)
    if len(head) < 2 or (len(head) == _HEAD.size and _is_head(head)):
        return False
    is_zlib = head[0] & 0x0F == zlib.DEFLATED and (head[0] << 8 | head[1]) % 31 == 0
    return head[:2] == _GZIP_MAGIC or is_zlib


def _is_head(head: bytes) -> bool:
    return int(_HEAD.unpack(head)[1]) == crc32c.masked_crc32c(head[:8])


def _next_record(
    path: str, stream: Any, start: int, check: bool, is_file: bool = True
) -> bytes | None:
    """Return the record at which a stream stands; None at the end."""
    length = _next_length(path, stream, start)
    if length is None:
        return None
    if is_file:
        _check_length(path, stream, start, length)
    content = bytes(read_at_most(stream, length))
    foot = bytes(read_at_most(stream, _FOOT.size))
    if len(content) < length or len(foot) < _FOOT.size:
        raise DataFileError(
            path,
            f"offset {start}",
            f"a record of {length} bytes and its checksum were cut off after "
            f"{len(content) + len(foot)} bytes",
        )
    if check:
        _check_content(path, start, content, _FOOT.unpack(foot)[0])
    return content


def _next_length(path: str, stream: Any, start: int) -> int | None:
    head = bytes(read_at_most(stream, _HEAD.size))
    if not head:
        return None
    if len(head) < _HEAD.size:
        raise DataFileError(
            path,
            f"offset {start}",
            f"expected the length of a record and its checksum, found {len(head)} bytes",
        )
    length, stored = _HEAD.unpack(head)
    computed = crc32c.masked_crc32c(head[:8])
    if stored != computed:
        raise DataFileError(
            path,
            f"offset {start}",
            f"the checksum of a record's length is {stored:#010x} instead of {computed:#010x}: "
            "the file is damaged, compressed, or no TFRecord file",
        )
    return int(length)


def _check_length(path: str, file: Any, start: int, length: int) -> None:
    left = remaining_bytes(file)
    if length + _FOOT.size > left:
        raise DataFileError(
            path,
            f"offset {start}",
            f"a record claims {length} bytes and a checksum, and {left} bytes are left",
        )


def _check_content(path: str, start: int, content: bytes, stored: int) -> None:
    computed = crc32c.masked_crc32c(content)
    if stored != computed:
        raise DataFileError(
            path,
            f"offset {start}",
            f"the checksum of a record of {len(content)} bytes is {stored:#010x} instead of "
            f"{computed:#010x}: the record is damaged",
        )


def _record_starts(path: str) -> Array:
    """Return where each record of a plain file starts."""
    if _is_compressed(path):
        raise DataFileError(
            path,
            None,
            "the file is compressed, and its records have no place of their own; read it with "
            "TFRecordStream",
        )
    found, start = [], 0
    with open(path, "rb") as file:
        while (length := _next_length(path, file, start)) is not None:
            _check_length(path, file, start, length)
            found.append(start)
            start = file.seek(length + _FOOT.size, os.SEEK_CUR)
    return np.array(found, np.int64)


def _parser(owner: object, parse: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    chosen = parse_example if parse is None else parse
    check_callable(owner, "parse", chosen)
    return chosen


def _parsed(parse: Callable[[bytes], Any], content: bytes, path: str, start: int) -> Any:
    """Return the item of a record; damage that its parser finds is named with its file."""
    try:
        return parse(content)
    except wire.WireError as error:
        where = f"offset {start + _HEAD.size + error.offset}"
        raise DataFileError(path, where, error.problem) from None


def _all_files(paths: Any) -> list[str]:
    several = isinstance(paths, list | tuple)
    found = [check_file(path) for path in (paths if several else [paths])]
    if not found:
        raise ArgumentError("TFRecords: give one file at least. Received: []")
    return found
