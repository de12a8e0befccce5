"""Serving the imports of other frameworks: `import chainer` gives Weft's face of it.

A served module is the face's own module under a second name, so `chainer.Variable` and
`weft.chainer.Variable` are one class.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

from ..core.imports import load

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:  # classes of nothing but documentation, which take as long to import as a large module
    Loader, MetaPathFinder = type("Loader", (), {}), type("MetaPathFinder", (), {})


class Serving(MetaPathFinder, Loader):
    """Finds the modules of frameworks in their faces; stands first in `sys.meta_path`."""

    def __init__(self, faces: Mapping[str, str]) -> None:
        self.faces = dict(faces)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return where a module is found, if it belongs to a framework that is served."""
        top = fullname.partition(".")[0]
        return ModuleSpec(fullname, self, is_package=True) if top in self.faces else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of the face that stands for one of the framework."""
        top, _, rest = spec.name.partition(".")
        face = self.faces[top]
        try:
            found = load(f"{face}.{rest}" if rest else face)
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith(face):
                raise
            advice = _advice(f"{face}.{rest}") or f": Weft's face {face} does not have it"
            raise ModuleNotFoundError(
                f"No module named {spec.name!r}{advice}", name=spec.name
            ) from None
        spec.loader_state = found.__spec__
        return found

    def exec_module(self, module: ModuleType) -> None:
        """Leave the face's module as it is: it has run when it was loaded under its own name."""
        served = module.__spec__  # put there by the import system
        if served is not None and isinstance(served.loader_state, ModuleSpec):
            module.__spec__ = served.loader_state


def _advice(missing: str) -> str:
    """Return what the package of a module that is missing says of its name."""
    package, _, name = missing.rpartition(".")
    try:
        getattr(load(package), name)
    except (AttributeError, ModuleNotFoundError) as error:
        return str(getattr(error, "advice", ""))
    return ""


@contextmanager
def serving(faces: Mapping[str, str]) -> Iterator[Serving]:
    """Serve the imports of frameworks inside a `with` block.

    faces   what programs import, and the module that they get

    >>> with serving({"chainer": "weft.chainer"}):
    ...     import chainer
    >>> chainer.__name__
    'weft.chainer'
    """
    finder = Serving(faces)
    hidden = _take_out(finder)
    sys.meta_path.insert(0, finder)
    try:
        yield finder
    finally:
        sys.meta_path.remove(finder)
        _take_out(finder)
        sys.modules.update(hidden)


def is_served(name: str) -> bool:
    """Tell whether the imports of a framework are served now."""
    return any(isinstance(finder, Serving) and name in finder.faces for finder in sys.meta_path)


def _take_out(finder: Serving) -> dict[str, ModuleType]:
    """Remove modules of the served names from those that are loaded, and return them."""
    found = [name for name in sys.modules if name.partition(".")[0] in finder.faces]
    return {name: sys.modules.pop(name) for name in found}
