"""One safetensors file: named arrays and text, read with the package `safetensors`.

The package checks the header (sizes, offsets, overlaps, coverage) against the length of the file
before anything is allocated. What it leaves open is done here: dtypes Weft lacks, shapes NumPy
cannot hold, contiguity, byte order, and errors that say what to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..core import dtype as dt
from ..core.device_array import to_host
from ..core.errors import (
    AllocationError,
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
)
from ..core.imports import require
from ..core.masked import plain_array
from ..core.modes import refuse_recording
from ..core.tensor import Tensor
from .errors import FileFormatError, ReadError
from .foreign import check_readable

Array = np.ndarray[Any, Any]

_CODES: Final = {
    "bool": "BOOL",
    "bfloat16": "BF16",
    **{f"int{n}": f"I{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"U{n}" for n in (8, 16, 32, 64)},
    **{f"float{n}": f"F{n}" for n in (16, 32, 64)},
}
_READABLE: Final = frozenset(_CODES.values())
_ALIGNMENT: Final = 8
_MOST_HEADER_BYTES: Final = 100_000_000  # what readers accept


def read_tensors(path: Path) -> dict[str, Array]:
    """Return all arrays of a file by name."""
    with _opened(path) as file:
        return {name: _read_one(path, file, name) for name in file.keys()}  # noqa: SIM118  (not a dict)


def read_text(path: Path) -> dict[str, str]:
    """Return the text that stands beside the arrays in a file."""
    with _opened(path) as file:
        return dict(file.metadata() or {})


def write_tensors(path: Path, arrays: Mapping[str, Array], text: Mapping[str, str]) -> None:
    """Write arrays prepared by `as_array` to a new file; raise OSError if that fails.

    The same content gives the same bytes, which the package's own writer does not promise: the
    order of its metadata is another one in each process.
    """
    _package()  # a file that cannot be read again would be no use
    # Wide elements first, so that all lie at multiples of their size.
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    with open(path, "wb") as file:
        file.write(_header(ordered, text))
        for _, array in ordered:
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            file.write(np.ascontiguousarray(little).reshape(-1).view(np.uint8).data)


def _header(arrays: Sequence[tuple[str, Array]], text: Mapping[str, str]) -> bytes:
    """Return the length of the header and the header, padded so that arrays begin aligned."""
    described: dict[str, Any] = {"__metadata__": dict(text)} if text else {}
    start = 0
    for name, array in arrays:
        stop = start + array.nbytes
        shape, code = list(array.shape), _CODES[array.dtype.name]
        described[name] = {"dtype": code, "shape": shape, "data_offsets": [start, stop]}
        start = stop
    content = json.dumps(described, ensure_ascii=False, separators=(",", ":")).encode()
    content += b" " * (-len(content) % _ALIGNMENT)
    if len(content) > _MOST_HEADER_BYTES:
        raise FileFormatError(
            f"the names and metadata take {len(content)} bytes; the format allows "
            f"{_MOST_HEADER_BYTES}"
        )
    return len(content).to_bytes(8, "little") + content


def as_array(name: Any, value: Any) -> Array:
    """Return a tensor or array as the package can write it: contiguous and of a known dtype."""
    _check_name(name)
    refuse_recording("tensors are written to a file")
    array = to_host(value._value if isinstance(value, Tensor) else value)
    if isinstance(array, np.generic):
        array = np.asarray(array)
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(
            f"{name!r} must be a tensor or a NumPy array. Received: {type(value).__name__}"
        )
    array = plain_array(array, repr(name))
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


def _package() -> Any:
    return require("safetensors", "io", "a file of tensors")
