"""What can go wrong with files, each as a subclass of the builtin that users would expect."""

from __future__ import annotations

from ..core.errors import WeftError


class FileFormatError(WeftError, ValueError):
    """A file is not what it should be, or is damaged."""


class UnsafeFileError(FileFormatError):
    """A file is a pickle, which can run any code when it is read."""


class FileMissingError(WeftError, FileNotFoundError):
    """A file or directory to read does not exist."""


class ReadError(WeftError, OSError):
    """The operating system did not let a file be read."""


class SaveError(WeftError, OSError):
    """Writing failed; what was there before is intact. `errno` tells the cause."""


class CheckpointError(FileFormatError):
    """A checkpoint is incomplete, damaged or of an unknown version."""


class CheckpointWarning(UserWarning):
    """A checkpoint was skipped, or an old one could not be removed."""
