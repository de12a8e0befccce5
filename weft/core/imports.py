"""Imports that are no statements: by name, when first used. No other module may make one.

`import weft` must not load what most programs never use, and a layer may need something of a layer
above it, whose name it must not know. Three ways, all of which tests/test_architecture.py reads:

    deferred_imports   a lock, for import statements inside functions
    lazy_attributes    public names of a package that are imported when somebody asks for them
    injected           a slot in a lower layer, which weft/injections.py fills from a higher one

All of them hold a lock while they import: a fork waits, lest a child have half of a module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Generic, ParamSpec, TypeVar, cast

from .locks import fork_safe_lock

deferred_imports = fork_safe_lock("imports")
_sources: dict[str, str] = {}
_InjectedT = TypeVar("_InjectedT")
_Result = TypeVar("_Result")
_Given = ParamSpec("_Given")


def load(module: str) -> ModuleType:
    """Import a module that the program did not name."""
    with deferred_imports:
        return import_module(module)


def lazy_attributes(module: dict[str, Any], sources: Mapping[str, str]) -> Callable[[str], Any]:
    """Return `__getattr__` for a package whose globals are given: names and their modules."""
    where = module["__name__"]

    def get(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {where!r} has no attribute {name!r}")
        module[name] = found = getattr(load(sources[name]), name)
        return found

    return get


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
