"""Back ends: what turns a kernel program into something that runs. Each has a folder here."""

from __future__ import annotations

from importlib.util import find_spec
from pkgutil import iter_modules


def backend_names() -> list[str]:
    """Return the names of the back ends there are: of the folders with a module `backend`."""
    found = (name for _, name, is_folder in iter_modules(__path__) if is_folder)
    return sorted(name for name in found if find_spec(f"{__name__}.{name}.backend") is not None)
