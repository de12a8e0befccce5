"""What an example is made of: a key that equal structures share, and whether it is as it was.

Everything of an example counts, by class and value, in the order in which a walk meets it; what is
met again, through sharing or a cycle, by its number. Only tensors count by their type: their values
are data. A walk holds what it met, so that a later one can tell by identities that nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from enum import Enum
from functools import cache, partial
from itertools import chain
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
from typing import Any, ClassVar, Generic, NamedTuple, Protocol

import numpy as np

from ..core.dtype import Array
from ..core.tensor import Tensor

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
AGAIN, TENSOR, ARRAY = object(), object(), object()


class OpaqueError(Exception):
    """Says what of a structure cannot be looked into."""


class Wrapped:
    """Something around a function that does what the function does: a cell."""

    fn: Callable[..., Any]


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


class WalkPart(NamedTuple):
    """An object of a structure: what tells what it holds, and what it held."""

    owner: Any
    now: Callable[[], list[Any]]
    before: list[Any]
    like: Callable[[Any, Any], bool] = is_

    def is_same(self) -> bool:
        """Tell whether it holds what it held."""
        now = self.now()
        return len(now) == len(self.before) and all(map(self.like, now, self.before))


class SavedItems:
    """What several collections held.

    live     the collections, or views of what they hold
    owners   whose they are
    """

    __slots__ = ("items", "lengths", "live", "owners")

    def __init__(self) -> None:
        self.owners: list[Any] = []
        self.live: list[Any] = []
        self.items: list[Any] = []
        self.lengths: list[int] = []

    def add(self, owner: Any, live: Any, items: list[Any]) -> None:
        """Remember what a collection holds."""
        self.owners.append(owner)
        self.live.append(live)
        self.items += items
        self.lengths.append(len(items))

    def is_same(self) -> bool:
        """Tell whether all hold the same things in the same order."""
        live = self.live
        return list(map(len, live)) == self.lengths and all(
            map(is_, chain.from_iterable(live), self.items)
        )

    def of(self, owners: Container[int]) -> Iterator[WalkPart]:
        """Yield the collections of some owners, by identity."""
        begin = 0
        for owner, live, length in zip(self.owners, self.live, self.lengths, strict=True):
            if id(owner) in owners:
                yield WalkPart(owner, partial(list, live), self.items[begin : begin + length])
            begin += length


class StructureWalk:
    """A structure as it was when it was walked through.

    key       equal for equal structures
    tensors   the tensors in it, in order
    classes   those of its objects
    """

    def __init__(self, root: Any, leave: Callable[[Any], bool] | None = None) -> None:
        self.root = root
        self.tensors: list[Tensor] = []
        self.classes: dict[type, None] = {}
        self.others: list[Any] = []  # functions, classes and modules
        self._leave = leave
        self.held = SavedItems()  # by lists, sets and dictionaries
        self.names = SavedItems()  # keys of dictionaries
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
        return self.held.is_same() and self.names.is_same() and self.rest_is_same()

    def rest_is_same(self) -> bool:
        """Tell whether attributes in slots and arrays are as they were."""
        return all(
            all(map(is_, _attributes_of(x, names), values)) for x, names, values in self._slots
        ) and all(array.tobytes() == content for array, content in self._arrays)

    def parts(self, chosen: Container[int]) -> list[WalkPart]:
        """Return some of its objects, by identity, as what they held."""
        found = [*self.held.of(chosen), *self.names.of(chosen)]
        for x, names, values in self._slots:
            if id(x) in chosen:
                found.append(WalkPart(x, partial(_attributes_of, x, names), values))
        for array, content in self._arrays:
            if id(array) in chosen:
                found.append(WalkPart(array, partial(_content_of, array), [content], eq))
        return found

    def changeable(self) -> list[Any]:
        """Return the objects in it that can change: no tuples, tensors or numbers."""
        return [x for x in self._alive if x.__class__ not in self._TUPLES and not _is_fixed(x)]

    # -- the walk: no recursion, since structures may be deep --------------------------------------

    def _walk(self, root: Any) -> None:
        stack: list[Any] = [(root,)]
        tokens, seen = self._tokens, self._seen
        examples = self._leave is None
        while stack:
            parts = stack.pop()
            for x in parts:
                kind = x.__class__
                if kind in ATOMS:
                    tokens.append(kind)
                    tokens.append(x)
                elif kind is float:
                    tokens.append(x.hex())
                elif id(x) in seen:
                    tokens.append(AGAIN)
                    tokens.append(seen[id(x)])
                elif examples and is_plain(kind):
                    seen[id(x)] = len(seen)
                    self._alive.append(x)
                    stack.append(self._attributes(x, kind))
                else:
                    seen[id(x)] = len(seen)
                    self._alive.append(x)
                    inner = x if kind in self._TUPLES else self._parts(x, kind)
                    tokens.append(kind)
                    tokens.append(len(inner))
                    if inner:
                        stack.append(inner)

    _TUPLES: ClassVar[set[type]] = {tuple}  # and named tuples that were met

    def _attributes(self, x: Any, kind: type) -> list[Any]:
        """Note an object that is no more than its attributes, which are thousands."""
        attributes = self._variables(x, kind)
        names, values = [*attributes], [*attributes.values()]
        self.names.add(x, attributes, names)
        self.held.add(x, attributes.values(), values)
        self.classes[kind] = None
        self._tokens += (kind, *names)
        return values

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
        self._tokens.append(id(x))
        self.others.append(x)
        return []

    def _note_tensor(self, x: Tensor) -> list[Any]:
        self._tokens += (TENSOR, tuple(x.shape), x.dtype)
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
            self.held.add(x, x, saved)
        if kind not in COLLECTIONS:
            self.classes[kind] = None
            if hasattr(x, "__dict__"):
                saved.append(self._variables(x, kind))
        return saved

    def _note_dict(self, x: dict[Any, Any], kind: type) -> list[Any]:
        keys, values = list(x), list(x.values())
        self.names.add(x, x, keys)
        self.held.add(x, x.values(), values)
        if kind is not dict:
            self.classes[kind] = None
        return [*keys, *values]

    def _note_object(self, x: Any, kind: type) -> list[Any]:
        if kind is partial:
            return [x.func, x.args, x.keywords, x.__dict__]
        if not all(map(is_of_python, kind.__mro__)):
            raise OpaqueError(f"a {kind.__name__}")
        self.classes[kind] = None
        names = _slot_names(kind)
        values = _attributes_of(x, names)
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


def _attributes_of(x: Any, names: tuple[str, ...]) -> list[Any]:
    return [getattr(x, name, AGAIN) for name in names]


def _content_of(array: Array) -> list[bytes]:
    return [array.tobytes()]


def are_same(walks: Sequence[StructureWalk]) -> bool:
    """Tell whether all of some structures are as they were: their collections in one loop."""
    return (
        _hold_same([walk.held for walk in walks])
        and _hold_same([walk.names for walk in walks])
        and all(walk.rest_is_same() for walk in walks)
    )


def _hold_same(saved: Sequence[SavedItems]) -> bool:
    flat = chain.from_iterable
    live = [*flat([x.live for x in saved])]
    if list(map(len, live)) != [*flat([x.lengths for x in saved])]:
        return False
    return all(map(is_, flat(live), flat([x.items for x in saved])))


def _is_fixed(x: Any) -> bool:
    return isinstance(x, (tuple, frozenset, Tensor, np.generic, *BY_IDENTITY))


def is_named_tuple(kind: type) -> bool:
    """Tell whether a class is a named tuple, of which a walk notes no more than its parts."""
    return kind.__bases__ == (tuple,) and hasattr(kind, "_fields")


@cache
def is_plain(kind: type) -> bool:
    """Tell whether the objects of a class are no more than their attributes, in a dictionary."""
    others = (*COLLECTIONS, dict, Tensor, np.ndarray, np.generic, partial, *BY_IDENTITY)
    return (
        not issubclass(kind, others)
        and all(map(is_of_python, kind.__mro__))
        and not _slot_names(kind)
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


def _slot_names(kind: type) -> tuple[str, ...]:
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
    names = _slot_names(type(x))
    return [*getattr(x, "__dict__", {}).values(), *[getattr(x, n, None) for n in names]]
