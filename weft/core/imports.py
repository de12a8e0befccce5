"""Imports that are no statements: by name, when first used. No other module may make one.

`import weft` must not load what most programs never use, and a layer may need something of a layer
above it, whose name it must not know. These are the ways; tests/architecture/imports.py reads them:

    deferred_imports   a lock, for import statements inside functions
    lazy_attributes    public names of a package that are imported when somebody asks for them
    injected           a slot in a lower layer, which weft/injections.py fills from a higher one
    load_modules       all modules of a package: who stands there is found
    require            a package that a user may have or not
    is_found_by_name   whether pickle would find a function where it says that it is

The first three hold a lock while they import: a fork waits, lest a child have half of a module.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from os import listdir
from types import ModuleType
from typing import Any, Generic, ParamSpec, TypeVar, cast

from .errors import MissingDependencyError
from .locks import fork_safe_lock

deferred_imports = fork_safe_lock("imports")
_sources: dict[str, str] = {}
_INSTALLED_AS = {"PIL": "pillow", "sklearn": "scikit-learn"}  # else under the module's own name
_InjectedT = TypeVar("_InjectedT")
_Result = TypeVar("_Result")
_Given = ParamSpec("_Given")


def load(module: str) -> ModuleType:
    """Import a module that the program did not name."""
    with deferred_imports:
        return import_module(module)


def load_modules(package: str) -> None:
    """Import the modules of a package, except private ones, which others import."""
    folder = import_module(package).__path__[0]
    names = {name.partition(".")[0] for name in listdir(folder) if name.endswith((".py", ".pyc"))}
    for name in sorted(names):  # pkgutil would take as long to import as a large module
        if not name.startswith("_"):
            import_module(f"{package}.{name}")


@contextmanager
def uncollected() -> Iterator[None]:
    """Let Python look for no garbage inside a `with` block, if it does so at all.

    >>> with uncollected():
    ...     gc.isenabled()
    False
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def lazy_attributes(
    module: dict[str, Any],
    sources: Mapping[str, Iterable[str]],
    packages: Iterable[str] = (),
    otherwise: Callable[[str], Any] | None = None,
) -> Callable[[str], Any]:
    """Return `__getattr__` for a package whose globals are given.

    sources     modules, each with the names that are taken from it
    packages    parts of the package itself
    otherwise   what other names are given to, if they are no plain AttributeError
    """
    where = module["__name__"]
    found_in = {name: source for source, names in sources.items() for name in names}

    def get(name: str) -> Any:
        if name in packages:
            return load(f"{where}.{name}")
        if name not in found_in:
            if otherwise is not None:
                return otherwise(name)
            raise AttributeError(f"module {where!r} has no attribute {name!r}")
        module[name] = found = getattr(load(found_in[name]), name)
        return found

    return get


def require(module: str, extra: str, what: str) -> Any:
    """Return an optional module; if it is missing, say who needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != top:
            raise  # the package is there and something that it needs is not
        package = _INSTALLED_AS.get(top, top)
        raise MissingDependencyError(
            f'{what} needs the package {package}: pip install "weft[{extra}]" ({error})'
        ) from error


def is_available(module: str) -> bool:
    """Tell whether an optional module can be imported."""
    try:
        import_module(module)
    except ImportError:
        return False
    return True


class Injected(Generic[_InjectedT]):
    """Something that a layer above provides; call it as if it were here."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._found: _InjectedT | None = None

    def get(self) -> _InjectedT:
        """Return what was provided, imported now if nobody has asked before."""
        if self._found is None:
            module, _, name = _sources[self.name].partition(":")
            found: Any = load(module)
            self._found = getattr(found, name) if name else found
        return cast(_InjectedT, self._found)

    def __call__(
        self: Injected[Callable[_Given, _Result]], *args: _Given.args, **kwargs: _Given.kwargs
    ) -> _Result:
        """Call what was provided."""
        return self.get()(*args, **kwargs)


def injected(name: str) -> Injected[Any]:
    """Declare a slot of a lower layer, by its name in weft/injections.py."""
    return Injected(name)


def inject(sources: Mapping[str, str]) -> None:
    """Say what fills the slots: `package.module:name`, or a module itself."""
    _sources.update(sources)


def is_found_by_name(thing: Any) -> bool:
    """Tell whether the module and name that a function says of itself lead to it, as in pickles."""
    found: Any = sys.modules.get(getattr(thing, "__module__", None) or "")
    for name in getattr(thing, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found is thing
