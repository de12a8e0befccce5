"""Read what an object file for Linux asks of others."""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE = 2


def undefined_symbols(code: bytes) -> set[str]:
    """Return the names that object code uses and does not define."""
    sections = _sections(code)
    found = set()
    for kind, offset, size, link in sections:
        if kind == _SYMBOL_TABLE:
            names = code[sections[link][1] :]
            for name, _, _, section, _, _ in _SYMBOL.iter_unpack(code[offset : offset + size]):
                if section == 0 and name:
                    found.add(names[name : names.index(b"\0", name)].decode())
    return found


def _sections(code: bytes) -> list[tuple[int, int, int, int]]:
    """Return kind, place, size and the number of a related section, of each section."""
    header = _HEADER.unpack_from(code)
    first, count = header[6], header[12]
    rows = (_SECTION.unpack_from(code, first + i * _SECTION.size) for i in range(count))
    return [(row[1], row[4], row[5], row[6]) for row in rows]
