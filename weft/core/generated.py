"""Functions that are written as text, for one purpose each.

Their text is where tracebacks and pdb look for it, for as long as the function lives.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from itertools import count
from typing import Any
from weakref import finalize

from .errors import GENERATED_PREFIX

_next_number = count().__next__


class ObjectNames:
    """Names for the objects that a text mentions.

    scope   the objects by their names, which end in `_` and a number
    """

    def __init__(self) -> None:
        self.scope: dict[str, Any] = {}
        self._known: dict[Any, str] = {}
        self._taken: set[str] = set()

    def of(self, thing: Any, kind: str | None = None) -> str:
        """Return the name of an object: what kind of thing it is, and a number."""
        known = self._known.get(id(thing))
        if known is None:
            known = self.new(id(thing), f"{kind or type(thing).__name__.lower()}_{len(self.scope)}")
            self.scope[known] = thing
        return known

    def known(self, key: Any) -> str | None:
        """Return the name that was given to something."""
        return self._known.get(key)

    def new(self, key: Any, wanted: str) -> str:
        """Give something a name that nothing else has, like the one that is wanted."""
        name = wanted if wanted.isidentifier() else f"thing_{len(self._known)}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        self._known[key] = name
        return name


def define(name: str, source: str, scope: dict[str, Any], what: str) -> Callable[..., Any]:
    """Return the function of a name that a text defines; `what` it is tracebacks tell."""
    filename = f"{GENERATED_PREFIX}{what} {_next_number()}>"
    exec(compile(source, filename, "exec"), scope)
    show_source(filename, source)
    made: Callable[..., Any] = scope.pop(name)  # else it would hold itself, by its globals
    finalize(made, linecache.cache.pop, filename, None)
    return made


def show_source(filename: str, source: str) -> None:
    """Let tracebacks show the lines of a text."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


def source_of(function: Callable[..., Any]) -> str:
    """Return the text of a function that was written."""
    return "".join(linecache.getlines(function.__code__.co_filename))
