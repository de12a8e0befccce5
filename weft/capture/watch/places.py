"""Places of a program that hold a value: attributes, items, variables of enclosing functions.

A place is known by what holds it and by its key there, so that one read in several ways is one.
Reading and writing goes past `__getattr__`, properties and the like: what these do when a program
uses them is seen as code of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from types import CellType, FunctionType, ModuleType
from typing import Any

from .values import MISSING, find, has_get, is_data_descriptor


class PythonPlace:
    """Something that holds one value.

    owner   the object it is part of
    key     which part
    text    what a message calls it: "self.alpha"
    """

    __slots__ = ("key", "owner", "text")
    kind = ""

    def __init__(self, owner: Any, key: Any, text: str) -> None:
        self.owner = owner
        self.key = key
        self.text = text

    @property
    def identity(self) -> tuple[str, int, Any]:
        """Return what is equal for two descriptions of one place."""
        return self.kind, id(self.owner), self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PythonPlace) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return f"<place {self.text}>"

    def get(self) -> Any:
        """Return what it holds, or MISSING."""
        raise NotImplementedError

    def put(self, value: Any) -> None:
        """Let it hold a value, or nothing: MISSING."""
        raise NotImplementedError

    @property
    def is_writable(self) -> bool:
        """Tell whether a program can let it hold another value."""
        return type(self).put is not PythonPlace.put

    def source(self, owner: str, key: str) -> str:
        """Return the expression that reads it, for the given names of owner and key."""
        raise NotImplementedError

    def source_of_absence(self, owner: str, key: str) -> str:
        """Return the expression that tells whether it holds nothing."""
        raise NotImplementedError


class AttributePlace(PythonPlace):
    """An attribute that an object holds itself, in its dictionary or a slot."""

    __slots__ = ()
    kind = "attribute"

    @property
    def _in_dictionary(self) -> bool:
        """Tell whether asking the object would ask a descriptor of its class."""
        found = find(type(self.owner), self.key)
        return found is not MISSING and has_get(found) and not is_slot(found)

    def get(self) -> Any:
        """Return what it holds, or MISSING."""
        if not is_slot(find(type(self.owner), self.key)):
            return dictionary(self.owner).get(self.key, MISSING)  # its class may have one too
        try:
            return object.__getattribute__(self.owner, self.key)
        except AttributeError:
            return MISSING

    def put(self, value: Any) -> None:
        """Let it hold a value, or nothing: MISSING."""
        if self._in_dictionary:
            put_item(dictionary(self.owner), self.key, value)
        elif value is not MISSING:
            object.__setattr__(self.owner, self.key, value)
        elif self.get() is not MISSING:
            object.__delattr__(self.owner, self.key)

    def source(self, owner: str, key: str) -> str:
        """Return the expression that reads it."""
        plain = self.key.isidentifier() and not self._in_dictionary and not _asks(self.owner)
        return f"{owner}.{self.key}" if plain else f"dictionary({owner})[{key}]"

    def source_of_absence(self, owner: str, key: str) -> str:
        """Return the expression that tells whether it holds nothing."""
        if is_slot(find(type(self.owner), self.key)):
            return f"not hasattr({owner}, {key})"
        return f"{key} not in dictionary({owner})"


class ClassPlace(PythonPlace):
    """An attribute of a class, which may have it from a base."""

    __slots__ = ()
    kind = "class"

    def get(self) -> Any:
        """Return what it holds, or MISSING."""
        return find(self.owner, self.key)

    def put(self, value: Any) -> None:
        """Let it hold a value, or nothing: MISSING."""
        if value is not MISSING:
            type.__setattr__(self.owner, self.key, value)
        elif self.key in type.__dict__["__dict__"].__get__(self.owner):
            type.__delattr__(self.owner, self.key)

    def source(self, owner: str, key: str) -> str:
        """Return the expression that reads it."""
        value = self.get()
        plain = value is not MISSING and (type(value).__name__ == "function" or not has_get(value))
        plain = plain and find(type(self.owner), "__getattribute__") is type.__getattribute__
        plain = plain and find(type(self.owner), self.key) is MISSING and self.key.isidentifier()
        if plain:
            return f"{owner}.{self.key}"
        # What a class has itself is found there whatever its bases have.
        own = type(self.owner) is type and self.key in self.owner.__dict__
        return f"{owner}.__dict__[{key}]" if own else f"find({owner}, {key})"

    def source_of_absence(self, owner: str, key: str) -> str:
        """Return the expression that tells whether it holds nothing."""
        return f"find({owner}, {key}) is MISSING"


class OwnClassPlace(ClassPlace):
    """An attribute of a class, leaving its bases aside: what an assignment changes."""

    __slots__ = ()
    kind = "own class"

    def get(self) -> Any:
        """Return what it holds, or MISSING."""
        return type.__dict__["__dict__"].__get__(self.owner).get(self.key, MISSING)

    def source(self, owner: str, key: str) -> str:
        """Return the expression that reads it."""
        return f"{owner}.__dict__[{key}]"

    def source_of_absence(self, owner: str, key: str) -> str:
        """Return the expression that tells whether it holds nothing."""
        return f"{key} not in {owner}.__dict__"


class ItemPlace(PythonPlace):
    """An item of a dictionary: a global variable too."""

    __slots__ = ()
    kind = "item"

    def get(self) -> Any:
        """Return what it holds, or MISSING."""
        return dict.get(self.owner, self.key, MISSING)

    def put(self, value: Any) -> None:
        """Let it hold a value, or nothing: MISSING."""
        put_item(self.owner, self.key, value)

    def source(self, owner: str, key: str) -> str:
        """Return the expression that reads it."""
        plain = type(self.owner).__getitem__ is dict.__getitem__
        plain = plain and not hasattr(type(self.owner), "__missing__")
        return f"{owner}[{key}]" if plain else f"dict.__getitem__({owner}, {key})"

    def source_of_absence(self, owner: str, key: str) -> str:
        """Return the expression that tells whether it holds nothing."""
        return f"not dict.__contains__({owner}, {key})"


class ElementPlace(PythonPlace):
    """An element of a list."""

    __slots__ = ()
    kind = "element"

    def get(self) -> Any:
        """Return what it holds, or MISSING."""
        return self.owner[self.key] if self.key < len(self.owner) else MISSING

    def put(self, value: Any) -> None:
        """Let it hold a value, or nothing: MISSING."""
        assert value is not MISSING, "elements are not removed one by one"
        self.owner[self.key] = value

    def source(self, owner: str, key: str) -> str:
        """Return the expression that reads it."""
        return f"{owner}[{key}]"

    def source_of_absence(self, owner: str, key: str) -> str:
        """Return the expression that tells whether it holds nothing."""
        return f"len({owner}) <= {key}"


class CellPlace(PythonPlace):
    """A variable of an enclosing function."""

    __slots__ = ()
    kind = "cell"

    def __init__(self, cell: CellType, name: str) -> None:
        super().__init__(cell, None, name)

    def get(self) -> Any:
        """Return what it holds, or MISSING."""
        try:
            return self.owner.cell_contents
        except ValueError:
            return MISSING

    def put(self, value: Any) -> None:
        """Let it hold a value, or nothing: MISSING."""
        if value is not MISSING:
            self.owner.cell_contents = value
        elif self.get() is not MISSING:
            del self.owner.cell_contents

    def source(self, owner: str, key: str) -> str:
        """Return the expression that reads it."""
        return f"{owner}.cell_contents"

    def source_of_absence(self, owner: str, key: str) -> str:
        """Return the expression that tells whether it holds nothing."""
        return f"is_empty({owner})"


class FactPlace(PythonPlace):
    """Something of an object that is only read: its class, the code of a function."""

    __slots__ = ()
    kind = "fact"

    def get(self) -> Any:
        """Return what it holds, or MISSING."""
        return object.__getattribute__(self.owner, self.key)

    def source(self, owner: str, key: str) -> str:
        """Return the expression that reads it."""
        return f"type({owner})" if self.key == "__class__" else f"{owner}.{self.key}"


class MethodPlace(PythonPlace):
    """The function that an object's method is, when nothing of the same name hides it."""

    __slots__ = ()
    kind = "method"

    def get(self) -> Any:
        """Return what it holds, or MISSING."""
        if self.key in dictionary(self.owner):
            return dictionary(self.owner)[self.key]
        return find(type(self.owner), self.key)

    def source(self, owner: str, key: str) -> str:
        """Return the expression that reads it."""
        return f"{owner}.{self.key}.__func__"


