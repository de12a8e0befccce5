"""IDX files, the format of MNIST and its relatives, plain or compressed with gzip.

Two zero bytes, a byte for the type, one for the number of dimensions, the sizes as big-endian
32-bit integers, then the values, big-endian.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from ..core.errors import ArgumentError
from .bounded import read_at_most
from .checks import as_choice
from .errors import DataFileError, DataFileMissingError, check_directory, check_file
from .streams import Array
from .tensors import TensorDataset

_TYPES: Final = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_GZIP_MAGIC: Final = b"\x1f\x8b"
_TOO_MANY: Final = 1000  # bytes too many that are counted: compressed data can expand to any size


def read_idx(path: Any) -> Array:
    """Read the array of an IDX file in the machine's byte order."""
    shown = check_file(path)
    with _opened(shown) as stream:
        dtype, shape, start = _header(shown, stream)
        expected = math.prod(shape) * dtype.itemsize
        content = read_at_most(stream, expected + _TOO_MANY)
    if len(content) != expected:
        more = "at least " if len(content) == expected + _TOO_MANY else ""
        raise DataFileError(
            shown,
            f"offset {start}",
            f"expected {expected} bytes of values for shape {shape} of {dtype.name}, found "
            f"{more}{len(content)}",
        )
    try:
        values = np.frombuffer(content, dtype).reshape(shape)
    except ValueError as error:
        raise DataFileError(shown, "offset 3", f"no array has the shape {shape}: {error}") from None
    return values.astype(dtype.newbyteorder("="))


def load_mnist(directory: Any, split: str = "train") -> TensorDataset:
    """Load MNIST, Fashion-MNIST or a relative from its four IDX files.

    Items are (image, label): float32 in [0, 1] of shape (1, height, width), and int64. The files
    have their published names, such as train-images-idx3-ubyte.gz; nothing is downloaded.
    """
    folder = check_directory(directory)
    as_choice("load_mnist", "split", split, ("train", "test"))
    prefix = "train" if split == "train" else "t10k"
    images_path = _find(folder, f"{prefix}-images", 3)
    labels_path = _find(folder, f"{prefix}-labels", 1)
    images, labels = read_idx(images_path), read_idx(labels_path)
    for path, array, ndim in ((images_path, images, 3), (labels_path, labels, 1)):
        if array.ndim != ndim:
            raise DataFileError(
                path, "offset 3", f"expected {ndim} dimension(s), found shape {array.shape}"
            )
    if len(images) != len(labels):
        raise DataFileError(
            labels_path, "offset 4", f"expected {len(images)} labels, found {len(labels)}"
        )
    scaled = images[:, None].astype(np.float32) / np.float32(255)
    return TensorDataset(scaled, labels.astype(np.int64))


def write_idx(path: Any, array: Any) -> None:
    """Write an array as an IDX file, compressed if the name ends in .gz."""
    values = np.asarray(array)
    codes = {np.dtype(name).newbyteorder("="): code for code, name in _TYPES.items()}
    if values.dtype not in codes:
        raise ArgumentError(
            f"write_idx: IDX files hold {', '.join(d.name for d in codes)}. "
            f"Received: {values.dtype}"
        )
    code = codes[values.dtype]
    header = bytes((0, 0, code, values.ndim)) + struct.pack(f">{values.ndim}I", *values.shape)
    content = header + values.astype(_TYPES[code]).tobytes()
    name = os.fspath(path)
    with open(name, "wb") as file:
        file.write(gzip.compress(content, mtime=0) if str(name).endswith(".gz") else content)


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """Open a file, compressed or not, for reading."""
    with open(path, "rb") as file:
        is_compressed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        file.seek(0)
        try:
            yield gzip.GzipFile(fileobj=file) if is_compressed else file
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(path, None, f"damaged gzip data: {error}") from None


def _header(path: str, stream: Any) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    content = read_at_most(stream, 4)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _TYPES:
        types = ", ".join(f"{code:#04x}" for code in _TYPES)
        raise DataFileError(
            path,
            "offset 0",
            f"expected an IDX file, which begins with two zero bytes and a type of {types}; found "
            f"{content.hex(' ') or 'no data'}",
        )
    ndim = content[3]
    sizes = read_at_most(stream, 4 * ndim)
    if len(sizes) < 4 * ndim:
        raise DataFileError(
            path, "offset 4", f"expected {ndim} sizes of 4 bytes, found {len(sizes)} bytes"
        )
    return np.dtype(_TYPES[content[2]]), struct.unpack(f">{ndim}I", sizes), 4 + 4 * ndim


def _find(folder: str, stem: str, ndim: int) -> str:
    names = [
        f"{stem}{separator}idx{ndim}-ubyte{suffix}" for separator in "-." for suffix in ("", ".gz")
    ]
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    raise DataFileMissingError(f"{folder}: none of the files {', '.join(names)} is there")
