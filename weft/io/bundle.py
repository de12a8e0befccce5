"""TensorFlow's checkpoints of version 2 ("bundles"), read and written without TensorFlow.

    model.ckpt.index                  a table: under each name what is known of the tensor (its
                                      type, shape, shard, place, size and checksum)
    model.ckpt.data-00000-of-00002    the bytes of the tensors, in shards

A variable that was partitioned stands under its name with the list of its slices, and each slice
under a key that is made of the name and the slice. Names stay TensorFlow's. Checkpoints of
version 1 (one file) are refused with the way to convert them.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from ..core import dtype as dt
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.tensor import Tensor
from .bundle_keys import slice_key
from .crc32c import crc32c, mask
from .errors import FileFormatError, FileMissingError, ReadError
from .sstable import SortedTable, is_table, write_table
from .wire import Message, MessageWriter, WireError, unpack_varints, varint

Array: TypeAlias = np.ndarray[Any, Any]
Slice: TypeAlias = tuple[tuple[int, int], ...]  # of each dimension: the start, the length or -1

_STRING: Final = 7
_TYPES: Final = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
}
_CODES: Final = {name: code for code, name in _TYPES.items()}
_VERSION: Final = 1
_MOST_DIMENSIONS: Final = 64


class BundleEntry(NamedTuple):
    """What a bundle knows of a tensor; the dtype of text is "object"."""

    dtype: str
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    slices: tuple[Slice, ...]


class TensorBundle:
    """A checkpoint of TensorFlow by its prefix, such as "run/model.ckpt-1000".

    >>> import os, tempfile
    >>> import numpy as np
    >>> prefix = os.path.join(tempfile.mkdtemp(), "model.ckpt")
    >>> save_bundle(prefix, {"layer/w": np.ones((2, 3), np.float32)})
    >>> bundle = TensorBundle(prefix)
    >>> bundle.names(), bundle.shape("layer/w"), bundle.read("layer/w").sum()
    (['layer/w'], (2, 3), np.float32(6.0))
    """

    def __init__(self, prefix: Any) -> None:
        self.prefix = os.fspath(prefix)
        self._path = Path(f"{self.prefix}.index")
        self._check_form()
        self._entries = dict(SortedTable(self._path).items())
        self._shards = self._read_header()

    def names(self) -> list[str]:
        """Return the names of the tensors, sorted."""
        return [
            key.decode("utf-8", "replace") for key in self._entries if key[:1] not in (b"", b"\0")
        ]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(name) and name.encode() in self._entries

    def entry(self, name: str) -> BundleEntry:
        """Return what the bundle knows of a tensor."""
        if name not in self:
            raise ArgumentError(f"{self.prefix}: there is no tensor {name!r}")
        return self._entry(name.encode(), name)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self.entry(name).shape

    def dtype(self, name: str) -> str:
        """Return the name of a tensor's type; that of text is "object"."""
        return self.entry(name).dtype

    def read(self, name: str) -> Array:
        """Return a tensor as an array, of bytes (as objects) for text, after its checksum."""
        entry = self.entry(name)
        return self._joined(name, entry) if entry.slices else self._read(name, entry)

    def read_all(self) -> dict[str, Array]:
        """Return all tensors by name."""
        return {name: self.read(name) for name in self.names()}

    # -- the index -------------------------------------------------------------------------------

    def _check_form(self) -> None:
        if self._path.is_file():
            return
        if is_table(self.prefix):
            raise FileFormatError(
                f"{self.prefix} is a checkpoint of TensorFlow in version 1, which is not read. "
                "Write it again in version 2, with TensorFlow:  "
                "tf.train.Saver(write_version=tf.train.SaverDef.V2).save(session, ...)"
            )
        raise FileMissingError(
            f"there is no checkpoint {self.prefix}: no file {self._path} (give the prefix, without "
            "'.index' and '.data-...')"
        )

    def _read_header(self) -> int:
        """Return the number of shards."""
        header = self._message(self._entries.get(b"", b""), "the header")
        try:
            shards, order = header.integer(1), header.integer(2)
            version = header.message(3)
            needed = 0 if version is None else version.integer(2)
        except WireError as error:
            raise self._error(f"the header, {error}") from None
        if shards < 1 or order != 0 or needed > _VERSION:
            raise self._error(
                f"expected a little-endian bundle of version {_VERSION} with a shard at least; "
                f"found {shards} shards, byte order {order}, version {needed}"
            )
        return shards

    def _error(self, problem: str) -> FileFormatError:
        return FileFormatError(f"{self._path}: {problem}")

    def _message(self, content: bytes, what: str) -> Message:
        try:
            return Message(content)
        except WireError as error:
            raise self._error(f"{what}, {error}") from None

    def _entry(self, key: bytes, name: str) -> BundleEntry:
        message = self._message(self._entries[key], f"entry {name!r}")
        try:
            return self._checked(name, _parsed(message))
        except WireError as error:
            raise self._error(f"entry {name!r}, {error}") from None

    def _checked(self, name: str, entry: BundleEntry) -> BundleEntry:
        if not entry.dtype:
            raise self._error(f"tensor {name!r} has a type that Weft does not have")
        if len(entry.shape) > _MOST_DIMENSIONS or min((0, *entry.shape)) < 0:
            raise self._error(f"no array has the shape of tensor {name!r}")
        if not 0 <= entry.shard < self._shards or entry.offset < 0 or entry.size < 0:
            raise self._error(
                f"tensor {name!r} should stand at offset {entry.offset} of shard {entry.shard}; "
                f"there are {self._shards} shards"
            )
        return entry

    # -- tensors -----------------------------------------------------------------------------------

    def _read(self, name: str, entry: BundleEntry) -> Array:
        path, content = self._bytes(name, entry)
        where = f"{path}, offset {entry.offset}: tensor {name!r}"
        if entry.dtype == "object":
            return _strings(where, entry, content)
        dtype = dt.bfloat16() if entry.dtype == "bfloat16" else np.dtype(entry.dtype)
        expected = math.prod(entry.shape) * dtype.itemsize
        if expected != len(content):
            raise FileFormatError(
                f"{where} of shape {entry.shape} and {dtype} takes {expected} bytes; there are "
                f"{len(content)}"
            )
        _check_sum(where, crc32c(content), entry)
        values = np.frombuffer(
            bytearray(content), dtype.newbyteorder("<") if dtype.kind != "V" else dtype
        )
        return values.reshape(entry.shape).astype(dtype, copy=False)

    def _bytes(self, name: str, entry: BundleEntry) -> tuple[Path, bytes]:
        path = Path(f"{self.prefix}.data-{entry.shard:05d}-of-{self._shards:05d}")
        try:
            with path.open("rb") as file:
                there = os.fstat(file.fileno()).st_size - entry.offset
                if entry.size > there:
                    raise FileFormatError(
                        f"{path}, offset {entry.offset}: tensor {name!r} claims {entry.size} "
                        f"bytes, and {max(there, 0)} are there"
                    )
                file.seek(entry.offset)
                return path, file.read(entry.size)
        except FileNotFoundError:
            raise FileMissingError(
                f"there is no file {path}, which tensor {name!r} is in"
            ) from None
        except OSError as error:
            raise ReadError(f"cannot read {path}: {error}") from error

    def _joined(self, name: str, entry: BundleEntry) -> Array:
        """Return a partitioned variable, its slices put together."""
        parts = [(place, self._slice_entry(name, entry, place)) for place in entry.slices]
        if sum(math.prod(part.shape) for _, part in parts) != math.prod(entry.shape):
            raise self._error(f"the slices of {name!r} do not make up its shape {entry.shape}")
        values = [(place, self._read(name, part)) for place, part in parts]
        whole = np.empty(entry.shape, values[0][1].dtype)
        for place, value in values:
            whole[tuple(slice(start, start + n) for start, n in _extents(place, entry))] = value
        return whole

    def _slice_entry(self, name: str, whole: BundleEntry, place: Slice) -> BundleEntry:
        key = slice_key(name, place)
        if key not in self._entries or len(place) != len(whole.shape):
            raise self._error(f"a slice of tensor {name!r} is missing")
        extents = _extents(place, whole)
        part = self._entry(key, name)
        inside = all(
            a >= 0 and a + n <= size for (a, n), size in zip(extents, whole.shape, strict=True)
        )
        if not inside or part.shape != tuple(n for _, n in extents) or part.dtype != whole.dtype:
            raise self._error(f"a slice of tensor {name!r} does not fit its shape {whole.shape}")
        return part


