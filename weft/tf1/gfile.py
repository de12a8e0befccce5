"""`tf.gfile`: files of this machine, by TensorFlow's names."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterator
from typing import Any

from .errors import AlreadyExistsError, NotFoundError

__all__ = [
    "Copy",
    "DeleteRecursively",
    "Exists",
    "FastGFile",
    "GFile",
    "Glob",
    "IsDirectory",
    "ListDirectory",
    "MakeDirs",
    "MkDir",
    "Open",
    "Remove",
    "Rename",
    "Stat",
    "Walk",
]


class GFile:
    """A file that is opened when it is first read or written."""

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._name, self._mode = os.fspath(name), mode
        self._file: Any = None

    def _opened(self) -> Any:
        if self._file is None:
            try:
                encoding = None if "b" in self._mode else "utf-8"
                self._file = open(self._name, self._mode, encoding=encoding)  # noqa: SIM115  (see close)
            except FileNotFoundError as error:
                raise NotFoundError(
                    None, None, f"{self._name}; No such file or directory"
                ) from error
        return self._file

    @property
    def name(self) -> str:
        """Return the path."""
        return self._name

    def read(self, n: int = -1) -> Any:
        """Return what is left of the file, or n bytes of it."""
        return self._opened().read(n)

    def readline(self) -> Any:
        """Return the next line."""
        return self._opened().readline()

    def readlines(self) -> Any:
        """Return all lines."""
        return self._opened().readlines()

    def write(self, text: Any) -> None:
        """Write."""
        self._opened().write(text)

    def seek(self, offset: int) -> None:
        """Go to a place."""
        self._opened().seek(offset)

    def tell(self) -> int:
        """Return the place."""
        return int(self._opened().tell())

    def size(self) -> int:
        """Return the number of bytes."""
        return os.path.getsize(self._name)

    def flush(self) -> None:
        """Write what is waiting."""
        self._opened().flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._opened())

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


Open = FastGFile = GFile


def Exists(filename: Any) -> bool:
    """Tell whether there is a file or a folder."""
    return os.path.exists(filename)


def IsDirectory(dirname: Any) -> bool:
    """Tell whether there is a folder."""
    return os.path.isdir(dirname)


def MakeDirs(dirname: Any) -> None:
    """Make a folder and those around it."""
    os.makedirs(dirname, exist_ok=True)


def MkDir(dirname: Any) -> None:
    """Make a folder."""
    os.mkdir(dirname)


def ListDirectory(dirname: Any) -> list[str]:
    """Return the names in a folder."""
    if not os.path.isdir(dirname):
        raise NotFoundError(None, None, f"Could not find directory {dirname}")
    return os.listdir(dirname)


def Glob(filename: Any) -> list[str]:
    """Return the files that match a pattern, or several."""
    patterns = filename if isinstance(filename, (list, tuple)) else [filename]
    return [path for pattern in patterns for path in sorted(glob.glob(pattern))]


def Remove(filename: Any) -> None:
    """Remove a file."""
    if not os.path.exists(filename):
        raise NotFoundError(None, None, f"{filename}; No such file or directory")
    os.remove(filename)


def DeleteRecursively(dirname: Any) -> None:
    """Remove a folder and all that is in it."""
    if not os.path.isdir(dirname):
        raise NotFoundError(None, None, f"{dirname}; No such file or directory")
    shutil.rmtree(dirname)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Give a file another name."""
    if os.path.exists(newname) and not overwrite:
        raise AlreadyExistsError(None, None, f"file already exists: {newname}")
    os.replace(oldname, newname)


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copy a file."""
    if os.path.exists(newpath) and not overwrite:
        raise AlreadyExistsError(None, None, f"file already exists: {newpath}")
    shutil.copyfile(oldpath, newpath)


def Stat(filename: Any) -> os.stat_result:
    """Return what is known of a file."""
    return os.stat(filename)


def Walk(top: Any, in_order: bool = True) -> Any:
    """Yield folders, with the folders and files in them."""
    return os.walk(top, topdown=in_order)
