"""The formats of ELF on x86-64, as far as object code and shared libraries need them.

module = read_object(code)      # what LLVM emits
needed_libraries(file)          # what a shared library asks the loader for
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
DYNAMIC = struct.Struct("<QQ")

IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)
ET_REL, ET_DYN, EM_X86_64 = 1, 3, 62
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_HASH, SHT_DYNAMIC = 1, 2, 3, 4, 5, 6
SHT_NOBITS, SHT_DYNSYM = 8, 11
SHF_WRITE, SHF_ALLOC, SHF_EXECUTE = 1, 2, 4
SHN_UNDEF, SHN_ABS, SHN_COMMON = 0, 0xFFF1, 0xFFF2
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION, STT_TLS = 0, 1, 2, 3, 6
R_64, R_PC32, R_GOT_LOAD, R_PLT32, R_GLOB_DAT, R_RELATIVE = 1, 2, 9, 4, 6, 8
R_PC64, R_GOT_LOAD_X, R_GOT_LOAD_REX = 24, 41, 42
DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_SONAME = 1, 5, 10, 14


class ElfError(ValueError):
    """Object code is not as this linker understands it."""


class ElfSymbol(NamedTuple):
    """A name of an object: where it is, in which section, and who sees it."""

    name: str
    section: int
    value: int
    size: int
    binding: int
    kind: int

    @property
    def is_defined(self) -> bool:
        """Whether the object itself has it."""
        return self.section != SHN_UNDEF


class ElfRelocation(NamedTuple):
    """A place that takes an address when that is known."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass
class ElfSection:
    """A part of an object that is loaded."""

    name: str
    kind: int
    flags: int
    alignment: int
    content: bytes
    size: int
    relocations: list[ElfRelocation] = field(default_factory=list)

    @property
    def is_loaded(self) -> bool:
        """Whether it takes memory when the library runs; unwinding tables do without."""
        return bool(self.flags & SHF_ALLOC) and self.name != ".eh_frame"


@dataclass
class ElfObject:
    """Object code: sections by number, and names."""

    sections: list[ElfSection]
    symbols: list[ElfSymbol]


def read_object(code: bytes) -> ElfObject:
    """Return the parts of object code."""
    headers = _section_headers(code, ET_REL)
    names = _content(code, headers[HEADER.unpack_from(code)[13]])
    sections = [_section(code, header, names) for header in headers]
    symbols: list[ElfSymbol] = []
    for header in headers:
        if header[1] == SHT_SYMTAB:
            symbols = list(_symbols(_content(code, header), _content(code, headers[header[6]])))
    for header in headers:
        if header[1] == SHT_RELA:
            found = RELOCATION.iter_unpack(_content(code, header))
            sections[header[7]].relocations = [
                ElfRelocation(at, info & 0xFFFFFFFF, info >> 32, addend)
                for at, info, addend in found
            ]
    return ElfObject(sections, symbols)


def needed_libraries(file: bytes) -> list[str]:
    """Return the names of the libraries that a shared library needs."""
    headers = _section_headers(file, ET_DYN)
    found = []
    for header in headers:
        if header[1] == SHT_DYNAMIC:
            strings = _content(file, headers[header[6]])
            entries = DYNAMIC.iter_unpack(_content(file, header))
            found += [text_at(strings, value) for tag, value in entries if tag == DT_NEEDED]
    return found


def dynamic_symbols(file: bytes) -> list[ElfSymbol]:
    """Return what a shared library offers, and what it takes from others."""
    headers = _section_headers(file, ET_DYN)
    (header,) = (h for h in headers if h[1] == SHT_DYNSYM)
    found = _symbols(_content(file, header), _content(file, headers[header[6]]))
    return [symbol for symbol in found if symbol.name]


def text_at(strings: bytes, offset: int) -> str:
    """Return a string of a table of strings."""
    return strings[offset : strings.index(b"\0", offset)].decode()


def _section_headers(code: bytes, kind: int) -> list[tuple[int, ...]]:
    if code[:4] != IDENT[:4] or len(code) < HEADER.size:
        raise ElfError("this is no ELF file")
    _, found, machine, *_ = header = HEADER.unpack_from(code)
    if found != kind or machine != EM_X86_64:
        raise ElfError(f"expected ELF of kind {kind} for x86-64. Received: {found}, {machine}")
    start, size, count = header[6], header[11], header[12]
    return [SECTION_HEADER.unpack_from(code, start + i * size) for i in range(count)]


def _content(code: bytes, header: tuple[int, ...]) -> bytes:
    return b"" if header[1] == SHT_NOBITS else code[header[4] : header[4] + header[5]]


def _section(code: bytes, header: tuple[int, ...], names: bytes) -> ElfSection:
    name, kind, flags, _, _, size, _, _, alignment, _ = header
    content = _content(code, header)
    return ElfSection(text_at(names, name), kind, flags, max(1, alignment), content, size)


def _symbols(table: bytes, strings: bytes) -> Iterator[ElfSymbol]:
    for name, info, _, section, value, size in SYMBOL.iter_unpack(table):
        yield ElfSymbol(text_at(strings, name), section, value, size, info >> 4, info & 15)
