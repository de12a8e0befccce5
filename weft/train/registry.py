"""Registries: names for classes and functions, shared by `fit`, estimators, TOML files and code.

A name stands for a class or function, whose signature alone says the options and their defaults:
whoever names "sgd" gets what `SGD(params)` is. Names never are import paths: a configuration cannot
run code that is not in a registry.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.cached_property import cached_property
from ..core.errors import ArgumentError
from .options import HIDDEN, Option, options_of


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like a given one, if any is; case does not matter.

    >>> nearest("conv2D", ["Conv2d", "Linear"])
    'Conv2d'
    """
    by_lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(str(word).lower(), by_lower, n=1, cutoff=0.55)
    return by_lower[found[0]] if found else None


def hint(word: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?", or the list of what there is.

    >>> hint("lrr", ["lr", "betas"])
    "did you mean 'lr'?"
    """
    listed = list(known)
    near = nearest(word, listed)
    if near is not None:
        return f"did you mean {near!r}?"
    return f"there are: {', '.join(listed)}" if listed else "there are none"


@dataclass(frozen=True)
class Entry:
    """What a name stands for.

    make      the class or function
    more      functions whose options it takes by `**options`
    given     parameters that the run supplies (an optimizer's `params`)
    changes   defaults that differ for whoever names it
    traits    what else is known of it
    """

    name: str
    make: Callable[..., Any]
    more: tuple[Callable[..., Any], ...] = ()
    given: frozenset[str] = frozenset()
    changes: Mapping[str, Any] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Make it."""
        return self.make(*args, **{**self.changes, **options})

    @cached_property
    def options(self) -> Mapping[str, Option]:
        """Return the options by name, read off the signature when they are first asked for."""
        options: dict[str, Option] = {}
        for function in (self.make, *self.more):
            for option in options_of(function, HIDDEN | self.given, bases=not self.more):
                options.setdefault(option.name, option)
        for key, value in self.changes.items():
            options[key] = Option(key, value, options[key].kinds, options[key].may_be_none)
        return options


@dataclass
class Registry(Collection[str]):
    """Names of one kind of thing, e.g. layers.

    given    parameters that the run supplies and nobody who names an entry can set
    """

    kind: str
    given: frozenset[str] = frozenset()
    entries: dict[str, Entry] = field(default_factory=dict)

    def add(
        self,
        names: str | tuple[str, ...],
        make: Callable[..., Any],
        *more: Callable[..., Any],
        traits: Iterable[str] = (),
        **changes: Any,
    ) -> None:
        """Add a class or function under a name, or several of which the first is its own."""
        listed = (names,) if isinstance(names, str) else names
        for name in listed:
            if name in self.entries:
                raise ArgumentError(f"there is a {self.kind} named {name!r} already")
        if not callable(make):
            raise ArgumentError(f"a {self.kind} must be a class or function. Received: {make!r}")
        entry = Entry(listed[0], make, more, self.given, changes, frozenset(traits))
        self.entries.update(dict.fromkeys(listed, entry))

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, name: str) -> Entry:
        if name not in self.entries:
            raise ArgumentError(f"there is no {self.kind} {name!r}; {hint(name, self.entries)}")
        return self.entries[name]