def _extents(place: Slice, whole: BundleEntry) -> list[tuple[int, int]]:
    """Return the start and the length of a slice in each dimension; -1 stands for all of it."""
    return [
        (start, size if length < 0 else length)
        for (start, length), size in zip(place, whole.shape, strict=True)
    ]


def _parsed(message: Message) -> BundleEntry:
    shape = message.message(2, "shape")
    code = message.integer(1)
    dtype = "object" if code == _STRING else _TYPES.get(code, "")
    return BundleEntry(
        dtype,
        () if shape is None else tuple(dim.integer(1) for dim in shape.messages(2)),
        message.integer(3),
        message.integer(4),
        message.integer(5),
        message.fixed32(6),
        tuple(_parsed_slice(entry) for entry in message.messages(7, "slice")),
    )


def _parsed_slice(message: Message) -> Slice:
    return tuple((extent.integer(1), extent.integer(2, -1)) for extent in message.messages(1))


def _check_sum(where: str, computed: int, entry: BundleEntry) -> None:
    if mask(computed) != entry.checksum:
        raise FileFormatError(
            f"{where} is damaged: its checksum is {mask(computed):#010x} instead of "
            f"{entry.checksum:#010x}"
        )


def _strings(where: str, entry: BundleEntry, content: bytes) -> Array:
    """Return texts: their lengths as varints, a checksum of those, their bytes."""
    count = math.prod(entry.shape)
    damaged = FileFormatError(
        f"{where} is damaged: its {count} texts do not fit {len(content)} bytes"
    )
    if count > len(content):
        raise damaged
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) < 0x80)
    start = int(ends[count - 1]) + 1 if 0 < count <= len(ends) else 0
    lengths = unpack_varints(content[:start])
    if lengths is None or len(lengths) != count or start + 4 > len(content):
        raise damaged
    sizes = [int(n) for n in lengths]
    if start + 4 + sum(sizes) != len(content):
        raise damaged
    _check_sum(where, crc32c(content[start:], crc32c(_fixed_lengths(sizes))), entry)
    values = np.empty(count, object)
    at = start + 4
    for i, size in enumerate(sizes):
        values[i] = content[at : at + size]
        at += size
    return values.reshape(entry.shape)


