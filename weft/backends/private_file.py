"""Files that only this user writes: opened without trust, written whole, and the key among them.

A path may hold anything by the time it is opened: a pipe that never answers, a link to a device, a
file of somebody else's. So a file is judged by what was opened, before a byte of it is read.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from contextlib import suppress
from typing import NamedTuple

KEY_BYTES = 32
WRITE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
ANY_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_MOST_KEY_BYTES = 4096
_ATTEMPTS = 8  # at a key that other processes make and replace at the same time

# Links are not followed, and opening a pipe does not wait for its other end.
_FLAGS = os.O_RDONLY
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)
_NO_FILE = {errno.ELOOP, errno.EMLINK, errno.ENXIO}  # a link, a socket


class UnfitError(PermissionError):
    """What lies in a place is no file, or no directory, that is trusted."""


class Found(NamedTuple):
    """What a file holds, and when it was last marked as used."""

    content: bytes
    modified: float


def read_private(path: str, most: int, forbidden: int = WRITE_BY_OTHERS) -> Found:
    """Return the content of a regular file of this user's; raise if there is anything else."""
    handle = _opened(path)
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise UnfitError("it is no regular file")
        check_owner(about, forbidden)
        if about.st_size > most:
            raise UnfitError(f"it has more than {most} bytes")
        return Found(_read_all(handle, about.st_size), about.st_mtime)
    finally:
        os.close(handle)


def _opened(path: str) -> int:
    try:
        return os.open(path, _FLAGS)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise UnfitError("it is no regular file") from None
        raise


def _read_all(handle: int, size: int) -> bytes:
    content = os.read(handle, size)
    while len(content) < size and (more := os.read(handle, size - len(content))):
        content += more
    return content


def check_owner(about: os.stat_result, forbidden: int = WRITE_BY_OTHERS) -> None:
    """Refuse what somebody else could have written, or may do what is forbidden with."""
    if not hasattr(os, "geteuid"):
        return
    if about.st_uid != os.geteuid():
        raise UnfitError("it belongs to another user")
    if about.st_mode & forbidden & WRITE_BY_OTHERS:
        raise UnfitError("other users may write to it; run chmod go-w on it")
    if about.st_mode & forbidden:
        raise UnfitError("other users may read it; run chmod go-rwx on it")


def make_directory(path: str) -> None:
    """Make a directory unless it is there; raise if others could write to it."""
    parent = os.path.dirname(path)
    if parent:
        os.makedirs(parent, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    about = os.stat(path)
    if not stat.S_ISDIR(about.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    check_owner(about)


def write_whole(path: str, content: bytes) -> None:
    """Write a file so that no reader, now or after a crash, takes a part of it for the whole."""
    with _Temporary(path, content) as temporary, suppress(PermissionError):
        os.replace(temporary, path)  # Windows refuses while another process reads the same file


def remove(path: str) -> None:
    """Remove a file, if that is possible."""
    with suppress(OSError):
        os.unlink(path)


class _Temporary:
    """A file beside another one, whole under a name of its own, and gone in the end."""

    def __init__(self, path: str, content: bytes) -> None:
        name = f".{os.getpid()}-{secrets.token_hex(8)}.tmp"
        self.path = os.path.join(os.path.dirname(path), name)
        self.content = content

    def __enter__(self) -> str:
        try:
            with open(self.path, "xb", opener=_private) as file:
                file.write(self.content)
        except BaseException:
            remove(self.path)
            raise
        return self.path

    def __exit__(self, *_: object) -> None:
        remove(self.path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


# -- the key ---------------------------------------------------------------------------------------


def user_key(path: str) -> bytes:
    """Return the secret in a file, made if there is none; all processes find the same one."""
    make_directory(os.path.dirname(path))
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):
            content = read_private(path, _MOST_KEY_BYTES, ANY_BY_OTHERS).content
            if len(content) == KEY_BYTES:
                return content
            remove(path)  # damaged: its code is lost, but other code will be made
        _make_key(path)
    raise OSError(errno.EAGAIN, "others keep replacing it", path)


def _make_key(path: str) -> None:
    """Put a new key in a place, whole at once, unless another process was quicker."""
    with _Temporary(path, secrets.token_bytes(KEY_BYTES)) as temporary:
        if sys.platform == "win32":
            with suppress(FileExistsError):
                os.rename(temporary, path)  # which replaces nothing there
            return
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
        except OSError:  # a disk without links: the last one wins, and all read what is there
            os.replace(temporary, path)
