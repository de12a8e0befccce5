"""LMDB and LevelDB as Caffe uses them: values by keys, read in the order of keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol
from weakref import finalize

from ...core.imports import require
from ...data import DataFileError, DataFileMissingError
from ..errors import CaffeError
from .lmdb_pages import Pages

_FIRST_MAP = 1 << 26  # bytes of address space of a new LMDB; it is doubled when it is full


class Store(Protocol):
    """A library's database: values by keys, in a folder."""

    def records(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values, in the order of keys."""

    def __len__(self) -> int: ...

    def put(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Add keys and values, all of them or none."""

    def close(self) -> None:
        """Close the database."""


class Database:
    """A database that is open for one reader; all readers of a folder share what the library opens.

    Neither library opens a folder twice in a process, and a net for training and one for testing
    may read the same.
    """

    def __init__(self, path: str, kind: Callable[[str], Store]) -> None:
        self._key = os.path.realpath(path)
        store, readers = _open.get(self._key) or (kind(path), 0)
        _open[self._key] = store, readers + 1
        self._store = store
        self._release = finalize(self, _released, self._key)
        self._release.atexit = False  # the process ends; a thread may still read

    def records(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values, in the order of keys; whoever reads keeps the database open."""
        yield from self._store.records()

    def __len__(self) -> int:
        return len(self._store)

    def close(self) -> None:
        """Give the database back; the last reader closes it."""
        self._release()


def _released(key: str) -> None:
    store, readers = _open.pop(key)
    if readers > 1:
        _open[key] = store, readers - 1
    else:
        store.close()


_open: dict[str, tuple[Store, int]] = {}


def open_database(path: Any, backend: str) -> Database:
    """Open a database of a kind, "LMDB" or "LEVELDB", to read it."""
    kind, shown = _kind(backend), os.fspath(path)
    if not os.path.isdir(shown):
        raise DataFileMissingError(
            f"{shown}: no such folder (looked in {os.path.abspath(shown)}); a {backend} database "
            "is a folder, which `weft caffe convert-images` or `weft caffe convert-arrays` makes"
        )
    return Database(shown, kind)


def make_database(path: Any, backend: str) -> Store:
    """Make a database of a kind, to fill it."""
    kind, shown = _kind(backend), os.fspath(path)
    if os.path.exists(shown):
        raise CaffeError(f"{shown} exists; remove it, or write elsewhere")
    made: Store = kind(shown, create=True)
    return made


def _kind(backend: str) -> Any:
    kinds = {"LMDB": LmdbStore, "LEVELDB": LevelStore}
    if backend.upper() not in kinds:
        raise CaffeError(f"backend must be LMDB or LEVELDB. Received: {backend}")
    return kinds[backend.upper()]


class LmdbStore:
    """An LMDB, a folder with a file data.mdb; pages are checked before the library reads them."""

    def __init__(self, path: str, create: bool = False) -> None:
        self._path = path
        self._library = require("lmdb", "caffe", "reading LMDB databases")
        self._pages: Pages | None = None
        self._checked = False
        if not create:
            file = os.path.join(path, "data.mdb")
            if not os.path.isfile(file):
                raise DataFileError(path, None, "expected an LMDB: a folder with a file data.mdb")
            self._pages = Pages(file)
        try:
            self._env = self._library.open(
                path,
                map_size=_FIRST_MAP if create else 0,
                readonly=not create,
                lock=create,
                readahead=False,
                max_dbs=0,
            )
        except self._library.Error as error:
            self._close_pages()
            raise DataFileError(path, None, f"expected an LMDB: {error}") from None

    def __len__(self) -> int:
        return self._pages.entries if self._pages is not None else int(self._env.stat()["entries"])

    def records(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values; a leaf of the tree is entered when it was found to be whole."""
        try:
            with self._env.begin() as transaction:
                cursor = transaction.cursor()
                if self._checked or self._pages is None:
                    yield from cursor
                    return
                for count in self._pages.leaves():
                    for _ in range(count):
                        cursor.next()
                        yield cursor.item()
                self._checked = True
        except self._library.Error as error:
            raise DataFileError(self._path, None, f"the LMDB cannot be read: {error}") from None

    def put(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Add keys and values."""
        wanted = list(records)
        try:
            while not self._put_all(wanted):
                self._env.set_mapsize(2 * self._env.info()["map_size"])
        except self._library.Error as error:
            raise DataFileError(self._path, None, f"cannot write: {error}") from None

    def _put_all(self, records: list[tuple[bytes, bytes]]) -> bool:
        """Add keys and values; return whether there was room for all of them, and else add none."""
        try:
            with self._env.begin(write=True) as transaction:
                for key, value in records:
                    transaction.put(key, value)
        except self._library.MapFullError:
            return False
        return True

    def close(self) -> None:
        """Close the database."""
        self._env.close()
        self._close_pages()

    def _close_pages(self) -> None:
        pages, self._pages = self._pages, None
        if pages is not None:
            pages.close()


class LevelStore:
    """A LevelDB; its library verifies checksums. Opening one rewrites its log, so it is locked."""

    def __init__(self, path: str, create: bool = False) -> None:
        self._path = path
        self._library = require("plyvel", "caffe", "reading LevelDB databases")
        self._length: int | None = None
        if not create and not os.path.isfile(os.path.join(path, "CURRENT")):
            raise DataFileError(path, None, "expected a LevelDB: a folder with a file CURRENT")
        try:
            self._database = self._library.DB(
                path, create_if_missing=create, error_if_exists=create, paranoid_checks=True
            )
        except (self._library.Error, OSError) as error:
            raise DataFileError(path, None, f"expected a LevelDB: {error}") from None

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(1 for _ in self._walk(include_value=False))
        return self._length

    def records(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values."""
        return self._walk()

    def _walk(self, **options: Any) -> Iterator[Any]:
        try:
            with self._database.iterator(verify_checksums=True, **options) as walk:
                yield from walk
        except (self._library.Error, OSError) as error:
            raise DataFileError(self._path, None, f"the LevelDB is damaged: {error}") from None

    def put(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Add keys and values."""
        with self._database.write_batch() as batch:
            for key, value in records:
                batch.put(key, value)

    def close(self) -> None:
        """Close the database."""
        self._database.close()
