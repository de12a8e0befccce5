"""Lay object code and data out as the memory of a shared library, and resolve addresses.

    image = Image()
    image.add_object(code)                            # what objects define, others find by name
    image.add_data("weft_model", words)               # tables of numbers and addresses
    image.add_blob("weft_weights", chunks, nbytes)    # bytes, behind everything else
    image.reserve(dynamic_bytes=256)
    image.lay_out(first=4096)
    image.link()

Memory has four parts: constants that are read, code, what is written (tables of addresses, which
the loader fills in, among it), and blobs. Each begins on a page of its own. Weights are the last:
code reaches everything before them by short relative addresses, and them by tables.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from . import elf
from .elf import ElfError, ElfObject, ElfSection, read_object

PAGE = 4096
STUB_BYTES = 8  # of the jump to a function of another library
READ, CODE, WRITE, BLOB = "read", "code", "write", "blob"
PARTS = (READ, CODE, WRITE, BLOB)
_HALF = 2**31


class Address(NamedTuple):
    """The address of a name, and how far behind it; a word of data that the loader fills in."""

    name: str
    further: int = 0


Word = int | Address


@dataclass
class LinkedPiece:
    """A section of an object, or data, and where it lies."""

    part: str
    alignment: int
    size: int
    content: Iterable[bytes]
    source: tuple[int, int] | None = None  # which object and section of it, if it is one
    words: Sequence[Word] = ()
    address: int = 0


@dataclass
class PartOfMemory:
    """A part of memory, from an address to another."""

    begin: int = 0
    end: int = 0
    pieces: list[LinkedPiece] = field(default_factory=list)


class DynamicRelocation(NamedTuple):
    """What the loader writes at a place: an address within, or that of a name of elsewhere."""

    at: int
    symbol: str | None
    value: int


class Image:
    """The memory of a library."""

    def __init__(self, renamed: dict[str, str] | None = None) -> None:
        """Begin; `renamed` are names that objects ask for, and what they are given instead."""
        self.renamed = renamed or {}
        self.parts = {name: PartOfMemory() for name in PARTS}
        self.dynamic: list[DynamicRelocation] = []
        self.externals: list[str] = []
        self._objects: list[ElfObject] = []
        self._sections: dict[tuple[int, int], LinkedPiece] = {}
        self._defined: dict[str, tuple[int, int]] = {}  # object and symbol
        self._data: dict[str, LinkedPiece] = {}
        self._got: dict[str, int] = {}
        self._stubs: dict[str, int] = {}
        self._got_piece = LinkedPiece(WRITE, 8, 0, ())
        self._stub_piece = LinkedPiece(CODE, 16, 0, ())
        self._dynamic_piece = LinkedPiece(WRITE, 16, 0, ())
        self.parts[WRITE].pieces += [self._dynamic_piece, self._got_piece]
        self.parts[CODE].pieces.append(self._stub_piece)

    # -- what there is -----------------------------------------------------------------------------

    def add_object(self, code: bytes, *, alone: str = "") -> None:
        """Add object code. With `alone`, its names are its own: others ask for `alone` + name."""
        number, module = len(self._objects), read_object(code)
        self._objects.append(module)
        for i, section in enumerate(module.sections):
            if section.is_loaded and section.size:
                self._add_section(number, i, section)
        for i, symbol in enumerate(module.symbols):
            if symbol.is_defined and symbol.binding != elf.STB_LOCAL:
                self._defined.setdefault(alone + symbol.name, (number, i))

    def _add_section(self, number: int, i: int, section: ElfSection) -> None:
        if section.flags & elf.SHF_EXECUTE:
            part = CODE
        else:
            part = WRITE if section.flags & elf.SHF_WRITE else READ
        content = section.content or bytes(section.size)
        piece = LinkedPiece(part, section.alignment, section.size, (content,), (number, i))
        self._sections[number, i] = piece
        self.parts[part].pieces.append(piece)

    def add_data(self, name: str, words: Sequence[Word], *, constant: bool = False) -> None:
        """Add a table of words under a name. Those with addresses are filled in by the loader."""
        part = READ if constant else WRITE
        self._add(name, LinkedPiece(part, 64, 8 * len(words), (), words=words))

    def add_bytes(self, name: str, content: bytes) -> None:
        """Add bytes that are only read under a name."""
        self._add(name, LinkedPiece(READ, 64, len(content), (content,)))

    def add_blob(self, name: str, chunks: Iterable[bytes], nbytes: int) -> None:
        """Add bytes that are only read behind everything else; they are taken when written."""
        self._add(name, LinkedPiece(BLOB, PAGE, nbytes, chunks))

    def _add(self, name: str, piece: LinkedPiece) -> None:
        self._data[name] = piece
        self.parts[piece.part].pieces.append(piece)

    @property
    def undefined(self) -> list[str]:
        """Return the names that no object defines, in the order in which they are met."""
        found: dict[str, None] = {}
        for module in self._objects:
            for symbol in module.symbols:
                name = self.renamed.get(symbol.name, symbol.name)
                if not symbol.is_defined and symbol.name and not self._is_here(name):
                    found[name] = None
        return list(found)

    def _is_here(self, name: str) -> bool:
        return name in self._defined or name in self._data

    # -- where it lies -----------------------------------------------------------------------------

    def lay_out(self, first: int) -> None:
        """Decide where everything lies, from an address on."""
        at = first
        for name in PARTS:
            part = self.parts[name]
            at = part.begin = _aligned(at, PAGE) if name != READ else at
            for piece in part.pieces:
                at = piece.address = _aligned(at, piece.alignment)
                at += piece.size
            part.end = at

    def reserve(self, dynamic_bytes: int) -> None:
        """Make room for what the loader reads and for its addresses, once everything is added."""
        self._dynamic_piece.size = dynamic_bytes
        self.externals = self.undefined
        wanted: dict[str, None] = dict.fromkeys(self.externals)
        for number, module in enumerate(self._objects):
            for section in module.sections:
                for relocation in section.relocations if section.is_loaded else ():
                    if relocation.kind in (elf.R_GOT_LOAD, elf.R_GOT_LOAD_X, elf.R_GOT_LOAD_REX):
                        wanted[self._got_key(number, relocation.symbol)] = None
        self._got = {name: 8 * i for i, name in enumerate(wanted)}
        self._stubs = {name: STUB_BYTES * i for i, name in enumerate(self.externals)}
        self._got_piece.size = 8 * len(self._got)
        self._stub_piece.size = STUB_BYTES * len(self._stubs)

    @property
    def dynamic_place(self) -> tuple[int, int]:
        """Return where the loader's own table lies, and its size."""
        return self._dynamic_piece.address, self._dynamic_piece.size

    def set_dynamic(self, words: Sequence[int]) -> None:
        """Take what the loader's own table holds."""
        self._dynamic_piece.words = words

    def _got_key(self, number: int, symbol: int) -> str:
        """Return what an entry of the table of addresses is known by: local names by numbers."""
        found = self._objects[number].symbols[symbol]
        if found.is_defined:
            return f"{number}:{symbol}"
        return self.renamed.get(found.name, found.name)

    def address(self, name: str) -> int:
        """Return the address of something that is here."""
        if name in self._data:
            return self._data[name].address
        return self._symbol_address(*self._defined[name])

    def _symbol_address(self, number: int, symbol: int) -> int:
        found = self._objects[number].symbols[symbol]
        if found.kind == elf.STT_TLS or found.section in (elf.SHN_ABS, elf.SHN_COMMON):
            raise ElfError(f"{found.name} is of a kind that this linker does not know")
        return self._sections[number, found.section].address + found.value

    def size_of(self, name: str) -> int:
        """Return how many bytes something has that is here."""
        if name in self._data:
            return self._data[name].size
        number, symbol = self._defined[name]
        return self._objects[number].symbols[symbol].size

    def is_code(self, name: str) -> bool:
        """Tell whether a name is that of a function."""
        if name in self._data:
            return False
        number, symbol = self._defined[name]
        return self._objects[number].symbols[symbol].kind == elf.STT_FUNC

    # -- its content -------------------------------------------------------------------------------

    def link(self) -> None:
        """Put all addresses in; what only the loader knows goes to `dynamic`."""
        self.dynamic = []
        for pieces in self.parts.values():
            for piece in pieces.pieces:
                if piece.source is not None:
                    piece.content = (self._linked(piece),)
                elif piece.words:
                    piece.content = (self._table(piece),)
        self._got_piece.content = (self._addresses(),)
        self._stub_piece.content = (self._jumps(),)

    def _table(self, piece: LinkedPiece) -> bytes:
        values = []
        for i, word in enumerate(piece.words):
            if isinstance(word, Address):
                value = self.address(word.name) + word.further
                self.dynamic.append(DynamicRelocation(piece.address + 8 * i, None, value))
                values.append(0)
            else:
                values.append(word & 0xFFFFFFFFFFFFFFFF)
        return struct.pack(f"<{len(values)}Q", *values)

    def _addresses(self) -> bytes:
        """Return the table of addresses, all of which the loader fills in."""
        for key, offset in self._got.items():
            at = self._got_piece.address + offset
            if key in self._stubs:
                self.dynamic.append(DynamicRelocation(at, key, 0))
            else:
                self.dynamic.append(DynamicRelocation(at, None, self._got_address(key)))
        return bytes(self._got_piece.size)

    def _got_address(self, key: str) -> int:
        number, colon, symbol = key.partition(":")
        if colon:
            return self._symbol_address(int(number), int(symbol))
        return self.address(key)

    def _jumps(self) -> bytes:
        """Return jumps through the table of addresses, one for each name of elsewhere."""
        made = b""
        for name, offset in self._stubs.items():
            behind = self._stub_piece.address + offset + 6
            distance = self._got_piece.address + self._got[name] - behind
            made += b"\xff\x25" + struct.pack("<i", distance) + b"\x66\x90"
        return made

    def _linked(self, piece: LinkedPiece) -> bytes:
        assert piece.source is not None
        number, section = piece.source
        (content,) = piece.content
        made = bytearray(content)
        for relocation in self._objects[number].sections[section].relocations:
            self._put(made, piece, number, relocation)
        return bytes(made)

    def _put(
        self, made: bytearray, piece: LinkedPiece, number: int, relocation: elf.ElfRelocation
    ) -> None:
        offset, kind, symbol, addend = relocation
        at = piece.address + offset
        if kind in (elf.R_GOT_LOAD, elf.R_GOT_LOAD_X, elf.R_GOT_LOAD_REX):
            target = self._got_piece.address + self._got[self._got_key(number, symbol)]
            _put_half(made, offset, target + addend - at)
        elif kind in (elf.R_PC32, elf.R_PLT32):
            _put_half(made, offset, self._target(number, symbol) + addend - at)
        elif kind == elf.R_PC64:
            struct.pack_into("<q", made, offset, self._target(number, symbol) + addend - at)
        elif kind == elf.R_64 and piece.part == WRITE:
            value = self._target(number, symbol) + addend
            self.dynamic.append(DynamicRelocation(at, None, value))
        else:
            raise ElfError(f"relocation {kind} in {piece.part} is not known to this linker")

    def _target(self, number: int, symbol: int) -> int:
        """Return where a symbol of an object leads: within it, to another one, or to a jump."""
        found = self._objects[number].symbols[symbol]
        if found.is_defined:
            return self._symbol_address(number, symbol)
        name = self.renamed.get(found.name, found.name)
        if name in self._stubs:
            return self._stub_piece.address + self._stubs[name]
        return self.address(name)


def _aligned(at: int, alignment: int) -> int:
    return -(-at // alignment) * alignment


def _put_half(made: bytearray, offset: int, value: int) -> None:
    if not -_HALF <= value < _HALF:
        raise ElfError("code and its constants are further apart than 2 GB")
    struct.pack_into("<i", made, offset, value)
