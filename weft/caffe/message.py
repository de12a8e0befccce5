"""Messages: objects with the fields of a type of `schema`, as protobuf's classes have them.

Reading a field that was never set gives its default; a message inside a message comes into being
when something in it is set.

>>> layer = LayerParameter(name="conv1", type="Convolution")
>>> layer.convolution_param.bias_term, layer.has("convolution_param")
(True, False)
>>> layer.convolution_param.kernel_size.append(5)
>>> layer.has("convolution_param")
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Any, ClassVar, Self

from .binary import parse_message, serialize_message
from .printing import print_message
from .repeated import Items, Messages, Numbers
from .scalars import scalar
from .schema import ENUMS, TYPES, Field, MessageType


class Message:
    """A message of one type; its subclasses are the types that `schema` declares."""

    TYPE: ClassVar[MessageType]
    __slots__ = ("_set", "_touch", "_unset")
    _set: dict[str, Any]  # what was set, by the names of fields
    _unset: dict[str, Any]  # messages and lists that were looked at, and are empty yet
    _touch: Callable[[], None] | None  # tells the message around this one that it is set now

    def __init__(self, **fields: Any) -> None:
        object.__setattr__(self, "_set", {})
        object.__setattr__(self, "_unset", {})
        object.__setattr__(self, "_touch", None)
        for name, value in fields.items():
            self._assign(self.field(name), value)

    @classmethod
    def field(cls, name: str) -> Field:
        """Return a field of this type by its name."""
        found = cls.TYPE.fields.get(name)
        if found is None:
            raise AttributeError(unknown_field(cls.TYPE, name))
        return found

    # -- reading ---------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name in self._set:
            return self._set[name]
        if name.startswith("__"):
            raise AttributeError(name)
        field = self.field(name)
        if name in self._unset:
            return self._unset[name]
        if not field.repeated and not field.is_message:
            return field.default
        empty = self._empty(field)
        self._unset[name] = empty
        return empty

    def has(self, name: str) -> bool:
        """Tell whether a field was set (of a repeated one: whether it has elements)."""
        field = self.field(name)
        return name in self._set and not (field.repeated and len(self._set[name]) == 0)

    def set_fields(self) -> Iterator[tuple[Field, Any]]:
        """Yield the fields that are set, with their values, in the order of their declaration."""
        for name, field in self.TYPE.fields.items():
            if self.has(name):
                yield field, self._set[name]

    def which(self, name: str) -> str:
        """Return the name of the value of an enumeration's field."""
        enum = self.field(name).enum
        assert enum is not None, name
        return enum.name_of(getattr(self, name))

    # -- writing ---------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        field = self.field(name)
        if field.is_message or field.repeated:
            raise AttributeError(
                f"Assignment not allowed to the {'repeated' if field.repeated else 'message'} "
                f"field {name!r} of {self.TYPE.name}; change what it holds, e.g. "
                f"message.{name}.{'extend' if field.repeated else 'CopyFrom'}(...)"
            )
        self._put(name, scalar(field, value, self.TYPE.name))

    def clear(self, name: str) -> None:
        """Take what was set of a field away."""
        self.field(name)
        self._set.pop(name, None)
        self._unset.pop(name, None)

    def merge(self, other: Message) -> None:
        """Take over what is set in another message: lists are joined, messages merged."""
        if type(other) is not type(self):
            raise TypeError(f"{self.TYPE.name}.merge takes one. Received: {other!r:.80}")
        for field, value in other.set_fields():
            if field.repeated:
                getattr(self, field.name).extend(value)
            elif field.is_message:
                getattr(self, field.name).merge(value)
                getattr(self, field.name).touch()
            else:
                self._put(field.name, value)

    def copy(self) -> Self:
        """Return a message of its own with the same content."""
        made = type(self)()
        made.merge(self)
        return made

    def touch(self) -> None:
        """Count as set, though nothing in it is."""
        if self._touch is not None:
            self._touch()

    def _put(self, name: str, value: Any) -> None:
        self._set[name] = value
        self._unset.pop(name, None)
        self.touch()

    def _assign(self, field: Field, value: Any) -> None:
        """Set a field by a keyword: messages as messages or dictionaries, lists as sequences."""
        target: Any = getattr(self, field.name)
        if field.repeated:
            target.extend(value if isinstance(value, Iterable) and not _single(value) else [value])
        elif field.is_message:
            target.merge(value if isinstance(value, Message) else MESSAGES[field.message](**value))
            target.touch()
        else:
            setattr(self, field.name, value)

    def _empty(self, field: Field) -> Any:
        """Return an empty list or message that is set here as soon as something is put into it."""

        def touch() -> None:
            if self._set.get(field.name, empty) is empty:  # else another took its place
                self._put(field.name, empty)

        empty: Any
        if field.repeated:
            empty = _list_of(field, self.TYPE.name, touch)
        else:
            empty = MESSAGES[field.message]()
            object.__setattr__(empty, "_touch", touch)
        return empty

    # -- protobuf's names ------------------------------------------------------------------------

    def HasField(self, name: str) -> bool:  # noqa: N802  (protobuf's name)
        """Tell whether a field was set."""
        return self.has(name)

    def ClearField(self, name: str) -> None:  # noqa: N802  (protobuf's name)
        """Take what was set of a field away."""
        self.clear(name)

    def MergeFrom(self, other: Message) -> None:  # noqa: N802  (protobuf's name)
        """Take over what is set in another message."""
        self.merge(other)

    def CopyFrom(self, other: Message) -> None:  # noqa: N802  (protobuf's name)
        """Become a copy of another message."""
        if other is not self:
            self._set.clear()
            self._unset.clear()
            self.merge(other)
            self.touch()

    def ListFields(self) -> list[tuple[Field, Any]]:  # noqa: N802  (protobuf's name)
        """Return the fields that are set, with their values."""
        return list(self.set_fields())

    def SerializeToString(self) -> bytes:  # noqa: N802  (protobuf's name)
        """Return the binary form."""
        return serialize_message(self)

    def MergeFromString(self, data: bytes) -> int:  # noqa: N802  (protobuf's name)
        """Take over what is set in a message in binary form; return its length."""
        self.merge(parse_message(data, type(self)))
        return len(data)

    def ParseFromString(self, data: bytes) -> int:  # noqa: N802  (protobuf's name)
        """Become the message of a binary form; return its length."""
        self.CopyFrom(parse_message(data, type(self)))
        return len(data)

    @classmethod
    def FromString(cls, data: bytes) -> Self:  # noqa: N802  (protobuf's name)
        """Return the message of a binary form."""
        return parse_message(data, cls)

    def __str__(self) -> str:
        return print_message(self)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = list(self.set_fields()), list(other.set_fields())
        return [f.name for f, _ in mine] == [f.name for f, _ in theirs] and all(
            a == b for (_, a), (_, b) in zip(mine, theirs, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        names = ", ".join(field.name for field, _ in self.set_fields())
        return f"<{self.TYPE.name} with {names or 'nothing set'}>"


def unknown_field(kind: MessageType, name: str) -> str:
    """Return what to say of a field that a type does not have."""
    near = get_close_matches(name, kind.fields, n=3, cutoff=0.5)
    advice = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f'Message type "caffe.{kind.name}" has no field named "{name}"{advice}'


def _single(value: Any) -> bool:
    return isinstance(value, str | bytes | dict | Message)


def _list_of(field: Field, owner: str, touch: Callable[[], None]) -> Any:
    if field.is_array:
        return Numbers(field, touch)
    if field.is_message:
        return Messages(MESSAGES[field.message], touch)
    return Items(field, owner, touch)


def _make(kind: MessageType) -> type[Message]:
    doc = f"Caffe's message {kind.name}: {', '.join(kind.fields)}."
    constants = {key: n for enum in kind.enums.values() for key, n in enum.numbers.items()}
    members = {"TYPE": kind, "__doc__": doc, "__module__": __name__, "__slots__": (), **constants}
    return type(kind.name, (Message,), members)


MESSAGES: dict[str, type[Message]] = {name: _make(kind) for name, kind in TYPES.items()}

NetParameter = MESSAGES["NetParameter"]
LayerParameter = MESSAGES["LayerParameter"]
V1LayerParameter = MESSAGES["V1LayerParameter"]
SolverParameter = MESSAGES["SolverParameter"]
SolverState = MESSAGES["SolverState"]
BlobProto = MESSAGES["BlobProto"]
BlobShape = MESSAGES["BlobShape"]
BlobProtoVector = MESSAGES["BlobProtoVector"]
Datum = MESSAGES["Datum"]
NetState = MESSAGES["NetState"]
ParamSpec = MESSAGES["ParamSpec"]
FillerParameter = MESSAGES["FillerParameter"]

TRAIN, TEST = (ENUMS["Phase"].numbers[name] for name in ("TRAIN", "TEST"))
