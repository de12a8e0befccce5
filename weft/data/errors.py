"""What can go wrong with data, each as a subclass of the builtin that users would expect."""

from __future__ import annotations

import os
from collections.abc import Callable

from ..core.errors import WeftError


class DataFileError(WeftError, ValueError):
    """A data file is malformed; the message names the file, the place and what was expected."""

    def __init__(self, path: object, where: str | None, problem: str) -> None:
        # All three arguments go to `Exception`, so that the error survives the way from a worker.
        super().__init__(path, where, problem)
        self.path = _shown(path)
        self.where = where
        self.problem = problem

    def __str__(self) -> str:
        place = self.path if self.where is None else f"{self.path}, {self.where}"
        return f"{place}: {self.problem}"


class DataFileMissingError(WeftError, FileNotFoundError):
    """A data file or directory does not exist."""


class WorkerError(WeftError, RuntimeError):
    """A worker process of a DataLoader died, or failed in a way that cannot be raised again."""


class WorkerTimeoutError(WeftError, TimeoutError):
    """A worker process of a DataLoader did not deliver in the time that was allowed."""


class WorkerTraceback(Exception):  # noqa: N818  (carries a text; it is a cause, never raised alone)
    """The traceback of a worker process, shown as the cause of the error raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return "\n" + self.text


def check_file(path: object) -> str:
    """Return a path to an existing file as text, or say what is wrong with it."""
    return _checked(path, os.path.isfile, "file", "directory")


def check_directory(path: object) -> str:
    """Return a path to an existing directory as text, or say what is wrong with it."""
    return _checked(path, os.path.isdir, "directory", "file")


def _checked(path: object, is_right: Callable[[str], bool], wanted: str, other: str) -> str:
    shown = _shown(path)
    if is_right(shown):
        return shown
    if os.path.exists(shown):
        raise DataFileError(path, None, f"expected a {wanted}, but this is a {other}")
    raise DataFileMissingError(f"{shown}: no such {wanted} (looked in {os.path.abspath(shown)})")


def _shown(path: object) -> str:
    if isinstance(path, str | os.PathLike):
        return str(os.fspath(path))
    raise TypeError(f"a path must be a string or a Path. Received: {path!r}")
