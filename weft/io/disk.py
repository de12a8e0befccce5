"""Writing so that a crash at any moment leaves either the old or the new content, never a mixture.

Everything is written under a temporary name beside its target, forced to the disk, and renamed;
POSIX makes the rename atomic, and forcing the parent directory makes it durable. A killed writer
leaves at most a temporary, whose name tells host and process, so that a later one can remove it.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .errors import SaveError

StrPath = str | os.PathLike[str]
Writer = Callable[[Path], None]

_HOST: Final = re.sub(r"[^A-Za-z0-9]", "", platform.node())[:32] or "localhost"
_TEMPORARY: Final = re.compile(
    r"\.(?P<target>.+)\.(?:tmp|trash)-(?P<host>[A-Za-z0-9]+)-(?P<pid>\d+)-[0-9a-f]{8}"
)
# Temporaries this process is writing now: another thread must not take them for leftovers.
_in_use: set[Path] = set()

_NOT_WRITABLE: Final = "the directory is not writable: choose another one or change its permissions"
_HINTS: Final = {
    errno.ENOSPC: "the disk is full: free some space or choose another directory",
    errno.EDQUOT: "the disk quota is used up: free some space or choose another directory",
    errno.EFBIG: "the file would be larger than the file system or the user's limit allows",
    errno.EROFS: "the file system is read-only: choose another directory",
    errno.EACCES: _NOT_WRITABLE,
    errno.EPERM: _NOT_WRITABLE,
    errno.ENOENT: "the directory does not exist: create it first",
    errno.ENOTDIR: "a part of the path is a file: choose another directory",
    errno.EISDIR: "there is a directory of that name: choose another name",
    errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
}


def replace_file(target: Path, write: Writer) -> None:
    """Let `write(path)` make a file and put it in the place of `target`."""
    with _staged(target) as temporary:
        temporary.mkdir()  # a directory, so that leftovers of whoever writes are inside it
        file = temporary / target.name
        write(file)
        sync(file)
        os.replace(file, target)
        sync(target.parent)


def replace_directory(target: Path, write: Writer) -> None:
    """Let `write(path)` fill a new directory and put it in the place of `target`.

    A directory cannot be renamed over another, so the old one first becomes `previous_of(target)`;
    whoever reads must look there when a crash left no `target`.
    """
    with _staged(target) as temporary:
        temporary.mkdir()
        write(temporary)
        for entry in sorted(temporary.iterdir()):
            sync(entry)
        sync(temporary)
        _swap_in(temporary, target)
        sync(target.parent)
    discard(previous_of(target))


def remove_directory(target: Path) -> None:
    """Remove a directory so that a crash leaves nothing that looks like a damaged one."""
    trash = _temporary_name(target, "trash")
    os.rename(target, trash)
    discard(trash)


def previous_of(target: Path) -> Path:
    """Return where the old directory stands for the moment in which it is replaced."""
    return target.with_name(f".{target.name}.previous")


def sync(path: Path) -> None:
    """Force a file, or the names in a directory, to the disk."""
    if os.name == "nt" and path.is_dir():  # Windows cannot open directories
        return
    # Windows flushes only files that are open for writing.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a directory; nothing better can be done there.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) or not path.is_dir():
            raise
    finally:
        os.close(descriptor)


def discard(path: Path) -> None:
    """Remove a file or a whole directory if it can be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return


def sweep(parent: Path) -> None:
    """Remove temporaries that writers left here when they were killed."""
    try:
        entries = list(parent.iterdir())
    except OSError:
        return
    for entry in entries:
        match = _TEMPORARY.fullmatch(entry.name)
        if match and match["host"] == _HOST and not _is_in_use(entry, int(match["pid"])):
            discard(entry)


def recover(parent: Path) -> None:
    """Finish replacements of directories that a crash interrupted; only for the one who writes."""
    for previous in parent.glob(".*.previous"):
        target = previous.with_name(previous.name.removeprefix(".").removesuffix(".previous"))
        try:
            if not target.exists():
                os.rename(previous, target)
        except OSError:  # it can be read where it is
            continue
        discard(previous)


def resolve_target(path: StrPath) -> Path:
    """Return the path to write, following symbolic links so that a link is not overwritten."""
    return Path(os.path.realpath(path))


@contextmanager
def _staged(target: Path) -> Iterator[Path]:
    temporary = _temporary_name(target, "tmp")
    _in_use.add(temporary)
    try:
        yield temporary
    except OSError as error:
        raise _save_error(target, error) from error
    finally:
        discard(temporary)
        _in_use.discard(temporary)


def _swap_in(temporary: Path, target: Path) -> None:
    if not target.exists():
        os.rename(temporary, target)
        return
    previous = previous_of(target)
    discard(previous)  # of an earlier crash; `target` is complete, so nobody needs it
    os.rename(target, previous)
    try:
        os.rename(temporary, target)
    except OSError:
        os.rename(previous, target)
        raise


def _temporary_name(target: Path, kind: str) -> Path:
    unique = os.urandom(4).hex()
    return target.with_name(f".{target.name}.{kind}-{_HOST}-{os.getpid()}-{unique}")


def _is_in_use(path: Path, pid: int) -> bool:
    if pid == os.getpid():
        return path in _in_use
    if os.name == "nt":  # there, os.kill(pid, 0) would end the process
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _save_error(target: Path, error: OSError) -> SaveError:
    code = error.errno or 0
    reason = error.strerror or str(error)
    hint = _HINTS.get(code, "see the error above")
    return SaveError(
        code,
        f"cannot write {target}: {reason}{_free_space(target)}; {hint}. "
        "Nothing was changed: what was saved before is intact",
    )


def _free_space(target: Path) -> str:
    try:
        return f" ({shutil.disk_usage(target.parent).free / 1e6:.1f} MB free)"
    except OSError:
        return ""
