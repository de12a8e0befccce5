"""The binary form of messages: `.caffemodel`, `.binaryproto`, `.solverstate`, records of databases.

Memory is taken for what stands in a file, never for what it claims. Fields that the schema does not
know are passed over, as protobuf does: nets of Caffe's forks carry some.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..io import wire
from .errors import CaffemodelError
from .scalars import shortest
from .schema import Field

if TYPE_CHECKING:
    from .message import Message

MAX_MESSAGES = 2**20  # in one; a net has thousands, and each takes memory
M = TypeVar("M", bound="Message")


def parse_message(data: wire.Buffer, kind: type[M], *, name: str = "<bytes>") -> M:
    """Return the message that bytes hold; `name` stands in errors.

    >>> from weft.caffe.message import BlobShape
    >>> parse_message(serialize_message(BlobShape(dim=[2, 3])), BlobShape).dim
    [2, 3]
    """
    made = kind()
    try:
        _Reading().fields(made, wire.Message(data, name=kind.TYPE.name))
    except wire.WireError as error:
        raise CaffemodelError(
            f"{name}: no {kind.TYPE.name} in binary form, or a damaged one ({error})"
        ) from None
    return made


def parse_message_file(path: str | Path, kind: type[M]) -> M:
    """Return the message that a binary file holds."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise CaffemodelError(f"File not found: {path} ({error.strerror})") from None
    return parse_message(data, kind, name=str(path))


def serialize_message(message: Message) -> bytes:
    """Return the binary form of a message, fields in the order of their numbers."""
    return _written(message).content()


# -- reading ---------------------------------------------------------------------------------------


class _Reading:
    """Reads messages in messages, and counts them."""

    def __init__(self) -> None:
        self.left = MAX_MESSAGES

    def fields(self, target: Message, found: wire.Message) -> None:
        """Set the fields of a message to what was found of it."""
        self._count(found)
        numbers = target.TYPE.numbers
        for number in found.numbers():
            field = numbers.get(number)
            if field is None:
                continue
            if field.is_message:
                self._messages(target, field, found)
            elif field.repeated:
                getattr(target, field.name).extend(_read_list(field, found))
            else:
                setattr(target, field.name, _read_one(field, found))

    def _messages(self, target: Message, field: Field, found: wire.Message) -> None:
        values = getattr(target, field.name)
        if field.repeated:
            for inner in found.messages(field.number, field.message):
                self.fields(values.add(), inner)
            return
        only = found.message(field.number, field.message)
        if only is not None:
            values.touch()
            self.fields(values, only)

    def _count(self, found: wire.Message) -> None:
        self.left -= 1
        if self.left < 0:
            raise wire.WireError(found.offset, f"there are more than {MAX_MESSAGES} messages in it")


def _read_one(field: Field, found: wire.Message) -> Any:
    return _GETTERS[field.kind](found, field)


def _integer(found: wire.Message, field: Field) -> int:
    """Return a signed integer; int32 is cut to 32 bits, as protobuf does."""
    return int(_cut(field, np.asarray([found.unsigned(field.number)], np.uint64))[0])


def _cut(field: Field, values: Any) -> Any:
    wide = values.astype(np.uint64)
    kinds = {"int32": np.int32, "uint32": np.uint32, "uint64": np.uint64}
    return wide.astype(kinds[field.kind]) if field.kind in kinds else wide.view(np.int64)


def _known(found: wire.Message, field: Field) -> int:
    """Return a value of an enumeration, or the default for one that it does not have."""
    number = found.integer(field.number)
    assert field.enum is not None
    return number if number in field.enum.numbers.values() else int(field.default)


_GETTERS: dict[str, Callable[[wire.Message, Field], Any]] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64"), _integer),
    "enum": _known,
    "bool": lambda found, field: found.boolean(field.number),
    "float": lambda found, field: shortest(found.float32(field.number)),
    "double": lambda found, field: found.float64(field.number),
    "string": lambda found, field: found.raw(field.number).decode("utf-8", "surrogateescape"),
    "bytes": lambda found, field: found.raw(field.number),
}


def _read_list(field: Field, found: wire.Message) -> Any:
    number = field.number
    if field.kind == "float":
        values = found.floats(number)
        return values if field.is_array else [shortest(float(v)) for v in values]
    if field.kind == "double":
        return found.doubles(number)
    if field.kind in {"string", "bytes"}:
        return [bytes(view) for view in found.views(number)]
    if field.kind == "bool":
        return [bool(value) for value in found.unsigneds(number)]
    if field.enum is not None:
        known = set(field.enum.numbers.values())
        return [int(v) for v in found.integers(number) if int(v) in known]
    return _cut(field, found.unsigneds(number)).tolist()


# -- writing ---------------------------------------------------------------------------------------


def _written(message: Message) -> wire.MessageWriter:
    out = wire.MessageWriter()
    for field, value in sorted(message.set_fields(), key=lambda pair: pair[0].number):
        if field.packed:
            _write_packed(out, field, value)
        else:
            for one in value if field.repeated else (value,):
                _write_one(out, field, one)
    return out


def _write_packed(out: wire.MessageWriter, field: Field, value: Any) -> None:
    if field.kind == "float":
        out.packed_floats(field.number, value.array)
    elif field.kind == "double":
        out.packed_doubles(field.number, value.array)
    else:
        out.packed_varints(field.number, value)


def _write_one(out: wire.MessageWriter, field: Field, value: Any) -> None:
    number = field.number
    if field.is_message:
        out.message(number, _written(value))
    elif field.kind == "float":
        out.float32(number, float(np.float32(value)))
    elif field.kind == "double":
        out.float64(number, value)
    elif field.kind in {"string", "bytes"}:
        out.raw(number, value if isinstance(value, bytes) else _encoded(value))
    else:
        out.varint(number, int(value))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
