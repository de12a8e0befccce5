"""Read from compiled code what a kernel takes of a device: registers and shared memory.

Code of NVRTC for one architecture is an ELF file. `.nv.info` has attributes of kernels, the number
of their registers among them, by the numbers of symbols; `.nv.shared.NAME` is as long as the shared
memory of a kernel.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ...core.errors import ArgumentError

_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ATTRIBUTE = struct.Struct("<BBH")
_PAIR = struct.Struct("<II")
_SIZED = 4  # the format of attributes that so many bytes follow
_REGISTERS = 0x2F  # the attribute: a symbol, and its registers


class Resources(NamedTuple):
    """What a work item takes of registers, and a group of shared memory in bytes."""

    registers: int
    shared: int


class _Section(NamedTuple):
    name: str
    data: bytes
    size: int


def kernel_resources(code: bytes) -> dict[str, Resources]:
    """Return what each kernel of some code takes."""
    sections = {section.name: section for section in _sections(code)}
    registers = _registers(sections)
    kernels = [name.removeprefix(".text.") for name in sections if name.startswith(".text.")]
    found = {}
    for name in kernels:
        shared = sections.get(f".nv.shared.{name}")
        found[name] = Resources(registers[name], 0 if shared is None else shared.size)
    return found


def _registers(sections: dict[str, _Section]) -> dict[str, int]:
    names = sections[".strtab"].data
    symbols = [_text(names, s[0]) for s in _SYMBOL.iter_unpack(sections[".symtab"].data)]
    return {symbols[number]: count for number, count in _pairs(sections[".nv.info"].data)}


def _pairs(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the symbols whose registers attributes tell, and these."""
    at = 0
    while at < len(data):
        format, attribute, size = _ATTRIBUTE.unpack_from(data, at)
        at += _ATTRIBUTE.size
        if format == _SIZED:
            if attribute == _REGISTERS:
                number, count = _PAIR.unpack_from(data, at)
                yield number, count
            at += size


def _sections(code: bytes) -> Iterator[_Section]:
    if code[:4] != b"\x7fELF":
        raise ArgumentError(f"code for an architecture is an ELF file. Received: {code[:8]!r}...")
    header = _HEADER.unpack_from(code)
    start, size, count, names_at = header[5], header[-3], header[-2], header[-1]
    raw = [_SECTION.unpack_from(code, start + i * size) for i in range(count)]
    names = code[raw[names_at][4] :]
    for section in raw:
        first, length = section[4], section[5]
        yield _Section(_text(names, section[0]), code[first : first + length], length)


def _text(table: bytes, start: int) -> str:
    return table[start : table.index(b"\0", start)].decode()