def place_of_attribute(owner: Any, name: str, text: str) -> PythonPlace:
    """Return the place of an attribute of an object, a module or a class."""
    if isinstance(owner, ModuleType):
        return ItemPlace(dictionary(owner), name, text)
    if isinstance(owner, type):
        return ClassPlace(owner, name, text)
    return AttributePlace(owner, name, text)


def is_slot(value: Any) -> bool:
    """Tell whether what a class says of an attribute is a slot of its instances."""
    return type(value).__name__ == "member_descriptor" and is_data_descriptor(value)


def slot_names(kind: type) -> list[str]:
    """Return the names of the slots that instances of a class have."""
    held = (type.__dict__["__dict__"].__get__(base) for base in kind.__mro__)
    return sorted({name for each in held for name, value in each.items() if is_slot(value)})


def dictionary(owner: Any) -> dict[str, Any]:
    """Return the attributes that an object holds itself; an empty dictionary if it has none."""
    try:
        found = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}


def put_item(held: dict[Any, Any], key: Any, value: Any) -> None:
    """Set an item of a dictionary, or remove it: MISSING."""
    kind = OrderedDict if isinstance(held, OrderedDict) else dict  # which keeps its order itself
    if value is not MISSING:
        kind.__setitem__(held, key, value)
    else:
        kind.pop(held, key, None)


def is_empty(cell: CellType) -> bool:
    """Tell whether a variable of an enclosing function has no value."""
    try:
        cell.cell_contents  # noqa: B018  (asks whether there is any)
    except ValueError:
        return True
    return False


def _asks(owner: Any) -> bool:
    """Tell whether reading an attribute runs code of the class."""
    return isinstance(find(type(owner), "__getattribute__"), FunctionType)
