"""NumPy's .npy and .npz files; never a pickle."""

from __future__ import annotations

import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import numpy as np

from ..core.dtype import DType, check_dtype
from ..core.errors import DTypeError
from .bounded import read_at_most, remaining_bytes
from .errors import DataFileError, check_file
from .streams import Array
from .tensors import TensorDataset

_NPY_MAGIC: Final = b"\x93NUMPY"
_ZIP_MAGIC: Final = b"PK\x03\x04"
_NO_MEMBERS: Final = b"PK\x05\x06"
_MOST_HEADER_BYTES: Final = 10_000
_READ_HEADER: Final = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# By how much data can expand: a block of deflate has at most 258 bytes for 2 bits.
_GROWTH: Final = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
# What NumPy and zipfile raise when a header, or what is compressed, was damaged.
_DAMAGED: Final = (
    ArithmeticError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    RuntimeError,  # an archive with a password
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
_NO_NUMPY_FILE: Final = (
    "expected an array of numbers; this file holds Python objects or is no NumPy file, and "
    "Weft reads no pickles, which could run any code"
)


def read_npy(path: Any, *, mmap: bool = False) -> Array:
    """Read the array of an .npy file; with `mmap`, rows are read from the disk when needed."""
    shown = check_file(path)
    with open(shown, "rb") as file:
        _check_magic(shown, file, _NPY_MAGIC)
        with _explaining(shown, None):
            header = _header(shown, None, file, remaining_bytes(file))
            return _mapped(shown, file, header) if mmap else _values(shown, None, file, header)


def parse_npy(content: bytes, name: str) -> Array:
    """Return the array of what an .npy file contains; errors call it by a name."""
    file = BytesIO(content)
    _check_magic(name, file, _NPY_MAGIC)
    with _explaining(name, None):
        header = _header(name, None, file, len(content))
        return _values(name, None, file, header)


def read_npz(path: Any, names: Sequence[str] | None = None) -> dict[str, Array]:
    """Read the named arrays of an .npz archive, all of them by default."""
    shown = check_file(path)
    with open(shown, "rb") as file:
        _check_magic(shown, file, _ZIP_MAGIC)
        with _explaining(shown, None):
            archive = zipfile.ZipFile(file)
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        unknown = [name for name in names or () if name not in members]
        if unknown:
            raise DataFileError(shown, None, f"no arrays {unknown}; it holds {list(members)}")
        return {name: _member(shown, archive, name, members[name]) for name in names or members}


class NpzDataset(TensorDataset):
    """Rows of the arrays of an .npz archive, in the given order of names (or the file's own)."""

    def __init__(self, path: Any, names: Sequence[str] | None = None) -> None:
        arrays = read_npz(path, names)
        if not arrays:
            raise DataFileError(path, None, "expected arrays, but the archive is empty")
        self.names = list(arrays)
        lengths = {name: array.shape[:1] for name, array in arrays.items()}
        if len(set(lengths.values())) > 1 or () in lengths.values():
            shapes = {name: array.shape for name, array in arrays.items()}
            raise DataFileError(
                path, None, f"expected arrays of equal length, found {shapes}; choose with names="
            )
        super().__init__(*arrays.values())


class _Header(NamedTuple):
    """What an .npy file says of its array; all of it is there."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: DType

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@contextmanager
def _explaining(path: str, where: str | None) -> Iterator[None]:
    """Raise what is wrong with a file as an error that names it."""
    try:
        yield
    except DataFileError:
        raise
    except _DAMAGED as error:
        reason = str(error) or type(error).__name__
        raise DataFileError(path, where, f"expected a NumPy file: {reason:.200}") from None
    except MemoryError:
        raise DataFileError(path, where, "the array does not fit in memory") from None


def _check_magic(path: str, file: BinaryIO, expected: bytes) -> None:
    """Raise unless a file begins as one of its kind; say what it is if that is known."""
    start = file.read(len(_NPY_MAGIC))
    file.seek(0)
    if start.startswith(expected) or (expected == _ZIP_MAGIC and start.startswith(_NO_MEMBERS)):
        return
    if start.startswith((_ZIP_MAGIC, _NO_MEMBERS)):
        raise DataFileError(path, None, "expected an .npy file, found an .npz archive")
    if start.startswith(_NPY_MAGIC):
        raise DataFileError(path, None, "expected an .npz archive, found a single .npy array")
    raise DataFileError(path, None, _NO_NUMPY_FILE)


def _member(path: str, archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> Array:
    """Return an array of an archive, which cannot hold more than its bytes can expand to."""
    where = f"array {name!r}"
    growth = _GROWTH.get(info.compress_type)
    if growth is None:
        raise DataFileError(path, where, "expected data that is stored or deflated")
    most = min(info.compress_size, os.path.getsize(path)) * growth
    with _explaining(path, where), archive.open(info) as stream:
        return _values(path, where, stream, _header(path, where, stream, most))


def _header(path: str, where: str | None, stream: Any, most: int) -> _Header:
    """Read the header of an array, whose values may have so many bytes."""
    version = np.lib.format.read_magic(stream)
    if version not in _READ_HEADER:
        raise DataFileError(path, where, f"expected numbers: version {version} is for records")
    shape, fortran, dtype = _READ_HEADER[version](stream, max_header_size=_MOST_HEADER_BYTES)
    if dtype.hasobject:
        raise DataFileError(path, where, _NO_NUMPY_FILE)
    try:
        check_dtype(dtype)
    except DTypeError as error:
        raise DataFileError(path, where, f"expected numbers: {error}") from None
    header = _Header(shape, bool(fortran), dtype)
    if min(shape, default=0) < 0 or header.nbytes > most:
        raise DataFileError(
            path,
            where,
            f"damaged NumPy file: an array of shape {shape} of {dtype} takes {header.nbytes} "
            f"bytes; there can be no more than {most}",
        )
    return header


def _values(path: str, where: str | None, stream: Any, header: _Header) -> Array:
    content = read_at_most(stream, header.nbytes)
    if len(content) < header.nbytes:
        raise DataFileError(
            path,
            where,
            f"damaged NumPy file: an array of shape {header.shape} takes {header.nbytes} bytes, "
            f"found {len(content)}",
        )
    shape = header.shape[::-1] if header.fortran else header.shape
    array: Array = np.ndarray(shape, header.dtype, content)
    return array.T if header.fortran else array


def _mapped(path: str, file: BinaryIO, header: _Header) -> Array:
    if not header.nbytes:  # nothing can be mapped
        return np.empty(header.shape, header.dtype)
    order: Literal["C", "F"] = "F" if header.fortran else "C"
    return np.memmap(path, header.dtype, "r", file.tell(), header.shape, order)
