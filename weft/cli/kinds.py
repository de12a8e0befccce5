"""What an option of a constructor takes, read off its annotation."""

from __future__ import annotations

import re
import sys
import types
from typing import Any

# The names of types in annotations, and the types of TOML that stand for them.
_SCALARS: dict[str, tuple[str, ...]] = {
    "int": ("an integer",),
    "float": ("a number", "an integer"),
    "bool": ("true or false",),
    "str": ("a string",),
    "None": (),
}
_LISTS = ("list", "tuple", "Sequence", "Iterable", "Tensor", "Shape", "Betas")
_MAPPINGS = ("dict", "Mapping")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def kind_of(value: Any) -> str:
    """Return the kind of a value in the words of a message.

    >>> kind_of(1), kind_of("1"), kind_of([1])
    ('an integer', 'a string', 'a list')
    """
    if isinstance(value, bool):
        return "true or false"
    names = {int: "an integer", float: "a number", str: "a string", list: "a list", dict: "a table"}
    return names.get(type(value), f"a {type(value).__name__}")


def accepted_kinds(annotation: Any, module: str) -> set[str] | None:
    """Return the kinds of value that an annotation allows, or None if it allows anything.

    module   where the annotation stands, to look up aliases such as `Sizes`
    """
    kinds: set[str] = set()
    for part in _parts(annotation):
        found = _kinds_of_part(part, module)
        if found is None:
            return None
        kinds |= found
    return kinds or None


def _parts(annotation: Any) -> list[str]:
    """Return the members of a union, which is written as text or an object."""
    text = annotation if isinstance(annotation, str) else _text(annotation)
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "[") - (c == "]")
        if c == "|" and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


def _text(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _kinds_of_part(part: str, module: str) -> set[str] | None:
    match = _NAME.match(part)
    name = match.group().rpartition(".")[2] if match else part
    if name in _SCALARS:
        return set(_SCALARS[name])
    if name in _LISTS:
        return {"a list"}
    if name in _MAPPINGS:
        return {"a table"}
    if name == "Literal":
        return {"a string"}
    alias = getattr(sys.modules.get(module), name, None)
    if isinstance(alias, types.UnionType | types.GenericAlias):
        return accepted_kinds(str(alias), module)
    return None
