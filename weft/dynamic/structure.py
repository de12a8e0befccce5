"""What an example is made of: a key that equal structures share, and whether it is as it was.

Everything of an example counts, by class and value, in the order in which a walk meets it; what is
met again, through sharing or a cycle, by its number. Only tensors count by their type: their values
are data. A walk holds what it met, so that a later one can tell by identities that nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from enum import Enum
from functools import cache, partial
from operator import attrgetter, eq, is_, itemgetter, methodcaller
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, ClassVar, Generic, Protocol

import numpy as np

from ..core.dtype import Array
from ..core.tensor import Tensor
from .saved_items import (
    SavedDictionaries,
    SavedItems,
    SavedPart,
    dictionaries_are_same,
    items_are_same,
)

COLLECTIONS = (tuple, list, set, frozenset)
ATOMS = frozenset({int, str, bool, bytes, type(None), complex, type(...), range})
BY_IDENTITY = (
    *(type, FunctionType, BuiltinFunctionType, MethodType, ModuleType, Enum, np.dtype),
    *(itemgetter, attrgetter, methodcaller),
)
MOST_BYTES = 1 << 20  # of an array that is part of a structure
IN_C = (
    *(MethodDescriptorType, WrapperDescriptorType, GetSetDescriptorType, MemberDescriptorType),
    *(BuiltinFunctionType, ClassMethodDescriptorType),
)
AGAIN, TENSOR, ARRAY, IDENTITY = object(), object(), object(), object()


class OpaqueError(Exception):
    """Says what of a structure cannot be looked into."""


class Wrapped:
    """Something around a function that does what the function does: a cell."""

    fn: Callable[..., Any]


class Remembering:
    """A function that learns from its calls, a batched one: what it holds tells nothing.

    It may be held without being called. Examples that call it say so (many_calls.py).
    """


class StructureKey:
    """What a walk met, in order: equal for equal structures. Its hash is computed once."""

    __slots__ = ("_hash", "_tokens")

    def __init__(self, tokens: list[Any]) -> None:
        self._tokens = tuple(tokens)
        self._hash = hash(self._tokens)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StructureKey) and self._tokens == other._tokens


class StructureWalk:
    """A structure as it was when it was walked through.

    key       equal for equal structures
    tensors   the tensors in it, in order
    classes   those of its objects
    """

    __slots__ = (
        *("_alive", "_arrays", "_leave", "_seen", "_slots", "_tokens", "classes", "dictionaries"),
        *("items", "key", "others", "root", "tensors"),
    )

    def __init__(self, root: Any, leave: Callable[[Any], bool] | None = None) -> None:
        self.root = root
        self.tensors: list[Tensor] = []
        self.classes: dict[type, None] = {}
        self.others: list[Any] = []  # functions, classes and modules
        self._leave = leave
        self.items = SavedItems()  # of lists and sets
        self.dictionaries = SavedDictionaries()  # and attributes
        self._slots: list[tuple[Any, tuple[str, ...], list[Any]]] = []
        self._arrays: list[tuple[Array, bytes]] = []
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []
        self._tokens: list[Any] = []
        self._walk(root)
        self.key = StructureKey(self._tokens)
        del self._tokens, self._seen

    def is_same(self) -> bool:
        """Tell whether everything is as it was, by identities: in a few loops of C."""
        return are_same([self])

    @property
    def has_rest(self) -> bool:
        """Whether there are attributes in slots, or arrays."""
        return bool(self._slots or self._arrays)

    def rest_is_same(self) -> bool:
        """Tell whether attributes in slots and arrays are as they were."""
        return all(
            all(map(is_, attributes_of(x, names), values)) for x, names, values in self._slots
        ) and all(array.tobytes() == content for array, content in self._arrays)

    def parts(self, chosen: Container[int]) -> list[SavedPart]:
        """Return some of its objects, by identity, as what they held."""
        found = [*self.items.of(chosen), *self.dictionaries.of(chosen)]
        for x, names, values in self._slots:
            if id(x) in chosen:
                found.append(SavedPart(x, partial(attributes_of, x, names), values))
        for array, content in self._arrays:
            if id(array) in chosen:
                found.append(SavedPart(array, partial(_content_of, array), [content], eq))
        return found

    def changeable(self) -> list[Any]:
        """Return the objects in it that can change: no tuples, tensors or numbers."""
        return [x for x in self._alive if x.__class__ not in self._TUPLES and not _is_fixed(x)]

    # -- the walk: no recursion, since structures may be deep --------------------------------------

    def _walk(self, root: Any) -> None:
        stack: list[Any] = [(root,)]
        tokens, seen, alive = self._tokens, self._seen, self._alive
        plain = is_plain if self._leave is None else _is_none
        while stack:
            for x in stack.pop():
                kind = x.__class__
                if kind is int or kind is str or x is None:
                    tokens.append(x)
                elif kind in ATOMS:
                    tokens += kind, x
                elif kind is float:
                    tokens += kind, x.hex()
                elif id(x) in seen:
                    tokens += AGAIN, seen[id(x)]
                else:
                    seen[id(x)] = len(seen)
                    alive.append(x)
                    inner = self._attributes(x, kind) if plain(kind) else self._inner(x, kind)
                    if inner:
                        stack.append(inner)

    def _inner(self, x: Any, kind: type) -> Any:
        inner = x if kind in self._TUPLES else self._parts(x, kind)
        self._tokens += kind, len(inner)
        return inner

    _TUPLES: ClassVar[set[type]] = {tuple}  # and named tuples that were met

    def _attributes(self, x: Any, kind: type) -> list[Any]:
        """Note an object that is no more than its attributes, which are thousands."""
        attributes = x.__dict__
        if attributes.__class__ is not dict:
            raise OpaqueError(f"a {kind.__name__}")
        self.classes[kind] = None
        tokens = self._tokens
        tokens.append(kind)
        tokens.append(len(attributes))
        tokens += attributes
        return self.dictionaries.add(x, attributes)

    def _parts(self, x: Any, kind: type) -> Any:
        """Note what something is, and return its parts."""
        if isinstance(x, tuple) and not hasattr(x, "__dict__"):
            self.classes[kind] = None
            if is_named_tuple(kind):
                self._TUPLES.add(kind)
            return x
        if isinstance(x, Tensor):
            return self._note_tensor(x)
        if isinstance(x, (np.ndarray, np.generic)):
            return self._note_array(x)
        if isinstance(x, BY_IDENTITY) or (self._leave is not None and self._leave(x)):
            return self._note_identity(x)
        if isinstance(x, (tuple, list, set, frozenset)):
            return self._note_sequence(x, kind)
        if isinstance(x, dict):
            return self._note_dict(x, kind)
        return self._note_object(x, kind)

    def _note_identity(self, x: Any) -> list[Any]:
        self._tokens += IDENTITY, id(x)
        self.others.append(x)
        return []

    def _note_tensor(self, x: Tensor) -> list[Any]:
        self._tokens += (TENSOR, tuple(x.shape), x.dtype, x.device)
        self.tensors.append(x)
        return []

    def _note_array(self, x: Any) -> list[Any]:
        if x.nbytes > MOST_BYTES or x.dtype.hasobject:
            raise OpaqueError(f"an array of {x.nbytes} bytes; make it a tensor")
        content = x.tobytes()
        self._tokens += (ARRAY, x.__class__, x.dtype.str, x.shape, content)
        if x.__class__ is np.ndarray:
            self._arrays.append((x, content))
        return []

    def _note_sequence(self, x: Any, kind: type) -> list[Any]:
        saved = list(x)
        if not isinstance(x, tuple):
            self.items.add(x, saved)
        if kind not in COLLECTIONS:
            self.classes[kind] = None
            if hasattr(x, "__dict__"):
                saved.append(self._variables(x, kind))
        return saved

    def _note_dict(self, x: dict[Any, Any], kind: type) -> list[Any]:
        if kind is not dict:
            self.classes[kind] = None
        return [*x, *self.dictionaries.add(x, x)]

    def _note_object(self, x: Any, kind: type) -> list[Any]:
        if kind is partial:
            return [x.func, x.args, x.keywords, x.__dict__]
        if issubclass(kind, Remembering):
            return self._note_identity(x)
        if not all(map(is_of_python, kind.__mro__)):
            raise OpaqueError(f"a {kind.__name__}")
        self.classes[kind] = None
        names = slot_names(kind)
        values = attributes_of(x, names)
        if names:
            self._slots.append((x, names, values))
        self._tokens += [name for name, value in zip(names, values, strict=True) if value is AGAIN]
        found = [value for value in values if value is not AGAIN]
        return [*found, self._variables(x, kind)] if hasattr(x, "__dict__") else found

    def _variables(self, x: Any, kind: type) -> dict[str, Any]:
        held = x.__dict__
        if held.__class__ is not dict:
            raise OpaqueError(f"a {kind.__name__}")
        return held


def attributes_of(x: Any, names: tuple[str, ...]) -> list[Any]:
    """Return some attributes of an object; AGAIN for those that it has not."""
    return [getattr(x, name, AGAIN) for name in names]


def _content_of(array: Array) -> list[bytes]:
    return [array.tobytes()]


def are_same(walks: Sequence[StructureWalk]) -> bool:
    """Tell whether all of some structures are as they were: their collections in one loop."""
    return (
        dictionaries_are_same([walk.dictionaries for walk in walks])
        and items_are_same([walk.items for walk in walks])
        and all(walk.rest_is_same() for walk in walks if walk.has_rest)
    )


def _is_none(kind: type) -> bool:
    return False


def _is_fixed(x: Any) -> bool:
    return isinstance(x, (tuple, frozenset, Tensor, np.generic, *BY_IDENTITY))


def is_named_tuple(kind: type) -> bool:
    """Tell whether a class is a named tuple, of which a walk notes no more than its parts."""
    return kind.__bases__ == (tuple,) and hasattr(kind, "_fields")


@cache
def is_plain(kind: type) -> bool:
    """Tell whether the objects of a class are no more than their attributes, in a dictionary."""
    others = (*COLLECTIONS, dict, Tensor, np.ndarray, np.generic, partial, Remembering)
    return (
        not issubclass(kind, (*others, *BY_IDENTITY))
        and all(map(is_of_python, kind.__mro__))
        and not slot_names(kind)
        and kind.__dictoffset__ != 0
    )


@cache
def is_of_python(kind: type) -> bool:
    """Tell whether a class statement made a class, so that nothing of its objects is hidden."""
    if kind in (object, Generic, Protocol):
        return True
    own = {*_own_slots(kind), "__dict__", "__weakref__"}
    return "__module__" in vars(kind) and not any(
        isinstance(value, IN_C) and getattr(value, "__objclass__", None) is kind
        for name, value in vars(kind).items()
        if name not in own
    )


def _own_slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def slot_names(kind: type) -> tuple[str, ...]:
    """Return the attributes of a class's objects that lie in slots."""
    names: list[str] = []
    for base in kind.__mro__:
        names += _own_slots(base)
    return tuple([name for name in names if name not in ("__dict__", "__weakref__")])


def is_cyclic(root: Any) -> bool:
    """Tell whether a structure leads back to itself, as far as it can be looked into."""
    ahead: list[tuple[Any, bool]] = [(root, False)]
    above: set[int] = set()
    done: set[int] = set()
    while ahead:
        x, left = ahead.pop()
        if left:
            above.discard(id(x))
            done.add(id(x))
        elif id(x) in above:
            return True
        elif id(x) not in done and x.__class__ not in ATOMS:
            above.add(id(x))
            ahead.append((x, True))
            ahead += [(part, False) for part in _parts_of(x)]
    return False


def _parts_of(x: Any) -> list[Any]:
    if isinstance(x, (Tensor, np.ndarray, *BY_IDENTITY)):
        return []
    if isinstance(x, dict):
        return list(x.values())
    if isinstance(x, (list, tuple)):
        return list(x)
    names = slot_names(type(x))
    return [*getattr(x, "__dict__", {}).values(), *[getattr(x, n, None) for n in names]]
