"""The options of a class or function, read off its signature: names, defaults, kinds of value."""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
# Placement is the run's, generators are the seed's, and functions cannot be written in TOML.
HIDDEN = frozenset({"device", "dtype", "generator", "last_epoch", "self"})
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


@dataclass(frozen=True)
class Option:
    """One option: whether it must be given, its default, and the kinds of value it takes."""

    name: str
    default: Any
    kinds: frozenset[str] | None
    may_be_none: bool

    @property
    def required(self) -> bool:
        """Tell whether there is no default."""
        return self.default is inspect.Parameter.empty

    def problem(self, value: Any) -> str | None:
        """Return what is wrong with the kind of a value, if anything."""
        found = kind_of(value)
        if self.kinds is None or found in self.kinds:
            return None
        wanted = " or ".join(sorted(self.kinds - {"an integer"} or self.kinds))
        if "a number" not in self.kinds and "an integer" in self.kinds:
            wanted = " or ".join(sorted(self.kinds))
        return f"{self.name} must be {wanted}. Received: {value!r} ({found})"


def options_of(make: Callable[..., Any], hidden: Iterable[str], bases: bool) -> Iterator[Option]:
    """Yield the options of a function, with those of base classes behind a `**options`."""
    for function in _constructors(make):
        parameters = inspect.signature(function).parameters.values()
        for p in parameters:
            if p.kind in _NAMED and p.name not in hidden and not _is_function(p.annotation):
                kinds = accepted_kinds(p.annotation, function.__module__)
                if p.annotation is inspect.Parameter.empty:
                    kinds = None
                yield Option(
                    p.name,
                    p.default,
                    None if kinds is None else frozenset(kinds),
                    "None" in str(p.annotation),
                )
        if not bases or not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
            return


def _constructors(make: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    if not isinstance(make, type):
        yield make
        return
    for cls in make.__mro__:
        if "__init__" in vars(cls) and cls is not object:
            yield vars(cls)["__init__"]


def _is_function(annotation: Any) -> bool:
    return "Callable" in str(annotation) and "str" not in str(annotation)


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