def _fixed_lengths(sizes: list[int]) -> bytes:
    """Return lengths as their checksum takes them: in four bytes, in eight if they need those."""
    return b"".join(struct.pack("<I" if size < 1 << 32 else "<Q", size) for size in sizes)


# -- writing ---------------------------------------------------------------------------------------


def save_bundle(prefix: Any, tensors: Mapping[str, Any]) -> None:
    """Write named tensors as a checkpoint that TensorFlow reads, in one shard."""
    name = os.fspath(prefix)
    header = MessageWriter().varint(1, 1).message(3, MessageWriter().varint(1, _VERSION))
    entries, offset = {b"": header.content()}, 0
    with open(f"{name}.data-00000-of-00001", "wb") as file:
        for key in sorted(tensors):
            code, array, content, checksum = _encoded(key, tensors[key])
            entries[key.encode()] = _written_entry(code, array.shape, offset, content, checksum)
            offset += file.write(content)
    write_table(f"{name}.index", entries)


def _encoded(name: str, value: Any) -> tuple[int, Array, bytes, int]:
    """Return the code of a type, the array, its bytes and its checksum."""
    given: Any = name
    if not isinstance(given, str) or not given:
        raise ArgumentTypeError(f"save_bundle: names are text. Received: {given!r:.60}")
    array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
    if array.dtype.kind in "OUS":
        return _STRING, array, *_encoded_strings(name, array)
    code = _CODES.get(array.dtype.name)
    if code is None:
        raise ArgumentTypeError(f"save_bundle: {name!r} is of {array.dtype}, which bundles lack")
    kept = np.ascontiguousarray(array)
    content = (
        kept.astype(kept.dtype.newbyteorder("<")).tobytes()
        if kept.dtype.kind != "V"
        else kept.tobytes()
    )
    return code, array, content, crc32c(content)


def _encoded_strings(name: str, array: Array) -> tuple[bytes, int]:
    texts = [text.encode() if isinstance(text, str) else text for text in array.ravel().tolist()]
    if not all(isinstance(text, bytes) for text in texts):
        raise ArgumentTypeError(f"save_bundle: {name!r} holds objects; texts and bytes are written")
    lengths = [len(text) for text in texts]
    checksum = crc32c(_fixed_lengths(lengths))
    foot = struct.pack("<I", mask(checksum)) + b"".join(texts)
    return b"".join(map(varint, lengths)) + foot, crc32c(foot, checksum)


def _written_entry(
    code: int, shape: tuple[int, ...], offset: int, content: bytes, checksum: int
) -> bytes:
    sizes = MessageWriter()
    for size in shape:
        sizes.message(2, MessageWriter().varint(1, size))
    made = MessageWriter().varint(1, code).message(2, sizes)
    made.varint(4, offset).varint(5, len(content)).fixed32(6, mask(checksum))
    return made.content()
