"""Which functions in C are known, and by which rule.

Whatever is not listed here is refused: it may read a clock, draw a random number or write a file.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import operator
import threading
import types
from collections import OrderedDict, defaultdict, deque
from decimal import Decimal
from typing import Any

import numpy as np

from .cached import is_cached
from .call_rules import (
    Rule,
    ask_for_class,
    change_all,
    change_first,
    delete_named,
    delete_named_raw,
    follow_getter,
    hash_value,
    identify,
    import_named,
    list_names,
    look_at_all,
    measure_all,
    name_variables,
    note_nothing,
    operate,
    operate_on_each,
    read_and_write_item,
    read_everything,
    read_item,
    read_named,
    read_named_raw,
    set_item,
    update_items,
    use_lock,
    write_named,
    write_named_raw,
)
from .observed import METHODS, ObservedCall
from .values import MUTABLE, find

_DISPATCHER = type(np.concatenate)


def rule_of(call: ObservedCall) -> Rule | None:
    """Return what a call of a function in C does; None if that is not known."""
    function = call.function
    if function is type and len(call.args) == 1:
        return ask_for_class
    if isinstance(function, type):
        return _rule_of_class(function)
    if isinstance(function, types.BuiltinFunctionType):
        return _rule_of_function(function)
    if isinstance(function, (*METHODS, types.ClassMethodDescriptorType)):
        return _rule_of_method(function.__objclass__, function.__name__)
    if isinstance(function, (np.ufunc, _DISPATCHER)):
        return None if function.__module__ in _REFUSED_NUMPY else look_at_all
    if is_cached(function):  # if that is Python's, it is seen whether it runs
        return look_at_all if isinstance(function.__wrapped__, types.FunctionType) else None
    if type(function) in _CALLABLES:
        return _CALLABLES[type(function)]
    caller = find(type(function), "__call__")
    return note_nothing if isinstance(caller, types.FunctionType) else None


def _rule_of_class(kind: type) -> Rule | None:
    """Return the rule of a class: what makes and fills its instances is seen, or known."""
    if type(kind).__call__ is not type.__call__ and not isinstance(
        find(type(kind), "__call__"), types.FunctionType
    ):
        return None
    for name in ("__new__", "__init__"):
        maker = find(kind, name)
        maker = getattr(maker, "__func__", maker)
        if isinstance(maker, types.FunctionType):
            continue
        owner = getattr(maker, "__objclass__", None) or getattr(maker, "__self__", None)
        if not isinstance(owner, type) or not _is_plain_class(owner):
            return None
    return look_at_all


def _is_plain_class(kind: type) -> bool:
    """Tell whether making an instance does nothing else."""
    return kind in _PLAIN_CLASSES or issubclass(kind, _PLAIN_BASES)


def _rule_of_function(function: Any) -> Rule | None:
    module, name = function.__module__ or "", function.__name__
    found = _FUNCTIONS.get((module, name))
    if found is not None:
        return found
    if isinstance(function.__self__, type) and _is_plain_class(function.__self__):
        return None if name in _TELLING_TIME else look_at_all
    if module in _PURE_MODULES:
        return look_at_all
    is_numpy = module.startswith("numpy") and not module.startswith(_REFUSED_NUMPY)
    return look_at_all if is_numpy and name not in _REFUSED_NUMPY_NAMES else None


def _rule_of_method(kind: type, name: str) -> Rule | None:
    found = _METHOD_RULES.get(kind, {}).get(name)
    if found is not None:
        return found
    if kind in MUTABLE and name == "__len__":
        return measure_all
    if kind in MUTABLE:
        return look_at_all if name in _READING else change_first
    if issubclass(kind, np.ndarray):
        return None if name in ("tofile", "dump", "__reduce__") else look_at_all
    if kind is object or name in _HARMLESS_SLOTS:
        return look_at_all
    return look_at_all if _is_plain_class(kind) or kind in _FIXED_CLASSES else None


_FUNCTIONS: dict[tuple[str, str], Rule] = {
    **{
        ("builtins", function.__name__): look_at_all
        for function in (
            *(abs, all, any, ascii, bin, callable, chr, compile, divmod, eval, exec, format),
            *(globals, hex, issubclass, iter, locals, max, min, next, oct, ord, pow),
            *(repr, round, sorted, sum, __build_class__),
        )
    },
    ("builtins", "id"): identify,
    ("builtins", "hash"): hash_value,
    ("builtins", "len"): measure_all,
    ("builtins", "isinstance"): ask_for_class,
    ("builtins", "getattr"): read_named,
    ("builtins", "hasattr"): read_named,
    ("builtins", "setattr"): write_named,
    ("builtins", "delattr"): delete_named,
    ("builtins", "__import__"): import_named,
    ("builtins", "vars"): name_variables,
    ("builtins", "dir"): list_names,
    ("_functools", "reduce"): look_at_all,
    ("_collections", "_count_elements"): change_first,
    ("_bisect", "bisect_left"): look_at_all,
    ("_bisect", "bisect_right"): look_at_all,
    **{("_bisect", name): change_first for name in ("insort_left", "insort_right")},
    **{("_heapq", name): change_first for name in ("heappush", "heappop", "heapify")},
    **{("_heapq", name): change_first for name in ("heapreplace", "heappushpop")},
    ("sys", "intern"): note_nothing,
    **{
        ("_operator", name): change_all
        for name in dir(operator)
        if name in ("setitem", "delitem") or (name.startswith("i") and hasattr(operator, name[1:]))
    },
}
_TELLING_TIME = frozenset({"now", "today", "utcnow", "fromtimestamp", "utcfromtimestamp"})
_PURE_MODULES = frozenset({"math", "cmath", "_operator", "_abc", "_struct", "_typing", "_stat"})
_REFUSED_NUMPY = ("numpy.random", "numpy.lib._npyio", "numpy.ctypeslib", "numpy.testing")
_REFUSED_NUMPY_NAMES = frozenset(
    {"fromfile", "set_string_function", "seterrobj", "set_typeDict", "_set_madvise_hugepage"}
)
_CALLABLES: dict[type, Rule] = {
    operator.itemgetter: look_at_all,
    operator.attrgetter: follow_getter,
}
READERS_OF_ATTRIBUTES = (operator.attrgetter, operator.methodcaller)
_ITERTOOLS = tuple(kind for kind in vars(itertools).values() if isinstance(kind, type))
_PLAIN_CLASSES = frozenset(
    {
        *(object, int, float, complex, bool, str, bytes, tuple, list, dict, set, frozenset),
        *(bytearray, range, slice, zip, map, filter, enumerate, reversed, property),
        *(staticmethod, classmethod, super, type, deque, OrderedDict, defaultdict),
        *(functools.partial, np.ndarray, types.SimpleNamespace, types.MappingProxyType),
        *(types.MethodType, types.GenericAlias, types.CellType, *_ITERTOOLS),
        *(operator.itemgetter, operator.attrgetter, operator.methodcaller),
    }
)
_PLAIN_BASES = (
    *(BaseException, np.generic, np.dtype, dt.date, dt.time, dt.timedelta),
    *(dt.timezone, Decimal),
)
_GENERATORS = (types.GeneratorType,)
_FIXED_CLASSES = frozenset({type(None), types.FunctionType, types.CodeType, *_GENERATORS})
_READING = frozenset(
    {
        *("copy", "count", "index", "keys", "values", "items", "union", "intersection"),
        *("difference", "symmetric_difference", "issubset", "issuperset", "isdisjoint"),
        *("__len__", "__iter__", "__contains__", "__getitem__", "__eq__", "__ne__", "__lt__"),
        *("__le__", "__gt__", "__ge__", "__repr__", "__add__", "__mul__", "__reversed__"),
        *("__or__", "__and__", "__sub__", "__xor__", "__hash__", "__sizeof__", "get"),
        *("startswith", "endswith", "find", "hex", "decode", "split", "__init_subclass__"),
    }
)
_HARMLESS_SLOTS = frozenset({"__init_subclass__", "__subclasshook__"})
_METHOD_RULES: dict[type, dict[str, Rule]] = {
    list: {"append": operate, "extend": operate_on_each},
    set: {"add": operate, "discard": operate, "update": operate_on_each},
    deque: {
        **dict.fromkeys(("append", "appendleft"), operate),
        **dict.fromkeys(("extend", "extendleft"), operate_on_each),
    },
    dict: {
        **dict.fromkeys(("get", "__getitem__", "__contains__"), read_item),
        **dict.fromkeys(("pop", "setdefault"), read_and_write_item),
        "__setitem__": set_item,
        "update": update_items,
    },
    object: {
        "__setattr__": write_named_raw,
        "__delattr__": delete_named_raw,
        "__getattribute__": read_named_raw,
        **dict.fromkeys(("__reduce__", "__reduce_ex__", "__getstate__"), read_everything),
        **dict.fromkeys(("__dir__", "__sizeof__"), read_everything),
    },
    **{
        type(make()): dict.fromkeys(("__enter__", "__exit__", "acquire", "release"), use_lock)
        for make in (threading.Lock, threading.RLock)
    },
    type: {
        "__setattr__": write_named_raw,
        "__delattr__": delete_named_raw,
        "__getattribute__": read_named_raw,
    },
}
