"""Write a shared library that the loader of Linux takes: an image, with tables around it.

    write_shared_library(file, image, exports=["weft_run"], soname="model.so", needed=["libc.so.6"])

Offsets in the file are addresses in memory. What a program that links with the library reads comes
first: names, and how they are found; relocations follow. All names of other libraries are bound
when it is loaded. It stays loaded: threads of its own may stand in its code.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from . import elf
from .image import BLOB, CODE, PARTS, READ, WRITE, Image, PartOfMemory

_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_X, _W, _R = 1, 2, 4
_FLAGS = {READ: _R, CODE: _R | _X, WRITE: _R | _W, BLOB: _R}
_BIND_NOW, _NOW, _NODELETE = 8, 1, 8
_TAGS = {
    "needed": 1, "hash": 4, "strtab": 5, "symtab": 6, "rela": 7, "relasz": 8, "relaent": 9,
    "strsz": 10, "syment": 11, "soname": 14, "flags": 30, "flags_1": 0x6FFFFFFB, "end": 0,
}  # fmt: skip


@dataclass
class _Tables:
    """The tables before the image by their names, where each begins, and where the last ends."""

    contents: dict[str, bytes]
    at: dict[str, int]
    end: int

    def place(self, name: str) -> tuple[int, int]:
        """Return where a table begins, and its size."""
        return self.at[name], len(self.contents[name])


class _Strings:
    """A table of strings, each of them once."""

    def __init__(self) -> None:
        self.content = b"\0"
        self._known: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = len(self.content)
            self.content += text.encode() + b"\0"
        return self._known[text]


def write_shared_library(
    file: BinaryIO,
    image: Image,
    *,
    exports: Sequence[str],
    soname: str,
    needed: Sequence[str],
    optional: Collection[str] = (),
) -> None:
    """Write an image as a shared library.

    exports    names that others find
    needed     libraries that have what the image lacks
    optional   names that may be missing there: they are 0 then
    """
    _Writer(image, exports, soname, needed, optional).write(file)


class _Writer:
    def __init__(
        self,
        image: Image,
        exports: Sequence[str],
        soname: str,
        needed: Sequence[str],
        optional: Collection[str],
    ) -> None:
        self.image, self.exports, self.optional = image, exports, optional
        self.strings = _Strings()
        self.soname = self.strings.add(soname)
        self.needed = [self.strings.add(name) for name in needed]
        image.reserve(8 * 2 * (len(self.needed) + len(_TAGS)))
        self.names = [*image.externals, *exports]
        for name in self.names:
            self.strings.add(name)

    def write(self, file: BinaryIO) -> None:
        """Lay out, link and write."""
        image = self.image
        image.lay_out(0)
        image.link()  # which tells how many relocations there are
        tables = self._tables()
        image.lay_out(tables.end)
        image.set_dynamic(self._dynamic(tables))
        image.link()
        tables = self._tables()
        parts = [part for part in image.parts.values() if part.pieces]
        file.write(self._header(parts[-1].end))
        file.writelines(content + bytes(-len(content) % 8) for content in tables.contents.values())
        at = tables.end
        for part in parts:
            at = _write_part(file, part, at)
        self._write_sections(file, tables, at)

    # -- tables ------------------------------------------------------------------------------------

    def _tables(self) -> _Tables:
        contents = {
            "hash": self._hash(),
            "symtab": self._symbols(),
            "strtab": self.strings.content,
            "rela": self._relocations(),
        }
        at: dict[str, int] = {}
        end = elf.HEADER.size + elf.PROGRAM_HEADER.size * (len(PARTS) + 2)
        for name, content in contents.items():
            at[name] = end
            end += -(-len(content) // 8) * 8
        return _Tables(contents, at, end)

    def _symbols(self) -> bytes:
        made = bytes(elf.SYMBOL.size)
        for name in self.image.externals:
            binding = elf.STB_WEAK if name in self.optional else elf.STB_GLOBAL
            made += elf.SYMBOL.pack(self.strings.add(name), binding << 4, 0, 0, 0, 0)
        section = 1 + _SECTIONS.index(".text")
        for name in self.exports:
            address, size = self.image.address(name), self.image.size_of(name)
            info = elf.STB_GLOBAL << 4 | elf.STT_FUNC
            made += elf.SYMBOL.pack(self.strings.add(name), info, 0, section, address, size)
        return made

    def _hash(self) -> bytes:
        """Return the table by which the loader finds names."""
        count = max(1, len(self.names))
        buckets, chains = [0] * count, [0] * (len(self.names) + 1)
        for i, name in enumerate(self.names, 1):
            place = _hash_of(name) % count
            chains[i], buckets[place] = buckets[place], i
        words = [count, len(chains), *buckets, *chains]
        return struct.pack(f"<{len(words)}I", *words)

    def _relocations(self) -> bytes:
        numbers = {name: i for i, name in enumerate(self.image.externals, 1)}
        made = bytearray()
        for at, symbol, value in self.image.dynamic:
            if symbol is None:
                made += elf.RELOCATION.pack(at, elf.R_RELATIVE, value)
            else:
                made += elf.RELOCATION.pack(at, numbers[symbol] << 32 | elf.R_GLOB_DAT, 0)
        return bytes(made)

    def _dynamic(self, tables: _Tables) -> list[int]:
        at = tables.at
        values = {
            "hash": at["hash"],
            "strtab": at["strtab"],
            "symtab": at["symtab"],
            "rela": at["rela"],
            "relasz": len(tables.contents["rela"]),
            "relaent": elf.RELOCATION.size,
            "strsz": len(tables.contents["strtab"]),
            "syment": elf.SYMBOL.size,
            "soname": self.soname,
            "flags": _BIND_NOW,
            "flags_1": _NOW | _NODELETE,
            "end": 0,
        }
        entries = [(_TAGS["needed"], name) for name in self.needed]
        entries += [(_TAGS[name], value) for name, value in values.items()]
        words = [word for entry in entries for word in entry]
        return words + [0] * (2 * (len(self.needed) + len(_TAGS)) - len(words))

    # -- headers -----------------------------------------------------------------------------------

    def _header(self, end: int) -> bytes:
        """Return the headers of the file, whose parts of memory end there, and of these parts."""
        count = 1 + len(_SECTIONS)
        segments = elf.PROGRAM_HEADER.size
        made = elf.HEADER.pack(
            elf.IDENT, elf.ET_DYN, elf.EM_X86_64, 1, 0, elf.HEADER.size, -(-end // 8) * 8, 0,
            elf.HEADER.size, segments, len(PARTS) + 2, elf.SECTION_HEADER.size, count, count - 1,
        )  # fmt: skip
        for name, part in self.image.parts.items():
            begin = 0 if name == READ else part.begin  # the first one holds the tables too
            size = part.end - begin
            made += elf.PROGRAM_HEADER.pack(
                _LOAD if size else 0, _FLAGS[name], begin, begin, begin, size, size, 4096
            )
        at, size = self.image.dynamic_place
        made += elf.PROGRAM_HEADER.pack(_DYNAMIC, _R | _W, at, at, at, size, size, 8)
        made += elf.PROGRAM_HEADER.pack(_STACK, _R | _W, 0, 0, 0, 0, 0, 16)
        return made

    def _write_sections(self, file: BinaryIO, tables: _Tables, end: int) -> None:
        """Write what linkers and debuggers read: which part of the file is what."""
        names = _Strings()
        for name in _SECTIONS:
            names.add(name)
        start = -(-end // 8) * 8
        count = 1 + len(_SECTIONS)
        file.write(bytes(start - end))
        file.write(bytes(elf.SECTION_HEADER.size))
        behind = start + count * elf.SECTION_HEADER.size
        for name in _SECTIONS:
            file.write(self._section(name, names.add(name), tables, behind, len(names.content)))
        file.write(names.content)

    def _section(self, name: str, text: int, tables: _Tables, behind: int, names: int) -> bytes:
        kind, flags, link, entry = _SECTION_FACTS[name]
        at, size = self._place_of(name, tables, behind, names)
        address = at if flags else 0
        info = 1 if name == ".dynsym" else 0
        number = 1 + _SECTIONS.index(link) if link else 0
        return elf.SECTION_HEADER.pack(
            text, kind, flags, address, at, size, number, info, 8 if entry else 1, entry
        )

    def _place_of(self, name: str, tables: _Tables, behind: int, names: int) -> tuple[int, int]:
        """Return where a section begins, and its size."""
        parts = self.image.parts
        at, size = self.image.dynamic_place
        places: dict[str, Callable[[], tuple[int, int]]] = {
            ".hash": lambda: tables.place("hash"),
            ".dynsym": lambda: tables.place("symtab"),
            ".dynstr": lambda: tables.place("strtab"),
            ".rela.dyn": lambda: tables.place("rela"),
            ".rodata": lambda: (parts[READ].begin, parts[READ].end - parts[READ].begin),
            ".text": lambda: (parts[CODE].begin, parts[CODE].end - parts[CODE].begin),
            ".dynamic": lambda: (at, size),
            ".data": lambda: (at + size, parts[WRITE].end - at - size),
            ".weights": lambda: (parts[BLOB].begin, parts[BLOB].end - parts[BLOB].begin),
            ".shstrtab": lambda: (behind, names),
        }
        return places[name]()


_A, _WA, _AX = elf.SHF_ALLOC, elf.SHF_ALLOC | elf.SHF_WRITE, elf.SHF_ALLOC | elf.SHF_EXECUTE
# Of each section: its kind, its flags, the section that it refers to, bytes of an entry.
_SECTION_FACTS: dict[str, tuple[int, int, str, int]] = {
    ".hash": (elf.SHT_HASH, _A, ".dynsym", 4),
    ".dynsym": (elf.SHT_DYNSYM, _A, ".dynstr", elf.SYMBOL.size),
    ".dynstr": (elf.SHT_STRTAB, _A, "", 0),
    ".rela.dyn": (elf.SHT_RELA, _A, ".dynsym", elf.RELOCATION.size),
    ".rodata": (elf.SHT_PROGBITS, _A, "", 0),
    ".text": (elf.SHT_PROGBITS, _AX, "", 0),
    ".dynamic": (elf.SHT_DYNAMIC, _WA, ".dynstr", elf.DYNAMIC.size),
    ".data": (elf.SHT_PROGBITS, _WA, "", 0),
    ".weights": (elf.SHT_PROGBITS, _A, "", 0),
    ".shstrtab": (elf.SHT_STRTAB, 0, "", 0),
}
_SECTIONS = list(_SECTION_FACTS)


def _write_part(file: BinaryIO, part: PartOfMemory, at: int) -> int:
    """Write a part of the image behind what is written already; return where it ends."""
    file.write(bytes(part.begin - at))
    at = part.begin
    for piece in part.pieces:
        file.write(bytes(piece.address - at))
        written = sum(file.write(chunk) for chunk in piece.content)
        assert written == piece.size, "a piece has as many bytes as it said"
        at = piece.address + piece.size
    return at


def _hash_of(name: str) -> int:
    """Return the hash of the System V ABI."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value & 0xFFFFFFFF
