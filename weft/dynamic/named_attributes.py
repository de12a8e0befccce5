"""Objects of which code reads only the attributes that it names.

A model may hold its optimizer, a list of losses, a clock: what no code that a function reaches
names does not decide what the function computes, and may change.
"""

from __future__ import annotations

from functools import cache
from operator import is_
from typing import Any, Generic, Protocol

from ..capture.watch.trust import is_library_class
from ..core.tensor import Tensor
from ..nn import Module
from .structure import AGAIN, ATOMS, is_plain

NAMED_BY_LIBRARIES = frozenset({"forward"})  # what runs when a module is called
OF_MODULES = frozenset(vars(Module()))  # what the base class itself reads


@cache
def is_read_by_name(kind: type) -> bool:
    """Tell whether all code that reads attributes of a class's objects is the user's, or Module's.

    Methods of data classes, which nobody wrote, read all fields; other libraries what they like.
    """
    if not is_plain(kind) or hasattr(kind, "__dataclass_fields__"):
        return False
    bases = [base for base in kind.__mro__ if base not in (object, Module, Generic, Protocol)]
    return not any(is_library_class(base) or _looks_itself(base) for base in bases)


@cache
def called_unnamed(kind: type) -> frozenset[str]:
    """Return the methods of a class that its bases may call, where no code of the user's does.

    A base of a library may call all that it has itself; a module, `forward` (NAMED_BY_LIBRARIES).
    """
    bases = [base for base in kind.__mro__ if base not in (object, Module)]
    return frozenset({name for base in bases if is_library_class(base) for name in vars(base)})


def _looks_itself(kind: type) -> bool:
    """Tell whether a class has a way of its own to find attributes."""
    return not {"__getattribute__", "__getattr__"}.isdisjoint(vars(kind))


class NamedAttributes:
    """An object, and those of its attributes that code names."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self._attributes: dict[str, Any] = owner.__dict__
        self._keys = list(self._attributes)
        registered: dict[str, Any] = self._attributes.get("_kinds", {})
        self._always = OF_MODULES | registered.keys() if isinstance(owner, Module) else frozenset()
        self._names: list[str] = []
        self._values: list[Any] = []

    def newly_named(self, names: set[str], *, everything: bool) -> list[Any]:
        """Return the values of attributes that code names by now, and did not before."""
        known = set(self._names)
        new = [
            name
            for name in self._keys
            if name not in known and (everything or name in names or name in self._always)
        ]
        values = [self._attributes.get(name, AGAIN) for name in new]
        self._names += new
        self._values += values
        return [value for value in values if not is_known(value) and not _is_tensor(value)]

    def tensors(self) -> list[Tensor]:
        """Return the tensors that are read of it."""
        return [value for value in self._values if _is_tensor(value)]

    def is_same(self) -> bool:
        """Tell whether it has the same attributes, and those that are read are as they were."""
        return list(self._attributes) == self._keys and all(
            map(is_, map(self._attributes.get, self._names), self._values)
        )


def is_known(value: Any) -> bool:
    """Tell whether there is no more to a value than which it is."""
    kind = value.__class__
    return value is AGAIN or kind in ATOMS or kind is float


def _is_tensor(value: Any) -> bool:
    """Tell whether a value is data."""
    return isinstance(value, Tensor)
