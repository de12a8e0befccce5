"""Modules that hold modules: in a row, in a list, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, ClassVar, TypeVar, overload

from ..core.errors import ArgumentTypeError, IndexOutOfRange
from ..core.shape import as_int
from .module import MODULE, Module
from .printing import format_module

L = TypeVar("L", bound="NumberedModules")


class NumberedModules(Module):
    """Base of the containers that number their modules from 0: a mutable sequence of them."""

    def _layers(self) -> list[Module]:
        return list(self.children())

    def _names(self) -> list[str]:
        return [name for name, _ in self.named_children()]

    def _replace(self, modules: Iterable[Module]) -> None:
        """Hold other modules, numbered anew."""
        modules = [_module(self, module) for module in modules]
        for name in self._names():
            delattr(self, name)
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def __len__(self) -> int:
        return len(self._layers())

    def __iter__(self) -> Iterator[Module]:
        return iter(self._layers())

    def __contains__(self, module: object) -> bool:
        return any(module is layer for layer in self._layers())

    def _name_at(self, index: Any) -> str:
        names = self._names()
        position = as_int(index, f"{type(self).__name__}: the index")
        if not -len(names) <= position < len(names):
            raise IndexOutOfRange(
                f"{type(self).__name__} of {len(names)} modules has no index {position}"
            )
        return names[position]

    @overload
    def __getitem__(self: L, index: slice) -> L: ...
    @overload
    def __getitem__(self, index: int) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(self._names()[index])
        return self.__dict__[self._name_at(index)]

    def _part(self: L, names: list[str]) -> L:
        part = type(self)()
        part._replace(self.__dict__[name] for name in names)
        return part

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), _module(self, module))

    def __delitem__(self, index: int | slice) -> None:
        names = self._names()
        gone = set(names[index]) if isinstance(index, slice) else {self._name_at(index)}
        numbered = names == [str(i) for i in range(len(names))]
        kept = {name: self.__dict__[name] for name in names if name not in gone}
        for name in gone:
            delattr(self, name)
        if numbered:
            self._replace(kept.values())

    def append(self: L, module: Module) -> L:
        """Add a module at the end; return the container."""
        name = str(len(self))
        if name in self._kinds:  # a part of another container keeps the numbers it had there
            self._replace([*self, module])
        else:
            self.add_module(name, _module(self, module))
        return self

    def extend(self: L, modules: Iterable[Module]) -> L:
        """Add modules at the end; return the container."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self: L, index: int, module: Module) -> L:
        """Put a module before the one at an index; return the container."""
        layers = self._layers()
        layers.insert(as_int(index, "insert: the index"), module)
        self._replace(layers)
        return self

    def pop(self, index: int = -1) -> Module:
        """Take a module out and return it."""
        module: Module = self[index]
        del self[index]
        return module

    def __iadd__(self: L, modules: Iterable[Module]) -> L:
        return self.extend(modules)

    def __add__(self: L, modules: Iterable[Module]) -> L:
        joined = type(self)()
        joined._replace([*self, *modules])
        return joined


class Sequential(NumberedModules):
    """Apply modules one after another, each to the output of the one before.

    Takes modules, or one ordered mapping of names to modules.

    >>> import weft as wf
    >>> net = wf.nn.Sequential(wf.nn.Linear(4, 8), wf.nn.ReLU(), wf.nn.Linear(8, 2))
    >>> net(wf.zeros(3, 4)).shape
    (3, 2)
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, _module(self, module))
        else:
            self._replace(modules)

    def forward(self, x: Any) -> Any:
        """Return the output of the last module."""
        layers = self.__dict__
        for name, kind in self._kinds.items():
            if kind == MODULE and layers[name] is not None:
                x = layers[name](x)
        return x

    def _part(self, names: list[str]) -> Sequential:
        return type(self)({name: self.__dict__[name] for name in names})

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*(self._layers() * as_int(times, "Sequential * n: n")))

    __rmul__ = __mul__


class ModuleList(NumberedModules):
    """A list of modules, which registers them; how they are called is up to the user.

    >>> import weft as wf
    >>> layers = wf.nn.ModuleList(wf.nn.Linear(4, 4) for _ in range(3))
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self._replace(modules)

    def __repr__(self) -> str:
        """Return the repr, with equal modules in a row shown once."""
        numbered = list(enumerate(map(repr, self)))
        parts = []
        for text, group in groupby(numbered, key=lambda pair: pair[1]):
            places = [i for i, _ in group]
            first, last, many = places[0], places[-1], len(places)
            parts.append(
                (f"{first}-{last}", f"{many} x {text}") if many > 1 else (str(first), text)
            )
        return format_module(self, parts)


class NamedItems(Module):
    """What a dictionary of modules and one of parameters share: all but how an item is stored."""

    _held: ClassVar[str]  # the kind of its items

    def __init__(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__()
        self.update(items)

    def __setitem__(self, name: str, item: Any) -> None:
        raise ArgumentTypeError(f"{type(self).__name__} does not say how items are stored")

    def update(self, items: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add or replace items, from a mapping or from pairs."""
        for name, item in _pairs(self, items):
            self[name] = item

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise KeyError(name)
        return self.__dict__[name]

    def __delitem__(self, name: str) -> None:
        self.pop(name)

    def __len__(self) -> int:
        return len(self.items())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def keys(self) -> list[str]:
        """Return the names."""
        return [name for name, _ in self.items()]

    def values(self) -> list[Any]:
        """Return the items."""
        return [item for _, item in self.items()]

    def items(self) -> list[tuple[str, Any]]:
        """Return pairs of name and item; what else is registered, such as buffers, is none."""
        return list(self._own(self._held))

    def pop(self, name: str) -> Any:
        """Take an item out and return it."""
        item = self[name]
        delattr(self, name)
        return item

    def clear(self) -> None:
        """Take all items out."""
        for name in self:
            delattr(self, name)


class ModuleDict(NamedItems):
    """A dictionary of modules, which registers them.

    >>> import weft as wf
    >>> heads = wf.nn.ModuleDict({"a": wf.nn.Linear(4, 2), "b": wf.nn.Identity()})
    >>> list(heads)
    ['a', 'b']
    """

    _held = MODULE

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()) -> None:
        super().__init__(modules)

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, _module(self, module))


def _module(owner: Module, module: Any) -> Module:
    if not isinstance(module, Module):
        hint = "; give an instance, not the class" if isinstance(module, type) else ""
        raise ArgumentTypeError(
            f"{type(owner).__name__} holds modules{hint}. "
            f"Received: {type(module).__name__} {module!r:.60}"
        )
    return module


def _pairs(owner: Module, given: Any) -> list[tuple[str, Any]]:
    """Return a mapping, or pairs, as a list of pairs."""
    if hasattr(given, "items"):
        return list(given.items())
    try:
        return [(name, value) for name, value in given]
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{type(owner).__name__} takes a mapping, or pairs of name and value. "
            f"Received: {given!r:.60}"
        ) from None
