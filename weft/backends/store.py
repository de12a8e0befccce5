"""The files of the object cache: code and plans by key, safe against everything a disk can hold.

A file is a header (magic, key, keyed digest of the code) and the code. It is written under a
temporary name and renamed, so a reader sees a whole file or none; what is truncated, corrupt or
foreign all the same is taken for absent and removed. The digest is made with a secret that lies in
the user's own directory, not in the cache: code is run only if a process of this user wrote it,
wherever the directory comes from. It also stands in for an fsync (4 ms a file): what a power
failure leaves behind is found out when it is read.

Nothing here raises on a bad disk: the store warns once and then keeps still.
"""

from __future__ import annotations

import hmac
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .private_file import UnfitError, make_directory, read_private, remove, user_key, write_whole

FORMAT = b"WEFTOBJ2"
SUFFIX = ".weftobj"
DEFAULT_LIMIT = 256 * 1024 * 1024
LARGEST_FILE = 64 * 1024 * 1024  # more is no code of ours
_HEADER_BYTES = len(FORMAT) + 32 + 32
_STALE_SECONDS = 3600.0  # a temporary file of this age has lost its writer
_FRESH_SECONDS = 3600.0  # how exactly the time of the last use is kept


class CacheWarning(UserWarning):
    """The object cache cannot be used as configured; code is kept in memory only."""


@dataclass(frozen=True)
class CacheInfo:
    """What the object cache holds, and how often this process found something in it."""

    path: str | None
    files: int
    bytes: int
    limit: int
    hits: int
    misses: int


class ObjectStore:
    """A directory of machine code by key, or None: then nothing is ever found or kept."""

    def __init__(
        self, path: Path | None, limit: int = DEFAULT_LIMIT, secret: Path | None = None
    ) -> None:
        """Keep code in a directory, under digests made with the secret in a file of the user's."""
        self.path = path
        self.limit = limit
        self.hits = self.misses = 0
        self._secret_file = secret
        self._secret = b""
        self._ready = False
        self._writable = limit > 0
        # Bytes in the directory as of the last look, and what was written since.
        self._known: int | None = None
        self._written = 0
        self._lent: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        """Return the code that was put under a key of 32 bytes, or None."""
        code = self._lent.get(key)
        if code is None and self._open():
            code = self._read(key)
        if code is None:
            self.misses += 1
        else:
            self.hits += 1
        return code

    def lend(self, entries: Mapping[bytes, bytes]) -> None:
        """Find these too, for as long as the process lives; who calls it vouches for them."""
        self._lent.update(entries)

    @property
    def is_there(self) -> bool:
        """Whether anything can be found."""
        return self.path is not None or bool(self._lent)

    def put(self, key: bytes, code: bytes) -> None:
        """Keep code under a key, unless the disk refuses."""
        if len(code) > LARGEST_FILE - _HEADER_BYTES or not (self._open() and self._writable):
            return
        try:
            self._write(key, code)
            self._bound(len(code) + _HEADER_BYTES)
        except OSError as error:
            self._writable = False
            _warn(f"nothing more is written to the object cache {self.path}: {error}")

    def info(self) -> CacheInfo:
        """Count the files; a directory that does not exist is not made."""
        sizes = [size for _, size, _ in _entries(self.path)] if self.path else []
        shown = str(self.path) if self.path else None
        return CacheInfo(shown, len(sizes), sum(sizes), self.limit, self.hits, self.misses)

    # Opening

    def _open(self) -> bool:
        """Make and check the directory the first time; return whether it can be used."""
        if not self._ready and self.path is not None:
            try:
                self._make_directory(self.path)
            except OSError as error:
                _warn(f"the object cache {self.path} is not used: {error}")
                self.path = None
        return self.path is not None

    def _make_directory(self, path: Path) -> None:
        make_directory(str(path))
        self._secret = _secret(self._secret_file or secret_file())
        self._ready = True

    # Files

    def _file(self, key: bytes) -> str:
        return os.path.join(str(self.path), key.hex() + SUFFIX)

    def _read(self, key: bytes) -> bytes | None:
        path = self._file(key)
        try:
            content, modified = read_private(path, LARGEST_FILE)
        except UnfitError:
            remove(path)
            return None
        except OSError:
            return None
        code = self._unpack(key, content)
        if code is None:
            remove(path)
        else:
            _mark_used(path, modified)
        return code

    def _write(self, key: bytes, code: bytes) -> None:
        path = self._file(key)
        content = self._header(key, code) + code
        try:
            write_whole(path, content)
        except FileNotFoundError:  # somebody removed the directory since it was opened
            make_directory(os.path.dirname(path))
            write_whole(path, content)

    def _header(self, key: bytes, code: bytes) -> bytes:
        named = FORMAT + key
        return named + hmac.digest(self._secret, named + code, "sha256")

    def _unpack(self, key: bytes, content: bytes) -> bytes | None:
        """Return the code inside a file, or None if the file is not what its name says."""
        code = content[_HEADER_BYTES:]
        header = self._header(key, code)
        return code if hmac.compare_digest(content[:_HEADER_BYTES], header) else None

    # The bound

    def _bound(self, written: int) -> None:
        """Remove the least recently used files when there is too much.

        Several processes may write; each looks again after writing an eighth of the limit, so that
        it learns of the others in time.
        """
        self._written += written
        known = self.limit if self._known is None else self._known
        if known + self._written > self.limit or self._written > self.limit // 8:
            self._known, self._written = self._prune(), 0

    def _prune(self) -> int:
        """Bring the directory below the limit, with some room to spare; return its size."""
        assert self.path is not None
        entries = sorted(_entries(self.path, remove_stale=True))
        total = sum(size for _, size, _ in entries)
        if total > self.limit:
            for _, size, path in entries:
                if total <= self.limit * 3 // 4:
                    break
                remove(path)
                total -= size
        return total


