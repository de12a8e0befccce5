"""RecordIO files, as MXNet packs data in: records of bytes, found by an index or by walking.

A part is a magic number, a word with its kind (3 bits) and length (29 bits), and its bytes, filled
up to a multiple of four. A record that holds the magic number itself, where a reader would look for
one, is cut there into parts, and the number is left out between them. Records of images begin with
a header of labels, see `unpack_record`. The format has no checksums: the magic number is what a
reader can check.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from .bounded import read_at_most, remaining_bytes
from .checks import as_choice, check_callable
from .dataset import Dataset, normal_index
from .errors import DataFileError, check_file
from .imagefolder import IMAGE_MODES, decode_image
from .streams import Array
from .transforms import ToTensor

_MAGIC: Final = 0xCED7230A
_MAGIC_BYTES: Final = struct.pack("<I", _MAGIC)
_HEAD: Final = struct.Struct("<II")
_LENGTH_BITS: Final = 29
_MAX_LENGTH: Final = (1 << _LENGTH_BITS) - 1
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)
_FOLLOWS: Final = {_WHOLE: False, _FIRST: False, _MIDDLE: True, _LAST: True}
_HEADER: Final = struct.Struct("<IfQQ")


class RecordHeader(NamedTuple):
    """What stands before an image: how many labels there are, the label or labels, two numbers."""

    flag: int
    label: Any
    id: int
    id2: int


def read_recordio(path: Any) -> Iterator[bytes]:
    """Yield the records of a RecordIO file.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "a.rec")
    >>> write_recordio(path, [b"one", b"two"])
    >>> list(read_recordio(path))
    [b'one', b'two']
    """
    shown = check_file(path)
    with open(shown, "rb") as file:
        while (content := _next_record(shown, file)) is not None:
            yield content


def write_recordio(path: Any, records: Iterable[bytes], index: Any = None) -> None:
    """Write records of bytes as a RecordIO file, and where they start into an index file."""
    places = []
    with open(os.fspath(path), "wb") as file:
        for record in records:
            places.append(file.tell())
            for kind, part in _parts(record):
                file.write(_HEAD.pack(_MAGIC, kind << _LENGTH_BITS | len(part)))
                file.write(part + bytes(-len(part) % 4))
    if index is not None:
        with open(os.fspath(index), "w", encoding="ascii") as file_of_places:
            file_of_places.writelines(f"{i}\t{place}\n" for i, place in enumerate(places))


def unpack_record(record: bytes) -> tuple[RecordHeader, bytes]:
    """Return the header of a record and what stands behind it.

    A flag above 0 says how many labels there are; they are a float32 array then.

    >>> header, content = unpack_record(pack_record(b"image", 3.0, id=7))
    >>> header.label, header.id, content
    (3.0, 7, b'image')
    """
    if len(record) < _HEADER.size:
        raise ArgumentError(
            f"unpack_record: the header has {_HEADER.size} bytes. Received: {len(record)} bytes"
        )
    flag, label, number, more = _HEADER.unpack_from(record)
    stop = _HEADER.size + 4 * flag
    if not flag:
        return RecordHeader(flag, label, number, more), record[stop:]
    if stop > len(record):
        raise ArgumentError(
            f"unpack_record: the header claims {flag} labels, and {len(record) - _HEADER.size} "
            "bytes are left"
        )
    labels = np.frombuffer(record[_HEADER.size : stop], "<f4").astype(np.float32)
    return RecordHeader(flag, labels, number, more), record[stop:]


def pack_record(content: bytes, label: Any, *, id: int = 0, id2: int = 0) -> bytes:
    """Return a record of a header, with a label or several, and content."""
    labels = np.asarray(label, "<f4")
    if labels.ndim == 0:
        return _HEADER.pack(0, float(labels), id, id2) + content
    return _HEADER.pack(labels.size, 0.0, id, id2) + labels.tobytes() + content


class RecordIODataset(Dataset):
    """The records of a RecordIO file, by index.

    path        the file
    index       its index file, which gives records an order and `keys`; without one the file is
                walked over once
    transform   makes an item of the bytes of a record; by default they are the item
    """

    def __init__(
        self, path: Any, index: Any = None, transform: Callable[[Any], Any] | None = None
    ) -> None:
        self.path = check_file(path)
        if transform is not None:
            check_callable(self, "transform", transform)
        self._transform = transform
        self.keys, self._starts = _walked(self.path) if index is None else _indexed(index)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: Any) -> Any:
        record = self.record(normal_index(index, len(self), type(self).__name__))
        return record if self._transform is None else self._transform(record)

    def record(self, index: int) -> bytes:
        """Return the bytes of a record."""
        start = int(self._starts[index])
        with open(self.path, "rb") as file:  # an open file does not survive the way to a worker
            file.seek(start)
            content = _next_record(self.path, file)
        if content is None:
            raise DataFileError(
                self.path, f"offset {start}", "the index names a record past the end of the file"
            )
        return content


class ImageRecordDataset(RecordIODataset):
    """The images of a RecordIO file, as (image, label).

    path, index   as those of `RecordIODataset`
    transform     applied to the array of bytes, (height, width, channels); by default `ToTensor()`
    mode          "RGB", "L" (grey) or "RGBA"

    A label is an integer if it is one, a float otherwise, an array if there are several.
    """

    def __init__(
        self,
        path: Any,
        index: Any = None,
        transform: Callable[[Any], Any] | None = None,
        *,
        mode: str = "RGB",
    ) -> None:
        self._mode = as_choice(self, "mode", mode, IMAGE_MODES)
        super().__init__(path, index, ToTensor() if transform is None else transform)

    def __getitem__(self, index: Any) -> Any:
        i = normal_index(index, len(self), "ImageRecordDataset")
        where = f"offset {int(self._starts[i])}"
        try:
            header, content = unpack_record(self.record(i))
        except ArgumentError as error:
            raise DataFileError(
                self.path, where, f"expected a record of an image: {error}"
            ) from None
        image = decode_image(io.BytesIO(content), self._mode, self.path, where)
        label = header.label
        if isinstance(label, float) and label.is_integer():
            label = int(label)
        assert self._transform is not None
        return self._transform(image), label


# -- reading ---------------------------------------------------------------------------------------


def _next_record(path: str, file: Any) -> bytes | None:
    """Return the record at which a file stands, its parts joined; None at the end."""
    parts: list[bytes] = []
    while (part := _next_part(path, file)) is not None:
        kind, content, start = part
        if _FOLLOWS[kind] != bool(parts):
            raise DataFileError(
                path,
                f"offset {start}",
                "a record begins before the one before it ended"
                if parts
                else "a part of a record stands where a record should begin",
            )
        parts.append(content)
        if kind in (_WHOLE, _LAST):
            return _MAGIC_BYTES.join(parts)
    if parts:
        raise DataFileError(
            path, f"offset {file.tell()}", "the file ends in the middle of a record"
        )
    return None


def _next_part(path: str, file: Any) -> tuple[int, bytes, int] | None:
    start = file.tell()
    kind_and_length = _part_head(path, file, start)
    if kind_and_length is None:
        return None
    kind, length = kind_and_length
    content = bytes(read_at_most(file, length))
    file.seek(-length % 4, os.SEEK_CUR)
    return kind, content, start


def _part_head(path: str, file: Any, start: int) -> tuple[int, int] | None:
    """Return the kind and the length of the part at which a file stands; None at the end."""
    head = file.read(_HEAD.size)
    if not head:
        return None
    if len(head) < _HEAD.size:
        raise DataFileError(
            path, f"offset {start}", f"expected the head of a record, found {len(head)} bytes"
        )
    magic, word = _HEAD.unpack(head)
    if magic != _MAGIC:
        raise DataFileError(
            path,
            f"offset {start}",
            f"expected the number {_MAGIC:#x} of RecordIO, found {magic:#x}",
        )
    kind, length = word >> _LENGTH_BITS, word & _MAX_LENGTH
    if kind not in _FOLLOWS:
        raise DataFileError(
            path, f"offset {start}", f"expected a part of kind 0 to 3, found {kind}"
        )
    left = remaining_bytes(file)
    if length > left:
        raise DataFileError(
            path, f"offset {start}", f"a part claims {length} bytes, and {left} are left"
        )
    return kind, length


def _walked(path: str) -> tuple[Array, Array]:
    """Return the keys (0, 1, ...) and the places of the records of a file."""
    starts = []
    with open(path, "rb") as file:
        while (head := _part_head(path, file, start := file.tell())) is not None:
            if not _FOLLOWS[head[0]]:
                starts.append(start)
            file.seek(head[1] + -head[1] % 4, os.SEEK_CUR)
    return np.arange(len(starts)), np.array(starts, np.int64)


def _indexed(index: Any) -> tuple[Array, Array]:
    """Return the keys and the places of records that an index file names, in its order."""
    shown = check_file(index)
    keys, starts = [], []
    with open(shown, "rb") as file:
        for number, line in enumerate(file, 1):
            words = line.split()
            if len(words) != 2 or not all(word.isdigit() and len(word) < 19 for word in words):
                raise DataFileError(
                    shown,
                    f"line {number}",
                    f"expected a key and an offset, found {line[:60]!r}",
                )
            keys.append(int(words[0]))
            starts.append(int(words[1]))
    return np.array(keys, np.int64), np.array(starts, np.int64)


def _parts(record: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the kind and the bytes of each part of a record, cut where it holds the magic number.

    A reader that lost its place looks for the number at multiples of four: only those count.
    """
    if not isinstance(record, bytes | bytearray | memoryview):
        raise ArgumentTypeError(
            f"write_recordio: a record is bytes. Received: {type(record).__name__}"
        )
    content = bytes(record)
    if len(content) > _MAX_LENGTH:
        raise ArgumentError(
            f"write_recordio: a record has {_MAX_LENGTH} bytes at most. Received: {len(content)}"
        )
    words = np.frombuffer(content[: len(content) // 4 * 4], "<u4")
    cuts = (np.flatnonzero(words == _MAGIC) * 4).tolist()
    starts, stops = [0, *(cut + 4 for cut in cuts)], [*cuts, len(content)]
    for i, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        is_first, is_last = i == 0, i == len(cuts)
        kind = (_MIDDLE, _LAST, _FIRST, _WHOLE)[2 * is_first + is_last]
        yield kind, content[start:stop]
