"""Recognising files that Weft does not read, and saying how to convert them."""

from __future__ import annotations

import errno
import stat
from pathlib import Path
from typing import Any, Final

from ..core.errors import ArgumentTypeError
from .disk import resolve_target
from .errors import FileFormatError, FileMissingError, ReadError, SaveError, UnsafeFileError

_FROM_TORCH: Final = (
    "Convert it once, in an environment with PyTorch:  import torch; "
    "from safetensors.torch import save_file; "
    "save_file(torch.load({name!r}, weights_only=True), {converted!r})"
)
_FROM_PICKLE: Final = (
    "Convert it once, where you trust it: load it with the program that made it and write its "
    "arrays with  wf.save({converted!r}, {{'name': array, ...}})"
)
_FROM_NUMPY: Final = (
    "Read it with np.load({name!r}), which refuses pickled objects, and write the arrays with "
    "wf.save({converted!r}, {{'name': array, ...}})"
)
_FROM_KERAS: Final = (
    "Read it with the library that made it and write the arrays with "
    "wf.save({converted!r}, {{'name': array, ...}})"
)

_TORCH_SUFFIXES: Final = frozenset({".pt", ".pth", ".bin", ".ckpt"})
_PICKLE_SUFFIXES: Final = frozenset({".pkl", ".pickle", ".joblib"})
PICKLE_SUFFIXES: Final = _TORCH_SUFFIXES | _PICKLE_SUFFIXES

# (first bytes, what the file is, how to go on)
_SIGNATURES: Final = (
    (b"\x93NUMPY", "a NumPy .npy file", _FROM_NUMPY),
    (b"\x89HDF\r\n", "an HDF5 file", _FROM_KERAS),
    (b"GGUF", "a GGUF file", _FROM_KERAS),
    (
        b"version https://git-lfs",
        "a Git LFS pointer, not the file itself",
        "Fetch the content with  git lfs pull",
    ),
    (b"<!DOCTYPE", "a web page", "The download failed: fetch the file again"),
    (b"<html", "a web page", "The download failed: fetch the file again"),
)


def checked_path(path: Any) -> Path:
    """Return a path that a user gave; refuse what is none."""
    try:
        return Path(path)
    except TypeError:
        raise ArgumentTypeError(f"expected a path. Received: {path!r:.80}") from None


def checked_target(function: str, path: Any) -> Path:
    """Return the file that a function is to write; refuse directories and names of pickles."""
    refuse_pickle_suffix(checked_path(path))
    target = resolve_target(path)
    if target.is_dir():
        raise SaveError(errno.EISDIR, f"{function}: {target} is a directory; name a file in it")
    return target


def check_readable(path: Path) -> None:
    """Raise unless the path is a regular file that may be a safetensors file."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise FileMissingError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise ReadError(f"cannot read {path}: {error}") from error
    if not stat.S_ISREG(mode):  # opening a pipe would wait, a device may never end
        raise FileFormatError(f"{path} is not a regular file")
    refuse_pickle_suffix(path)
    _refuse_signature(path, _first_bytes(path))


def refuse_pickle_suffix(path: Path) -> None:
    """Raise if the name says that the file is a pickle."""
    suffix = path.suffix.lower()
    if suffix in PICKLE_SUFFIXES:
        how = _FROM_TORCH if suffix in _TORCH_SUFFIXES else _FROM_PICKLE
        raise _unsafe(path, f"a {suffix} file, that is, a pickle", how)


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(256)
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error.strerror}") from error


def _refuse_signature(path: Path, start: bytes) -> None:
    if start[8:9] == b"{":  # a safetensors file: the header's length in 8 bytes, then JSON
        return
    if start.startswith(b"PK\x03\x04"):
        _refuse_archive(path)
    if start.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")):  # protocols 2 to 5
        raise _unsafe(path, "a pickle", _FROM_PICKLE)
    if start.startswith(b"\x93NUMPY") and b"'|O'" in start:
        raise _unsafe(path, "a .npy file of pickled objects", _FROM_PICKLE)
    for signature, what, how in _SIGNATURES:
        if start.startswith(signature):
            raise FileFormatError(f"{path} is {what}. {_fill(how, path)}")


def _refuse_archive(path: Path) -> None:
    """Tell apart the two zip archives of the field: NumPy's and PyTorch's."""
    if path.suffix.lower() == ".npz":
        raise FileFormatError(f"{path} is a NumPy .npz archive. {_fill(_FROM_NUMPY, path)}")
    raise _unsafe(path, "a zip archive, as PyTorch writes around a pickle", _FROM_TORCH)


def _unsafe(path: Path, what: str, how: str) -> UnsafeFileError:
    return UnsafeFileError(
        f"{path} is {what}. Reading a pickle can run any code that it contains, so Weft never "
        f"does. {_fill(how, path)}"
    )


def _fill(how: str, path: Path) -> str:
    return how.format(name=path.name, converted=path.with_suffix(".safetensors").name)
