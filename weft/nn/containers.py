"""Modules that hold modules: in a row, in a list, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, ClassVar, TypeVar, overload

from ..core.errors import ArgumentTypeError, IndexOutOfRange
from ..core.shape import as_int
from .module import MODULE, Module
from .printing import format_module

L = TypeVar("L", bound="NumberedItems")


class NumberedItems(Module):
    """Base of the containers that number what they hold from 0: a mutable sequence of it."""

    _held: ClassVar[str]  # the kind of its items

    def _checked(self, item: Any) -> Any:
        """Return an item as it is held; raise if it cannot be."""
        raise NotImplementedError

    def _items(self) -> list[Any]:
        return [item for _, item in self._own(self._held)]

    def _names(self) -> list[str]:
        return [name for name, _ in self._own(self._held)]

    def _replace(self, items: Iterable[Any]) -> None:
        """Hold other items, numbered anew."""
        items = [self._checked(item) for item in items]
        for name in self._names():
            delattr(self, name)
        for i, item in enumerate(items):
            setattr(self, str(i), item)

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items())

    def __contains__(self, item: object) -> bool:
        return any(item is held for held in self._items())

    def _name_at(self, index: Any) -> str:
        names = self._names()
        position = as_int(index, f"{type(self).__name__}: the index")
        if not -len(names) <= position < len(names):
            raise IndexOutOfRange(
                f"{type(self).__name__} of {len(names)} {self._held}s has no index {position}"
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

    def __setitem__(self, index: int, item: Any) -> None:
        setattr(self, self._name_at(index), self._checked(item))

    def __delitem__(self, index: int | slice) -> None:
        names = self._names()
        gone = set(names[index]) if isinstance(index, slice) else {self._name_at(index)}
        numbered = names == [str(i) for i in range(len(names))]
        kept = {name: self.__dict__[name] for name in names if name not in gone}
        for name in gone:
            delattr(self, name)
        if numbered:
            self._replace(kept.values())

    def append(self: L, item: Any) -> L:
        """Add an item at the end; return the container."""
        name = str(len(self))
        if name in self._kinds:  # a part of another container keeps the numbers it had there
            self._replace([*self, item])
        else:
            setattr(self, name, self._checked(item))
        return self

    def extend(self: L, items: Iterable[Any]) -> L:
        """Add items at the end; return the container."""
        for item in list(items):
            self.append(item)
        return self

    def insert(self: L, index: int, item: Any) -> L:
        """Put an item before the one at an index; return the container."""
        items = self._items()
        items.insert(as_int(index, "insert: the index"), item)
        self._replace(items)
        return self

    def pop(self, index: int = -1) -> Any:
        """Take an item out and return it; those after it move up."""
        item = self[index]
        del self[index]
        return item

    def __iadd__(self: L, items: Iterable[Any]) -> L:
        return self.extend(items)

    def __add__(self: L, items: Iterable[Any]) -> L:
        joined = type(self)()
        joined._replace([*self, *items])
        return joined


class NumberedModules(NumberedItems):
    """Base of the containers that number their modules from 0."""

    _held = MODULE

    def _checked(self, item: Any) -> Module:
        return _module(self, item)


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
        return Sequential(*(self._items() * as_int(times, "Sequential * n: n")))

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
