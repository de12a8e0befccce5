"""The sources of this package: what decides about everything that it makes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from functools import cache

from .imports import deferred_imports

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LOADED = time.time()


@cache
def sources_digest(parts: Sequence[str]) -> bytes | None:
    """Return a digest of the sources of subpackages and modules, as this process has loaded them.

    None if that cannot be told: they are not files, or have changed since they were loaded.
    """
    with deferred_imports:
        import hashlib  # noqa: PLC0415  (loads OpenSSL: programs that compile nothing do not wait)

    digest = hashlib.sha256()
    count = 0
    try:
        for path in _files(parts):
            content = _read(path)
            digest.update(f"{path[len(_PACKAGE) :]}:{len(content)}:".encode() + content)
            count += 1
    except (OSError, _ChangedError):
        return None
    return digest.digest() if count >= len(parts) else None


class _ChangedError(Exception):
    """A file is younger than what was loaded from it."""


def _files(parts: Sequence[str]) -> Iterator[str]:
    """Yield all source files, in an order that does not depend on the disk's."""
    for part in sorted(parts):
        path = os.path.join(_PACKAGE, part)
        if part.endswith(".py"):
            yield path
        for directory, below, names in os.walk(path):
            below.sort()
            yield from (os.path.join(directory, n) for n in sorted(names) if n.endswith(".py"))


def _read(path: str) -> bytes:
    """Return the content of a file; hundreds are read, so without the layers of `open`."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        about = os.fstat(handle)
        if about.st_mtime >= _LOADED:
            raise _ChangedError(path)
        return os.read(handle, about.st_size + 1)
    finally:
        os.close(handle)
