"""Printing messages in the text format: what was set, one field in a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .schema import Field

if TYPE_CHECKING:
    from .message import Message

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def print_message(message: Message, indent: str = "") -> str:
    r"""Return the text of a message, which `read_message` reads back.

    >>> from weft.caffe.message import LayerParameter
    >>> print_message(LayerParameter(name="ip", inner_product_param={"num_output": 10}))
    'name: "ip"\ninner_product_param {\n  num_output: 10\n}\n'
    """
    return "".join(f"{indent}{line}\n" for line in _lines(message))


def _lines(message: Message) -> Iterator[str]:
    for field, value in message.set_fields():
        for one in value if field.repeated else (value,):
            if field.is_message:
                yield f"{field.name} {{"
                yield from (f"  {line}" for line in _lines(one))
                yield "}"
            else:
                yield f"{field.name}: {_scalar(field, one)}"


def _scalar(field: Field, value: Any) -> str:
    if field.kind in {"string", "bytes"}:
        return _quoted(value)
    if field.kind == "bool":
        return "true" if value else "false"
    if field.enum is not None:
        return field.enum.name_of(value)
    if field.kind in {"float", "double"}:
        return _number(value, single=field.kind == "float")
    return str(value)


def _number(value: float, *, single: bool) -> str:
    text = str(np.float32(value)) if single else repr(float(value))
    return text.removesuffix(".0")


def _quoted(value: str | bytes) -> str:
    """Return a string in quotes; bytes that are no text as three octal digits."""
    if isinstance(value, bytes):
        text = value.decode("latin-1")
        return '"' + "".join(_ESCAPES.get(c) or _byte(ord(c)) for c in text) + '"'
    raw = value.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    return '"' + "".join(_ESCAPES.get(c) or _letter(c) for c in raw) + '"'


def _byte(code: int) -> str:
    return chr(code) if 32 <= code < 127 else f"\\{code:03o}"


def _letter(letter: str) -> str:
    code = ord(letter)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\{code - 0xDC00:03o}"
    return f"\\{code:03o}" if code < 32 or code == 127 else letter
