"""Values of fields that are no messages: what each kind takes, checked and in one form."""

from __future__ import annotations

import math
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

from .schema import EnumType, Field
from .schema.declare import INTEGERS


def scalar(field: Field, value: Any, owner: str) -> Any:
    """Return the value that a field keeps when it is given this one."""
    try:
        return _checked(field, value)
    except (TypeError, ValueError) as error:
        kind = type(error)
        raise kind(f"{owner}.{field.name}: {error}") from None


def shortest(value: float) -> float:
    """Return the number with fewest digits that is the same float32: what people wrote."""
    with np.errstate(over="ignore"):  # what is too large is infinite, as in protobuf
        return float(str(np.float32(value)))


def _checked(field: Field, value: Any) -> Any:
    if field.kind == "enum":
        assert field.enum is not None
        return _enum_number(field.enum, value)
    if field.kind in INTEGERS:
        return _integer(field.kind, value)
    if field.kind == "bool":
        return _boolean(value)
    if field.kind in {"float", "double"}:
        return _real(field.kind, value)
    return _text(value) if field.kind == "string" else _bytes(value)


def _integer(kind: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"takes an integer ({kind}). Received: {value!r:.80}")
    low, high = INTEGERS[kind]
    if not low <= int(value) <= high:
        raise ValueError(f"takes an integer from {low} to {high} ({kind}). Received: {value}")
    return int(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_ | Integral) or int(value) not in {0, 1}:
        raise TypeError(f"takes true or false. Received: {value!r:.80}")
    return bool(value)


def _real(kind: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"takes a number. Received: {value!r:.80}")
    try:
        number = float(value)
    except OverflowError:  # an integer of more than 308 digits
        number = -math.inf if str(value).startswith("-") else math.inf
    return shortest(number) if kind == "float" else number


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if not isinstance(value, str):
        raise TypeError(f"takes a string. Received: {value!r:.80}")
    _encoded(value)
    return value


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return _encoded(value)
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"takes bytes. Received: {value!r:.80}")
    return bytes(value)


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise ValueError(
            f"takes text: U+{code:X} is no character. Received: {text!r:.80}"
        ) from None


def _enum_number(enum: EnumType, value: Any) -> int:
    if isinstance(value, str):
        if value in enum.numbers:
            return enum.numbers[value]
        near = get_close_matches(value, enum.numbers, n=3, cutoff=0.5) or list(enum.numbers)
        known = ", ".join(near[:6])
        raise ValueError(f'Unknown enumeration value of "{value:.60}"; {enum.name} has {known}')
    if isinstance(value, Integral) and int(value) in enum.numbers.values():
        return int(value)
    raise ValueError(f"{enum.name} takes {', '.join(enum.numbers)}. Received: {value!r:.80}")
