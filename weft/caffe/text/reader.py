"""Reading the text format into messages, with the place of everything that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from ..errors import CaffeError
from ..message import Message, unknown_field
from ..schema import Field
from ..schema.declare import INTEGERS
from .lexer import Source, Token

MAX_CHARACTERS = 8 * 2**20  # the largest nets have some hundred thousands
MAX_DEPTH = 100  # of messages in messages, as protobuf has it
M = TypeVar("M", bound=Message)
_CLOSING = {"{": "}", "<": ">"}
_TRUE, _FALSE = ("true", "t", "True", "1"), ("false", "f", "False", "0")


def read_message(text: str, kind: type[M], *, name: str = "<text>") -> M:
    """Return the message that a text holds; `name` stands in errors.

    >>> from weft.caffe.message import LayerParameter
    >>> read_message('name: "relu1" bottom: "a" bottom: "b"  # a layer', LayerParameter).bottom
    ['a', 'b']
    """
    if len(text) > MAX_CHARACTERS:
        raise CaffeError(
            f"{name}: a prototxt has at most {MAX_CHARACTERS} characters. Received: {len(text)}"
        )
    return _Reader(Source(text, name)).message(kind)


def read_message_file(path: str | Path, kind: type[M]) -> M:
    """Return the message that a prototxt file holds."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > 4 * MAX_CHARACTERS:
            raise CaffeError(f"{path}: too large for a prototxt ({size} bytes)")
        text = path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise CaffeError(f"File not found: {path} ({error.strerror})") from None
    return read_message(text, kind, name=str(path))


class _Reader:
    """Reads tokens one after another; the methods follow the grammar."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._rest = source.tokens()
        self.token = next(self._rest)  # the one that is looked at

    def message(self, kind: type[M]) -> M:
        """Read the whole text as one message."""
        made = kind()
        self._fields(made, "", 0)
        return made

    def _fields(self, message: Message, closing: str, depth: int) -> None:
        """Read fields up to a closing bracket, or the end of the text."""
        if depth > MAX_DEPTH:
            raise self._wrong(f"Message is too deep: more than {MAX_DEPTH} messages in messages")
        while not self._at(closing):
            self._field(message, depth)
            if self._at(",") or self._at(";"):
                self._advance()

    def _at(self, sign: str) -> bool:
        token = self.token
        return token.kind == "end" if not sign else token.kind == "sign" and token.text == sign

    def _field(self, message: Message, depth: int) -> None:
        token = self._take("name", "a field's name")
        field = message.TYPE.fields.get(token.text)
        if field is None:
            raise self.source.error(unknown_field(message.TYPE, token.text), token.at)
        if not field.repeated and message.has(field.name):
            what = f'Non-repeated field "{field.name}" is specified multiple times'
            raise self.source.error(what, token.at)
        colon = self._at(":")
        if colon:
            self._advance()
        if not colon and not field.is_message:
            raise self._wrong(f'Expected ":" after {field.name}, found {self._seen()}')
        self._values(message, field, depth)

    def _values(self, message: Message, field: Field, depth: int) -> None:
        if not self._at("["):
            self._value(message, field, depth)
            return
        if not field.repeated:
            raise self._wrong(f'"{field.name}" takes one value, not a list')
        self._advance()
        while not self._at("]"):
            self._value(message, field, depth)
            if not self._at("]"):
                self._sign(",", 'Expected "," or "]" in a list')
        self._advance()

    def _value(self, message: Message, field: Field, depth: int) -> None:
        if field.is_message:
            self._inner(message, field, depth)
            return
        token = self.token
        value = self._scalar(field)
        try:
            if field.repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)
        except (TypeError, ValueError) as error:
            raise self.source.error(str(error), token.at) from None

    def _inner(self, message: Message, field: Field, depth: int) -> None:
        if not (self._at("{") or self._at("<")):
            raise self._wrong(f'Expected "{{" after {field.name}, found {self._seen()}')
        closing = _CLOSING[self.token.text]
        self._advance()
        target = getattr(message, field.name)
        inner = target.add() if field.repeated else target
        inner.touch()
        self._fields(inner, closing, depth + 1)
        self._advance()

    # -- scalars ---------------------------------------------------------------------------------

    def _scalar(self, field: Field) -> Any:
        if field.kind in {"string", "bytes"}:
            return self._strings(field)
        sign = self._at("-")
        if sign:
            self._advance()
        token = self.token
        if token.kind not in {"name", "number"}:
            raise self._wrong(f"Expected {_wanted(field)} for {field.name}, found {self._seen()}")
        self._advance()
        value = self._plain(field, token)
        if sign and (isinstance(value, str | bool)):
            raise self.source.error(f'Invalid value "-{token.text}" for {field.name}', token.at)
        return -value if sign else value

    def _plain(self, field: Field, token: Token) -> Any:
        if field.kind == "bool":
            if token.text in _TRUE or token.text in _FALSE:
                return token.text in _TRUE
        elif field.kind == "enum":
            if token.kind == "name":
                return token.text
            return self._integer(field, token)
        elif field.kind in INTEGERS:
            return self._integer(field, token)
        else:
            return self._real(field, token)
        wrong = f'Expected {_wanted(field)} for {field.name}, found "{token.text:.60}"'
        raise self.source.error(wrong, token.at)

    def _integer(self, field: Field, token: Token) -> int:
        text = token.text
        if token.kind == "number" and len(text) <= 40:
            try:
                octal = len(text) > 1 and text[0] == "0" and text.isdigit()
                return int(text, 8) if octal else int(text, 0)
            except ValueError:
                pass
        wrong = f'Expected integer for {field.name} ({field.kind}), found "{text:.60}"'
        raise self.source.error(wrong, token.at)

    def _real(self, field: Field, token: Token) -> float:
        text = token.text.lower()
        if token.kind == "name" and text in {"inf", "infinity", "nan"}:
            return float(text)
        if token.kind == "number":
            try:
                return float(int(text, 16)) if text.startswith("0x") else float(text.rstrip("f"))
            except (ValueError, OverflowError):
                pass
        wrong = f'Expected {_wanted(field)} for {field.name}, found "{token.text:.60}"'
        raise self.source.error(wrong, token.at)

    def _strings(self, field: Field) -> str:
        """Read a string, or several that stand after one another and are one."""
        parts = [self.source.string(self._take("string", f"a string for {field.name}"))]
        while self.token.kind == "string":
            parts.append(self.source.string(self.token))
            self._advance()
        text = "".join(parts)
        if any(0xDC80 <= ord(c) <= 0xDCFF for c in text):  # bytes that may be characters together
            text = text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
        return text

    # -- tokens ----------------------------------------------------------------------------------

    def _advance(self) -> None:
        self.token = next(self._rest, self.token)

    def _take(self, kind: str, wanted: str) -> Token:
        token = self.token
        if token.kind != kind:
            raise self._wrong(f"Expected {wanted}, found {self._seen()}")
        self._advance()
        return token

    def _sign(self, sign: str, wrong: str) -> None:
        if not self._at(sign):
            raise self._wrong(f"{wrong}, found {self._seen()}")
        self._advance()

    def _seen(self) -> str:
        token = self.token
        return "the end of the text" if token.kind == "end" else f'"{token.text:.60}"'

    def _wrong(self, what: str) -> Exception:
        return self.source.error(what, self.token.at)


def _wanted(field: Field) -> str:
    if field.kind == "enum" and field.enum is not None:
        return f"one of {', '.join(list(field.enum.numbers)[:8])}"
    return {"bool": "true or false", "float": "a number", "double": "a number"}.get(
        field.kind, f"an integer ({field.kind})"
    )
