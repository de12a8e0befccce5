"""Registries: the closed lists of what a configuration may name, and the options of each.

A name stands for a class or function; its options are the parameters of that. Names never are
import paths: a configuration cannot run code that is not in a registry. `register` adds to one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import ArgumentError
from .errors import hint
from .kinds import accepted_kinds, kind_of

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
# Placement is the run's, generators are the seed's, and functions cannot be written in TOML.
HIDDEN = frozenset({"device", "dtype", "generator", "last_epoch", "self"})


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


@dataclass(frozen=True)
class Entry:
    """What a name stands for."""

    name: str
    make: Callable[..., Any]
    options: Mapping[str, Option]


@dataclass
class Registry:
    """Names of one kind of thing, e.g. layers.

    given    parameters that the run supplies (an optimizer's `params`) and no file may set
    """

    kind: str
    given: frozenset[str] = frozenset()
    entries: dict[str, Entry] = field(default_factory=dict)

    def add(
        self, name: str, make: Callable[..., Any], *more: Callable[..., Any], **changes: Any
    ) -> None:
        """Add a name for a class or function.

        more      functions whose options it takes by `**options`
        changes   other defaults
        """
        if name in self.entries:
            raise ArgumentError(f"there is a {self.kind} named {name!r} already")
        if not callable(make):
            raise ArgumentError(f"a {self.kind} must be a class or function. Received: {make!r}")
        options: dict[str, Option] = {}
        for function in (make, *more):
            for option in _options(function, HIDDEN | self.given, bases=not more):
                options.setdefault(option.name, option)
        for key, value in changes.items():
            options[key] = Option(key, value, options[key].kinds, options[key].may_be_none)
        self.entries[name] = Entry(name, make, options)

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __getitem__(self, name: str) -> Entry:
        if name not in self.entries:
            raise ArgumentError(f"there is no {self.kind} {name!r}; {hint(name, self.entries)}")
        return self.entries[name]


def _options(make: Callable[..., Any], hidden: Iterable[str], bases: bool) -> Iterator[Option]:
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
