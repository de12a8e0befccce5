"""Checks of an LMDB file, page by page, before the library goes there.

LMDB maps its file and trusts it: a damaged page number makes it read beyond the file, which ends
the process. So the pages of the tree are walked here first, in the order of keys, and every number
that the library would follow is held against the file's size. A walk costs one read a page.

The layout is that of LMDB 0.9 (data version 1), little-endian with 64-bit page numbers.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from ...data import DataFileError

_MAGIC, _VERSION = 0xBEEFC0DE, 1
_BRANCH, _LEAF, _META = 0x01, 0x02, 0x08  # flags of pages
_BIG = 0x01  # flag of a node whose value lies on pages of its own
_HEADER = 16
_DEEPEST = 32  # the library's own bound
_NONE = 2**64 - 1  # the root of an empty tree
_PAGE = struct.Struct("<QHHHH")  # number, padding, flags, end of pointers, begin of nodes
_TREE = struct.Struct("<IHHQQQQQ")  # page size, flags, depth, three counts, entries, root
_NODE = struct.Struct("<HHHH")  # low and high half of a size or page number, flags, size of the key


class _Meta(NamedTuple):
    page_size: int
    flags: int
    entries: int
    root: int
    last_page: int
    transaction: int


class Pages:
    """The tree of a file `data.mdb`, checked as it is walked."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDONLY)
        try:
            self.size = os.fstat(self._file).st_size
            self._meta = self._newest()
        except BaseException:
            os.close(self._file)
            raise

    @property
    def entries(self) -> int:
        """Return the number of entries that the file claims to have."""
        return self._meta.entries

    def leaves(self) -> Iterator[int]:
        """Yield the number of entries of each leaf, in order; all before it are safe to read."""
        if self._meta.root == _NONE:
            return
        depth: int | None = None
        seen: set[int] = set()
        waiting = [(self._meta.root, 1)]
        while waiting:
            number, level = waiting.pop()
            if number in seen or level > _DEEPEST:
                raise self._damaged(number, "the tree comes back to it")
            seen.add(number)
            page, flags, pointers = self._page(number)
            if flags == _BRANCH:
                children = [self._child(number, page, p) for p in pointers]
                waiting += [(child, level + 1) for child in reversed(children)]
                continue
            if depth is None:
                depth = level
            if level != depth:
                raise self._damaged(number, "the tree has leaves at different depths")
            for pointer in pointers:
                self._check_leaf(number, page, pointer)
            yield len(pointers)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    # -- pages -------------------------------------------------------------------------------------

    def _page(self, number: int) -> tuple[bytes, int, tuple[int, ...]]:
        """Return a page of the tree, its kind, and where its nodes are."""
        size = self._meta.page_size
        if not 2 <= number <= self._meta.last_page or (number + 1) * size > self.size:
            raise self._damaged(number, f"the file has {self.size} bytes")
        page = os.pread(self._file, size, number * size)
        if len(page) != size:
            raise self._damaged(number, "it cannot be read in full")
        itself, _, flags, lower, upper = _PAGE.unpack_from(page)
        count = (lower - _HEADER) >> 1
        if itself != number or flags not in (_BRANCH, _LEAF):
            raise self._damaged(number, "it is no page of the tree")
        if not _HEADER <= lower <= upper <= size or count < (2 if flags == _BRANCH else 1):
            raise self._damaged(number, "its bounds are wrong")
        pointers = struct.unpack_from(f"<{count}H", page, _HEADER)
        if not upper <= min(pointers) <= max(pointers) <= size - _NODE.size:
            raise self._damaged(number, "a node lies outside")
        return page, flags, pointers

    def _child(self, number: int, page: bytes, pointer: int) -> int:
        low, high, flags, key = _NODE.unpack_from(page, pointer)
        if pointer + _NODE.size + key > len(page):
            raise self._damaged(number, "a key reaches beyond it")
        return low | high << 16 | flags << 32

    def _check_leaf(self, number: int, page: bytes, pointer: int) -> None:
        low, high, flags, key = _NODE.unpack_from(page, pointer)
        start, size = pointer + _NODE.size + key, low | high << 16
        if flags not in (0, _BIG):
            raise self._damaged(number, "an entry has several values")
        if start + (8 if flags else size) > len(page):
            raise self._damaged(number, "an entry reaches beyond it")
        if flags:
            (first,) = struct.unpack_from("<Q", page, start)
            end = first * self._meta.page_size + _HEADER + size
            if not 2 <= first <= self._meta.last_page or end > self.size:
                raise self._damaged(number, "a value lies outside the file")

    # -- metadata ----------------------------------------------------------------------------------

    def _newest(self) -> _Meta:
        first = self._read_meta(0)
        second = self._read_meta(first.page_size)
        if second.page_size != first.page_size:
            raise DataFileError(self.path, None, "its two headers have different page sizes")
        meta = second if second.transaction > first.transaction else first
        if meta.flags:
            raise DataFileError(
                self.path, None, f"expected a database as Caffe writes it, found flags {meta.flags}"
            )
        return meta

    def _read_meta(self, offset: int) -> _Meta:
        content = os.pread(self._file, 152, offset)
        if len(content) < 152 or not _PAGE.unpack_from(content)[2] & _META:
            raise DataFileError(self.path, f"offset {offset}", "expected a header of LMDB")
        magic, version = struct.unpack_from("<II", content, 16)
        if (magic, version) != (_MAGIC, _VERSION):
            raise DataFileError(
                self.path, f"offset {offset}", f"this is no LMDB file of version {_VERSION}"
            )
        page_size = _TREE.unpack_from(content, 40)[0]
        _, flags, _, _, _, _, entries, root = _TREE.unpack_from(content, 88)
        last_page, transaction = struct.unpack_from("<QQ", content, 136)
        if page_size not in (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536):
            raise DataFileError(self.path, f"offset {offset}", f"no page has {page_size} bytes")
        return _Meta(page_size, flags, entries, root, last_page, transaction)

    def _damaged(self, number: int, why: str) -> DataFileError:
        return DataFileError(self.path, f"page {number}", f"the database is damaged: {why}")
