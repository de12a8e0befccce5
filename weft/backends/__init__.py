"""Back ends: what turns a kernel program into something that runs. Each has a folder here."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from ..core.errors import WeftError
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


def device_names() -> list[str]:
    """Return the names of the devices there are: of a back end with several, `name:index`."""
    return [name for kind in backend_names() for name in _devices_of(kind)]


def device_count(kind: str) -> int | None:
    """Return how many devices a back end has; None if it is one itself, without numbers."""
    if kind == "cpu":  # the one that there always is, and which loads a compiler
        return None
    backend = _loaded(kind)
    return backend.count() if hasattr(backend, "count") else None


def backend_named(name: str) -> Backend:
    """Return the back end of a device by its name."""
    kind, _, index = name.partition(":")
    backend = _loaded(kind)
    found: Backend = backend.at(int(index or 0)) if hasattr(backend, "at") else backend
    return found


def _devices_of(kind: str) -> list[str]:
    try:
        count = device_count(kind)
    except WeftError:  # no driver, or a package is missing: asking for the device says so
        return []
    return [kind] if count is None else [f"{kind}:{i}" for i in range(count)]


def _loaded(kind: str) -> Any:
    return load(f"{__name__}.{kind}.backend").BACKEND
