"""Methods and functions that come from a module above, imported when first used.

`weft/__init__.py` says which (`model.fit` lives in `weft.train`); the class only asks here, so that
no layer names one above itself, and `import weft` does not load what most programs never use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

from .locks import fork_safe_lock

_imports = fork_safe_lock("imports")
_sources: dict[tuple[str, str], str] = {}


def load(module: str) -> ModuleType:
    """Import a module that the program did not name; a fork waits, lest a child have half of it."""
    with _imports:
        return import_module(module)


def provide(owner: str, names: Iterable[str], module: str) -> None:
    """Say that methods of a class are functions of a module."""
    _sources.update({(owner, name): module for name in names})


def late_method(owner: str, name: str) -> Callable[..., Any] | None:
    """Return the function for a method of a class, or None if nobody provides it."""
    module = _sources.get((owner, name))
    if module is None:
        return None
    found: Callable[..., Any] = getattr(load(module), name)
    return found


def late_function(owner: str, name: str) -> Callable[..., Any]:
    """Return a function that a module imported later provides."""
    found = late_method(owner, name)
    assert found is not None, f"nobody provides {owner}.{name}"
    return found
