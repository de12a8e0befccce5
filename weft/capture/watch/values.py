"""Values of Python's: which never change, which hold others, and when two are the same."""

from __future__ import annotations

import datetime as dt
import math
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Set
from decimal import Decimal
from enum import Enum
from itertools import chain
from typing import Any

import numpy as np

from ...core.counts import Count

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()

NUMBERS = (int, float, bool)
SLICE_PARTS = ("start", "stop", "step")
ATOMS = frozenset(
    {
        *(int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented)),
        *(range, slice, Count),
    }
)
# Immutable, and told apart by what they print: equal ones may differ in precision or time zone.
_PRINTED = (
    dt.date,
    dt.time,
    dt.timedelta,
    dt.timezone,
    Decimal,
    dt.datetime,
)
MAPPINGS = (dict, OrderedDict, defaultdict)
MUTABLE = frozenset({list, deque, bytearray, set, *MAPPINGS})
FROZEN = frozenset({tuple, frozenset})
_CONTAINERS = (list, dict, set, tuple, frozenset, deque, bytearray, np.ndarray)
FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
_IMMUTABLE_CONTAINERS = frozenset({str, bytes, range, types.GenericAlias, types.UnionType})


def is_atom(value: Any) -> bool:
    """Tell whether a value is a number, a string or the like: equal ones cannot be told apart."""
    kind = type(value)
    return kind in ATOMS or issubclass(kind, (np.generic, np.dtype)) or kind in _PRINTED


def is_constant(value: Any) -> bool:
    """Tell whether a value is an atom, or a tuple or frozen set of such."""
    if type(value) in FROZEN:
        return all(map(is_constant, value))
    if type(value) is slice:
        return all(is_constant(getattr(value, part)) for part in SLICE_PARTS)
    return is_atom(value)


def is_named(value: Any) -> bool:
    """Tell whether a value is a function, class, module or enum member: one that stays itself."""
    return issubclass(type(value), (*FUNCTIONS, type, types.ModuleType, Enum))


def container_kind(value: Any) -> type | None:
    """Return which of the usual containers a value is, itself or by a base of its class."""
    kind = type(value)
    return next((known for known in _CONTAINERS if issubclass(kind, known)), None)


def holds_in_c(value: Any) -> bool:
    """Tell whether a value is a container of an unknown kind that is not written in Python."""
    kind = type(value)
    if is_named(value) or kind in _IMMUTABLE_CONTAINERS:
        return False
    parts = (find(kind, name) for name in ("__getitem__", "__iter__", "__len__", "__contains__"))
    return any(type(part) in FUNCTIONS for part in parts if type(part) is not types.FunctionType)


def is_iterator(value: Any) -> bool:
    """Tell whether a value is used up by going through it."""
    return find(type(value), "__next__") is not MISSING


def same(value: Any, other: Any) -> bool:
    """Tell whether no program could see a difference between two values, but for their identity."""
    if value is other:
        return True
    kind = type(value)
    if kind is not type(other):
        return False
    comparison = _COMPARISONS.get(kind)
    if comparison is not None:
        return comparison(value, other)
    if issubclass(kind, np.generic):
        return bool(value.dtype == other.dtype and value.tobytes() == other.tobytes())
    return bool(is_atom(value) and value == other)


