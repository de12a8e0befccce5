"""What an example is made of: a key that equal structures share, and whether it is as it was.

Everything of an example counts, by class and value, in the order in which a walk meets it; what is
met again, through sharing or a cycle, by its number. Only tensors count by their type: their values
are data. A walk holds what it met, so that a later one can tell by identities that nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache, partial
from operator import attrgetter, is_, itemgetter, methodcaller
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
        self._lists: list[tuple[Any, list[Any]]] = []
        self._dicts: list[tuple[dict[Any, Any], list[Any], list[Any]]] = []
        self._slots: list[tuple[Any, tuple[str, ...], list[Any]]] = []
        self._arrays: list[tuple[Array, bytes]] = []
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []
        self._tokens: list[Any] = []
        self._walk(root)
        self.key = tuple(self._tokens)
        del self._tokens, self._seen

    def is_same(self) -> bool:
        """Tell whether everything is as it was."""
        for live, saved in self._lists:
            if len(live) != len(saved) or not all(map(is_, live, saved)):
                return False
        for held, keys, values in self._dicts:
            if len(held) != len(keys) or not all(map(is_, held.values(), values)):
                return False
            if not all(map(is_, held, keys)):
                return False
        for x, names, values in self._slots:
            if not all(map(is_, [getattr(x, name, AGAIN) for name in names], values)):
                return False
        return all(array.tobytes() == content for array, content in self._arrays)

    # -- the walk: no recursion, since structures may be deep --------------------------------------

    def _walk(self, root: Any) -> None:
        stack = [(root,)]
        tokens, seen = self._tokens, self._seen
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
                else:
                    seen[id(x)] = len(seen)
                    self._alive.append(x)
                    inner = x if kind in self._TUPLES else self._parts(x, kind)
                    tokens.append(kind)
                    tokens.append(len(inner))
                    if inner:
                        stack.append(inner)

    _TUPLES: ClassVar[set[type]] = {tuple}  # and named tuples that were met

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
            self._lists.append((x, saved))
        if kind not in COLLECTIONS:
            self.classes[kind] = None
            if hasattr(x, "__dict__"):
                saved.append(self._variables(x, kind))
        return saved

    def _note_dict(self, x: dict[Any, Any], kind: type) -> list[Any]:
        keys, values = list(x), list(x.values())
        self._dicts.append((x, keys, values))
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
        values = [getattr(x, name, AGAIN) for name in names]
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


def is_named_tuple(kind: type) -> bool:
    """Tell whether a class is a named tuple, of which a walk notes no more than its parts."""
    return kind.__bases__ == (tuple,) and hasattr(kind, "_fields")


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