@cache
def user_store() -> ObjectStore:
    """Return the cache of this user, as the environment configures it."""
    return ObjectStore(cache_directory(), cache_limit())


def cache_info() -> CacheInfo:
    """Return what the object cache holds, and how often this process found something in it."""
    return user_store().info()


def cache_directory() -> Path | None:
    """Return where this user's objects lie: WEFT_CACHE_DIR, or the platform's place for caches."""
    chosen = os.environ.get("WEFT_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser().absolute()
    with suppress(RuntimeError):  # no home directory
        return _platform_caches() / "weft" / "objects"
    return None


def secret_file() -> Path:
    """Return where the secret lies: WEFT_CACHE_KEY, or the platform's place for this user's caches.

    It is not where the cache is: who brings a directory of files must not bring the key to it.
    """
    chosen = os.environ.get("WEFT_CACHE_KEY")
    if chosen:
        return Path(chosen).expanduser().absolute()
    try:
        return _platform_caches() / "weft" / "keys" / "objects"
    except RuntimeError:
        raise FileNotFoundError(
            "the user has no directory to keep a key in; set WEFT_CACHE_KEY to a file"
        ) from None


def user_secret() -> bytes:
    """Return what the files of this user are signed with."""
    return _secret(secret_file())


def cache_limit() -> int:
    """Return the largest size in bytes: WEFT_CACHE_MB (0 keeps nothing), or 256 MB."""
    text = os.environ.get("WEFT_CACHE_MB", "").strip()
    if not text:
        return DEFAULT_LIMIT
    if not text.isdecimal():
        _warn(f"WEFT_CACHE_MB must be a whole number of megabytes. Received: {text!r}")
        return DEFAULT_LIMIT
    return int(text) * 1024 * 1024


def _secret(path: Path) -> bytes:
    try:
        return user_key(str(path))
    except OSError as error:
        raise OSError(f"its key {path} cannot be used: {error}") from error


def _platform_caches() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    return Path(chosen) if os.path.isabs(chosen) else Path.home() / ".cache"


def _entries(path: Path, remove_stale: bool = False) -> Iterator[tuple[float, int, str]]:
    """Yield time of last use, size and path of each file; other processes may remove them."""
    now = time.time()
    with suppress(OSError), os.scandir(path) as found:
        for entry in found:
            with suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                if entry.name.endswith(SUFFIX):
                    yield about.st_mtime, about.st_size, entry.path
                elif remove_stale and _is_stale(entry.name, about.st_mtime, now):
                    remove(entry.path)


def _is_stale(name: str, modified: float, now: float) -> bool:
    return name.startswith(".") and name.endswith(".tmp") and now - modified > _STALE_SECONDS


def _mark_used(path: str, modified: float) -> None:
    with suppress(OSError):
        if time.time() - modified > _FRESH_SECONDS:
            os.utime(path)


def _warn(message: str) -> None:
    """Warn, even where warnings are errors: a cache must not break what works without it."""
    with suppress(Warning):
        warnings.warn(message, CacheWarning, stacklevel=3)