def _same_tuple(value: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(value) == len(other) and all(map(same, value, other))


def _same_frozen_set(value: frozenset[Any], other: frozenset[Any]) -> bool:
    return is_constant(value) and is_constant(other) and same_set(value, other)


def _same_complex(value: complex, other: complex) -> bool:
    return same_float(value.real, other.real) and same_float(value.imag, other.imag)


def _same_text(value: Any, other: Any) -> bool:
    return repr(value) == repr(other)


def _same_slice(value: slice, other: slice) -> bool:
    return all(same(getattr(value, part), getattr(other, part)) for part in SLICE_PARTS)


def same_float(value: float, other: float) -> bool:
    """Tell whether two floats are the same: 0.0 and -0.0 are not, and NaN is NaN."""
    if value != value:  # noqa: PLR0124  (NaN alone is unlike itself)
        return other != other  # noqa: PLR0124  (likewise)
    return value == other and math.copysign(1.0, value) == math.copysign(1.0, other)


def same_set(value: Set[Any], other: Set[Any]) -> bool:
    """Tell whether two sets have the same elements: 1 and True are equal, and not the same."""
    types_of = [{(type(x), x) for x in members} for members in (value, other)]
    return types_of[0] == types_of[1]


def same_array(array: Any, other: Any) -> bool:
    """Tell whether an array is of the type and the bits of another."""
    alike = array.dtype == other.dtype and array.shape == other.shape
    return bool(alike and array.tobytes() == other.tobytes())


def find(kind: type, name: str) -> Any:
    """Return what a class, or a base, says of an attribute; no descriptor runs."""
    return find_with_owner(kind, name)[1]


def find_with_owner(kind: type, name: str) -> tuple[type | None, Any]:
    """Return which class says something of an attribute, and what."""
    for base in type.__dict__["__mro__"].__get__(kind):
        held = type.__dict__["__dict__"].__get__(base)
        if name in held:
            return base, held[name]
    return None, MISSING


def is_data_descriptor(value: Any) -> bool:
    """Tell whether what a class says of an attribute comes before what an instance has."""
    kind = type(value)
    return find(kind, "__set__") is not MISSING or find(kind, "__delete__") is not MISSING


def has_get(value: Any) -> bool:
    """Tell whether what a class says of an attribute is bound to instances that are asked."""
    return find(type(value), "__get__") is not MISSING


def describe(value: Any) -> str:
    """Return a value as a message shows it; no code of users runs."""
    if is_named(value) or value is MISSING:
        return str(getattr(value, "__name__", "missing"))
    is_plain = is_atom(value) or type(value) in (bytearray, frozenset)
    if is_plain or (type(value) in (list, tuple, set) and all(map(is_constant, value))):
        return repr(value)[:60]
    if type(value) is dict and all(map(is_constant, [*value, *value.values()])):
        return repr(value)[:60]
    return f"a {type(value).__name__}"


def elements(holder: Any) -> Any:
    """Return what is in a container, past what its class has for going through it."""
    for kind in (list, tuple, set, frozenset, deque, bytearray, OrderedDict):
        if issubclass(type(holder), kind):
            return kind.__iter__(holder)
    return dict.__iter__(holder)


def items(holder: Any) -> list[tuple[Any, Any]]:
    """Return the keys and values of a dictionary, in its order."""
    return [(key, dict.__getitem__(holder, key)) for key in elements(holder)]


def same_contents(holder: Any, before: Any) -> bool:
    """Tell whether a container holds what it held, in the same order."""
    kind = container_kind(holder)
    if kind is bytearray:
        return bool(bytes(holder) == before)
    if kind is set:
        return same_set(frozenset(elements(holder)), before)
    if kind is dict:
        return _same_tuple(tuple(chain(*items(holder))), tuple(chain(*before.items())))
    return _same_tuple(tuple(elements(holder)), before)


def pairs_in(before: Any) -> list[tuple[Any, Any]]:
    """Return keys, or positions, and what a copy of a container has there."""
    if isinstance(before, dict):
        return list(before.items())
    return list(enumerate(before)) if isinstance(before, (tuple, frozenset)) else []


def same_but(holder: Any, before: Any, fed: Set[Any]) -> bool:
    """Tell whether a container holds what it held, in the same order, but for some keys."""
    if container_kind(holder) is dict:
        now, then = items(holder), list(before.items())
        if not _same_tuple(tuple(key for key, _ in now), tuple(before)):
            return False
    else:
        now, then = list(enumerate(elements(holder))), list(enumerate(before))
    pairs = zip(now, then, strict=False)
    return len(now) == len(then) and all(k in fed or same(x, y) for (k, x), (_, y) in pairs)


_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    float: same_float,
    complex: _same_complex,
    tuple: _same_tuple,
    frozenset: _same_frozen_set,
    slice: _same_slice,
    range: _same_text,
    **dict.fromkeys(_PRINTED, _same_text),
}
