"""One safetensors file: named arrays and text, read and written with the package `safetensors`.

The package checks the header (sizes, offsets, overlaps, coverage) against the length of the file
before anything is allocated. What it leaves open is done here: dtypes Weft lacks, shapes NumPy
cannot hold, contiguity, byte order, and errors that say what to do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..core import dtype as dt
from ..core.errors import (
    AllocationError,
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    MissingDependencyError,
)
from ..core.tensor import Tensor
from .disk import default_mode
from .errors import FileFormatError, ReadError
from .foreign import check_readable

Array = np.ndarray[Any, Any]

_READABLE: Final = frozenset(
    ["BOOL", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F16", "BF16", "F32", "F64"]
)
_OS_ERROR: Final = re.compile(r"\(os error (\d+)\)")


def read_tensors(path: Path) -> dict[str, Array]:
    """Return all arrays of a file by name."""
    with _opened(path) as file:
        return {name: _read_one(path, file, name) for name in file.keys()}  # noqa: SIM118  (not a dict)


def read_text(path: Path) -> dict[str, str]:
    """Return the text that stands beside the arrays in a file."""
    with _opened(path) as file:
        return dict(file.metadata() or {})


def write_tensors(path: Path, arrays: Mapping[str, Array], text: Mapping[str, str]) -> None:
    """Write arrays prepared by `as_array` to a new file; raise OSError if that fails."""
    package = _package()
    mode = default_mode(path)
    try:
        # None, not {}: with neither tensors nor metadata the package would write a broken header.
        package.numpy.save_file(dict(arrays), path, metadata=dict(text) or None)
    except package.SafetensorError as error:
        raise _as_os_error(error) from error
    os.chmod(path, mode)  # the package writes files that only their owner can read


def as_array(name: Any, value: Any) -> Array:
    """Return a tensor or array as the package can write it: contiguous and of a known dtype."""
    _check_name(name)
    array = value._value if isinstance(value, Tensor) else value
    if isinstance(array, np.generic):
        array = np.asarray(array)
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(
            f"{name!r} must be a tensor or a NumPy array. Received: {type(value).__name__}"
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    try:
        dt.check_dtype(array.dtype)
    except DTypeError as error:
        raise DTypeError(f"{name!r} cannot be saved: {error}") from None
    return np.asarray(array, order="C")


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise ArgumentTypeError(
            f"names of tensors must be strings. Received: {name!r} of type {type(name).__name__}"
        )
    if name == "__metadata__":
        raise ArgumentError("a tensor cannot be named '__metadata__': the format reserves the name")
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise ArgumentError(f"a tensor's name must be valid Unicode. Received: {name!r}") from None


def _read_one(path: Path, file: Any, name: str) -> Array:
    header = file.get_slice(name)
    code = str(header.get_dtype())
    if code not in _READABLE:
        raise FileFormatError(
            f"{path}: tensor {name!r} has the dtype {code}, which Weft does not have; convert it "
            "to one of bool, int8-64, uint8-64, float16-64 or bfloat16 before saving"
        )
    if code == "BF16":
        dt.bfloat16()  # raises if ml_dtypes is missing
    try:
        array: Array = file.get_tensor(name)
    except ValueError as error:
        raise FileFormatError(
            f"{path}: tensor {name!r} has the shape {header.get_shape()}, which no array can have"
        ) from error
    return _clean_bools(array) if code == "BOOL" else array


def _clean_bools(array: Array) -> Array:
    """Return True for every byte but 0: NumPy computes nonsense with other bytes than 0 and 1."""
    return np.asarray(array.view(np.uint8) != 0)  # of a 0-d array, != makes a scalar


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    package = _package()
    check_readable(path)
    try:
        with package.safe_open(path, framework="np") as file:
            yield file
    except package.SafetensorError as error:
        reason = str(error).removeprefix("Error while deserializing header: ")
        raise FileFormatError(
            f"{path} is no usable safetensors file: {reason}. It is damaged or incomplete: copy, "
            "download or write it again"
        ) from error
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error}") from error
    except MemoryError as error:
        size = path.stat().st_size / 1e9
        raise AllocationError(f"{path} of {size:.1f} GB does not fit in memory") from error


def _as_os_error(error: Exception) -> Exception:
    """Return the operating system's error that the package's text quotes, if there is one."""
    match = _OS_ERROR.search(str(error))
    if match is None:
        return FileFormatError(f"the tensors cannot be written as safetensors: {error}")
    code = int(match[1])
    return OSError(code, os.strerror(code))


def _package() -> Any:
    try:
        import safetensors.numpy  # noqa: PLC0415  (optional: only saving and loading need it)
    except ImportError:
        raise MissingDependencyError(
            'saving and loading need the package safetensors: pip install "weft[io]"'
        ) from None
    return safetensors
