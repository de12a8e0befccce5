"""NumPy's .npy and .npz files; never a pickle."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from typing import Any, BinaryIO, Final, Literal

import numpy as np

from ..core.dtype import check_dtype
from ..core.errors import DTypeError
from .errors import DataFileError, check_file
from .streams import Array
from .tensors import TensorDataset

_NPY_MAGIC: Final = b"\x93NUMPY"


def read_npy(path: Any, *, mmap: bool = False) -> Array:
    """Read the array of an .npy file; with `mmap`, rows are read from the disk when needed."""
    shown = check_file(path)
    with open(shown, "rb") as file:
        is_array = file.read(len(_NPY_MAGIC)) == _NPY_MAGIC
        file.seek(0)
        # Only a file that is no archive is given by name: np.load closes it in any case.
        array = _load(shown, shown if mmap and is_array else file, "r" if mmap else None)
        if not isinstance(array, np.ndarray):
            raise DataFileError(shown, None, "expected an .npy file, found an .npz archive")
        return _checked(shown, None, array)


def read_npz(path: Any, names: Sequence[str] | None = None) -> dict[str, Array]:
    """Read the named arrays of an .npz archive, all of them by default."""
    shown = check_file(path)
    with open(shown, "rb") as file:
        archive = _load(shown, file)
        if isinstance(archive, np.ndarray):
            raise DataFileError(shown, None, "expected an .npz archive, found a single .npy array")
        unknown = [name for name in names or () if name not in archive.files]
        if unknown:
            raise DataFileError(shown, None, f"no arrays {unknown}; it holds {archive.files}")
        return {name: _member(shown, archive, name) for name in names or archive.files}


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


def _load(path: str, file: BinaryIO | str, mmap_mode: Literal["r"] | None = None) -> Any:
    """Return the array or archive in an open file, which np.load would leave open on errors."""
    try:
        return np.load(file, mmap_mode=mmap_mode, allow_pickle=False)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, SyntaxError) as error:
        raise DataFileError(path, None, _explained(error)) from None


def _member(path: str, archive: Any, name: str) -> Array:
    try:
        return _checked(path, name, archive[name])
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zipfile.error, SyntaxError) as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(path, f"array {name!r}", _explained(error)) from None


def _explained(error: Exception) -> str:
    if "pickle" in str(error):
        return (
            "expected an array of numbers; this file holds Python objects or is no NumPy file, and "
            "Weft reads no pickles, which could run any code"
        )
    return f"expected a NumPy file: {error}"


def _checked(path: str, name: str | None, array: Array) -> Array:
    try:
        check_dtype(array.dtype)
    except DTypeError as error:
        where = None if name is None else f"array {name!r}"
        raise DataFileError(path, where, f"expected numbers: {error}") from None
    return array
