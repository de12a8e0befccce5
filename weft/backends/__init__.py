"""Back ends: what turns a kernel program into something that runs. Each has a folder here."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from ..core.imports import load

if TYPE_CHECKING:
    from .protocol import Backend


def backend_names() -> tuple[str, ...]:
    """Return the names of the back ends there are: of the folders with a module `backend`."""
    return _names_in(tuple(__path__))


@cache
def _names_in(folders: tuple[str, ...]) -> tuple[str, ...]:
    found = (name for _, name, is_folder in iter_modules(folders) if is_folder)
    return tuple(sorted(n for n in found if find_spec(f"{__name__}.{n}.backend") is not None))


def backend_named(name: str) -> Backend:
    """Return a back end by its name."""
    found: Backend = load(f"{__name__}.{name}.backend").BACKEND
    return found
