"""How message types are declared: a line for each field, in the order of their numbers.

2 bool bias_term = true        an optional field with its default
3 uint32[] pad                 a repeated field; `float[packed]` is packed in binary form
enum PoolMethod MAX=0 AVE=1    an enumeration of the message
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.cached_property import cached_property

INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
SCALARS = (*INTEGERS, "bool", "float", "double", "string", "bytes")
ZEROS: dict[str, Any] = {"bool": False, "float": 0.0, "double": 0.0, "string": "", "bytes": b""}

_FIELD = re.compile(r"(\d+) ([\w.]+)(\[packed\]|\[\])? (\w+)(?: = (.*))?$")


@dataclass(frozen=True)
class EnumType:
    """Names and their numbers; the first is the default."""

    name: str
    numbers: Mapping[str, int]

    def name_of(self, number: int) -> str:
        """Return the name of a number, or the number itself."""
        return next((name for name, n in self.numbers.items() if n == number), str(number))


@dataclass(frozen=True)
class Field:
    """One field of a message type."""

    name: str
    number: int
    kind: str  # a scalar's name, "enum" or "message"
    repeated: bool = False
    packed: bool = False
    default: Any = None
    enum: EnumType | None = None
    message: str = ""  # the name of its type

    @property
    def is_message(self) -> bool:
        """Tell whether values are messages."""
        return self.kind == "message"

    @property
    def is_array(self) -> bool:
        """Tell whether values are kept as one array: the numbers of blobs."""
        return self.packed and self.kind in {"float", "double"}


@dataclass(frozen=True)
class MessageType:
    """A message type: its fields by name and by number."""

    name: str
    fields: Mapping[str, Field]
    enums: Mapping[str, EnumType]

    @cached_property
    def numbers(self) -> dict[int, Field]:
        """Return fields by their numbers."""
        return {field.number: field for field in self.fields.values()}


def enum_type(line: str) -> EnumType:
    """Return what a line `enum Name A=0 B=1` declares."""
    _, name, *members = line.split()
    pairs = (member.split("=") for member in members)
    return EnumType(name, {key: int(number) for key, number in pairs})


def message_type(name: str, lines: str, enums: Mapping[str, EnumType]) -> MessageType:
    """Return the type that lines declare; `enums` are those that other messages share."""
    rows = [row.strip() for row in lines.strip().splitlines() if row.strip()]
    own = {e.name: e for e in (enum_type(row) for row in rows if row.startswith("enum "))}
    known = {**enums, **own}
    fields = [_field(row, known) for row in rows if not row.startswith("enum ")]
    return MessageType(name, {field.name: field for field in fields}, own)


def _field(row: str, enums: Mapping[str, EnumType]) -> Field:
    found = _FIELD.match(row)
    assert found is not None, f"no field: {row}"
    number, kind, many, name, default = found.groups()
    repeated, packed = many is not None, many == "[packed]"
    if kind in SCALARS:
        value = None if repeated else _default(kind, default)
        return Field(name, int(number), kind, repeated, packed, value)
    if kind in enums:
        enum = enums[kind]
        value = enum.numbers[default] if default else next(iter(enum.numbers.values()))
        return Field(name, int(number), "enum", repeated, packed, value, enum)
    return Field(name, int(number), "message", repeated, message=kind)


def _default(kind: str, text: str | None) -> Any:
    if text is None:
        return ZEROS.get(kind, 0)
    if kind == "bool":
        return text == "true"
    if kind in INTEGERS:
        return int(text)
    return text if kind == "string" else float(text)
