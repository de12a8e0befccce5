"""What calls of functions that are not written in Python do to what they are given.

Whatever is not listed here is refused: it may read a clock, draw a random number or write a file.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import operator
import sys
import threading
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from .attributes import (
    read_attribute,
    read_class,
    read_raw_attribute,
    write_attribute,
    write_raw_attribute,
)
from .log import AccessLog
from .places import ItemPlace, dictionary, place_of_attribute
from .values import (
    FUNCTIONS,
    MAPPINGS,
    MISSING,
    MUTABLE,
    container_kind,
    find,
    is_iterator,
)


class ObservedCall(NamedTuple):
    """A call, with the object of a method as its first argument."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def given(self) -> list[Any]:
        """Return all arguments."""
        return [*self.args, *self.kwargs.values()]


Rule = Callable[[AccessLog, ObservedCall], None]

_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
_CALL_OF_CLASS = type.__dict__["__call__"]
_DISPATCHER = type(np.concatenate)
_ASK_FOR_CLASS = (type, isinstance)


def note_call(log: AccessLog, call: ObservedCall) -> ObservedCall:
    """Note what a call is about to do, unless it runs code that will be seen; return it bare."""
    call = _unwrapped(call)
    if not isinstance(call.function, types.FunctionType) and not log.is_left_out(call.function):
        _note_foreign_call(log, call)
    return call


def _note_foreign_call(log: AccessLog, call: ObservedCall) -> None:
    """Note what a call does whose code is not seen."""
    function = call.function
    rule = _rule_of(call)
    if rule is None:
        log.refuse(f"calls {_name(function)}")
        return
    for value in call.given:
        _note_use(log, value)
    if function in _ASK_FOR_CLASS and call.args and log.is_left_out(call.args[0]):
        log.use_opaque(call.args[0], "__class__")
    rule(log, call)


def _unwrapped(call: ObservedCall) -> ObservedCall:
    """Return a call of the function itself: not of a bound method or of partial arguments."""
    function: Any
    function, args, kwargs = call
    while True:
        if isinstance(function, types.MethodType):
            function, args = function.__func__, (function.__self__, *args)
        elif type(function) is functools.partial:
            args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
            function = function.func
        elif function is _CALL_OF_CLASS and args:
            function, args = args[0], args[1:]
        elif not isinstance(function, (types.BuiltinFunctionType, types.MethodWrapperType)):
            return ObservedCall(function, args, kwargs)
        else:
            bound, (function, args, kwargs) = function, _unbound(function, args, kwargs)
            if function is bound or function is not _CALL_OF_CLASS:
                return ObservedCall(function, args, kwargs)


def _unbound(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ObservedCall:
    """Return a call of a method as its class has it, past what derived classes say."""
    owner = function.__self__
    is_slot = isinstance(function, types.MethodWrapperType)
    if owner is None or (isinstance(owner, (types.ModuleType, type)) and not is_slot):
        return ObservedCall(function, args, kwargs)
    for base in type(owner).__mro__:
        method = type.__dict__["__dict__"].__get__(base).get(function.__name__)
        if isinstance(method, _METHODS):
            return ObservedCall(method, (owner, *args), kwargs)
    return ObservedCall(function, args, kwargs)


def _note_use(log: AccessLog, value: Any) -> None:
    """Note that an argument may be called or used up."""
    if log.is_left_out(value):
        return
    if isinstance(value, (*FUNCTIONS[1:], types.MethodType, functools.partial)):
        _note_calls_to_come(log, _unwrapped(ObservedCall(value, (), {})))
    elif type(value) in _READERS_OF_ATTRIBUTES:
        log.refuse(f"hands a {type(value).__name__} to a function that may call it")
    elif is_iterator(value):
        log.go_on(value)


def _note_calls_to_come(log: AccessLog, call: ObservedCall) -> None:
    """Note that a function is handed to one that may call it, on what cannot be known."""
    if isinstance(call.function, types.FunctionType) or log.is_left_out(call.function):
        return
    rule = _rule_of(call)
    if rule is not None and rule in (_look_at_all, _nothing, _read_item):
        _look_at_all(log, call)
    elif rule is not None and call.args and container_kind(call.args[0]) in MUTABLE:
        log.change(call.args[0])
    else:
        log.refuse(f"hands {_name(call.function)} to a function that may call it")


def _name(function: Any) -> str:
    module = getattr(function, "__module__", None) or getattr(
        getattr(function, "__objclass__", None), "__module__", ""
    )
    name = getattr(function, "__qualname__", None) or f"a {type(function).__name__}"
    return name if module in ("builtins", "", None) else f"{module}.{name}"


# -- which rule ----------------------------------------------------------------------------------


def _rule_of(call: ObservedCall) -> Rule | None:
    function = call.function
    if function is type and len(call.args) == 1:
        return _read_class
    if isinstance(function, type):
        return _rule_of_class(function)
    if isinstance(function, types.BuiltinFunctionType):
        return _rule_of_function(function)
    if isinstance(function, (*_METHODS, types.ClassMethodDescriptorType)):
        return _rule_of_method(function.__objclass__, function.__name__)
    if isinstance(function, (np.ufunc, _DISPATCHER)):
        return None if function.__module__ in _REFUSED_NUMPY else _look_at_all
    if is_cached(function):
        return _look_at_all
    if type(function) in _CALLABLES:
        return _CALLABLES[type(function)]
    caller = find(type(function), "__call__")
    return _nothing if isinstance(caller, types.FunctionType) else None


def is_cached(function: Any) -> bool:
    """Tell whether a function keeps its results, by functools.lru_cache."""
    return type(function) is type(_cached)


@functools.cache
def _cached() -> None:
    """Return nothing: an example of a function that keeps its results."""


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
    return _look_at_all


def _is_plain_class(kind: type) -> bool:
    """Tell whether making an instance does nothing else."""
    return kind in _PLAIN_CLASSES or issubclass(kind, _PLAIN_BASES)


def _rule_of_function(function: Any) -> Rule | None:
    module, name = function.__module__ or "", function.__name__
    found = _FUNCTIONS.get((module, name))
    if found is not None:
        return found
    if isinstance(function.__self__, type) and _is_plain_class(function.__self__):
        return None if name in _TELLING_TIME else _look_at_all
    if module in _PURE_MODULES:
        return _look_at_all
    is_numpy = module.startswith("numpy") and not module.startswith(_REFUSED_NUMPY)
    return _look_at_all if is_numpy and name not in _REFUSED_NUMPY_NAMES else None


def _rule_of_method(kind: type, name: str) -> Rule | None:
    found = _METHOD_RULES.get(kind, {}).get(name)
    if found is not None:
        return found
    if kind in MUTABLE and name == "__len__":
        return _measure
    if kind in MUTABLE:
        return _look_at_all if name in _READING else _change_first
    if issubclass(kind, np.ndarray):
        return None if name in ("tofile", "dump", "__reduce__") else _look_at_all
    if kind is object or name in _HARMLESS_SLOTS:
        return _look_at_all
    return _look_at_all if _is_plain_class(kind) or kind in _FIXED_CLASSES else None


# -- rules ---------------------------------------------------------------------------------------


def _nothing(log: AccessLog, call: ObservedCall) -> None:
    """Note nothing."""


def _look_at_all(log: AccessLog, call: ObservedCall) -> None:
    for value in call.given:
        log.look(value)


def _measure(log: AccessLog, call: ObservedCall) -> None:
    for value in call.given:
        log.measure(value)


def _change_first(log: AccessLog, call: ObservedCall) -> None:
    for value in call.given[1:]:
        log.look(value)
    log.change(call.args[0])


def _change_all(log: AccessLog, call: ObservedCall) -> None:
    for value in call.given:
        log.change(value)


def _operate(log: AccessLog, call: ObservedCall) -> None:
    """Note a method that adds or removes one element, whatever else is there."""
    if len(call.args) != 2 or call.kwargs:
        return
    log.operate(call.args[0], call.function.__name__, call.args[1])


def _operate_on_each(log: AccessLog, call: ObservedCall) -> None:
    """Note a method that adds all elements of a list or tuple."""
    if len(call.args) == 2 and type(call.args[1]) in (list, tuple) and not call.kwargs:
        log.look(call.args[1])
        if call.args[1] is not call.args[0]:
            log.operate(call.args[0], call.function.__name__, *call.args[1])
            return
    _change_first(log, call)


def _read_item(log: AccessLog, call: ObservedCall) -> None:
    item = item_place(call.args[0], call.args[1]) if len(call.args) > 1 else None
    if item is None:
        _look_at_all(log, call)
    else:
        log.read(item)


def _set_item(log: AccessLog, call: ObservedCall) -> None:
    item = item_place(call.args[0], call.args[1]) if len(call.args) == 3 else None
    if item is None:
        _change_first(log, call)
    else:
        log.write(item, call.args[2])


def _read_and_write_item(log: AccessLog, call: ObservedCall) -> None:
    """Note `pop` and `setdefault` of a dictionary."""
    item = item_place(call.args[0], call.args[1]) if len(call.args) > 1 else None
    if item is None:
        _change_first(log, call)
        return
    present = log.read(item) is not MISSING
    if present == (call.function.__name__ == "pop"):
        log.write(item, MISSING if present else None)


def _update(log: AccessLog, call: ObservedCall) -> None:
    """Note `update` of a dictionary: a write of every key."""
    holder, *others = call.args
    if any(type(other) not in MAPPINGS for other in others):
        _change_first(log, call)
        return
    for other in others:
        log.look(other)
    for key in itertools.chain(*others, call.kwargs):
        log.write(ItemPlace(holder, key, f"[{key!r:.40}]"))


def _getattr(log: AccessLog, call: ObservedCall) -> None:
    if len(call.args) > 1 and isinstance(call.args[1], str):
        read_attribute(log, call.args[0], call.args[1])


def _raw_getattr(log: AccessLog, call: ObservedCall) -> None:
    if len(call.args) == 2 and isinstance(call.args[1], str):
        read_raw_attribute(log, call.args[0], call.args[1])


def _read_attributes(log: AccessLog, call: ObservedCall) -> None:
    """Note what an attrgetter reads, step by step."""
    for path in call.function.__reduce__()[1]:
        value = call.args[0]
        for name in path.split("."):
            read_attribute(log, value, name)
            value = place_of_attribute(value, name, name).get()


def _read_everything(log: AccessLog, call: ObservedCall) -> None:
    """Note that all attributes of an object are read."""
    log.look_at_attributes(call.args[0])


def _read_class(log: AccessLog, call: ObservedCall) -> None:
    """Note `isinstance`, and `type` of one argument."""
    if call.args:
        is_number = getattr(call.args[0], "weak", False) is True  # which stands for any of its kind
        if is_number and not log.in_library:
            log.refuse("asks for the class of a number that changes from call to call")
        read_class(log, call.args[0])


def _setattr(log: AccessLog, call: ObservedCall) -> None:
    if len(call.args) == 3:
        write_attribute(log, *call.args)


def _delattr(log: AccessLog, call: ObservedCall) -> None:
    if len(call.args) == 2:
        write_attribute(log, *call.args, MISSING)


def _raw_setattr(log: AccessLog, call: ObservedCall) -> None:
    if len(call.args) == 3:
        write_raw_attribute(log, *call.args)


def _raw_delattr(log: AccessLog, call: ObservedCall) -> None:
    if len(call.args) == 2:
        write_raw_attribute(log, *call.args, MISSING)


def _vars(log: AccessLog, call: ObservedCall) -> None:
    if not call.args or isinstance(call.args[0], type) or log.is_left_out(call.args[0]):
        return
    held = dictionary(call.args[0])
    if isinstance(call.args[0], types.ModuleType):
        log.ages.hold(call.args[0], held)
    else:
        log.name_dictionary(held, call.args[0])


def _import(log: AccessLog, call: ObservedCall) -> None:
    if call.args and call.args[0] not in sys.modules:
        log.refuse(f"imports {call.args[0]} for the first time")


def _lock(log: AccessLog, call: ObservedCall) -> None:
    if not log.in_library:  # which guards its own caches by it
        log.refuse("takes or leaves a lock")


def _dir(log: AccessLog, call: ObservedCall) -> None:
    if call.args:
        log.look_at_attributes(call.args[0])


def item_place(owner: Any, key: Any) -> ItemPlace | None:
    """Return the place of an item of a dictionary; None if that cannot be told."""
    try:
        hash(key)
    except TypeError:
        return None
    text = f"[{key!r:.40}]" if isinstance(key, str) else "an item"
    return ItemPlace(owner, key, text) if _is_usual_dictionary(owner) else None


def _is_usual_dictionary(owner: Any) -> bool:
    return isinstance(owner, dict) and find(type(owner), "__getitem__") is dict.__getitem__


_FUNCTIONS: dict[tuple[str, str], Rule] = {
    **{
        ("builtins", function.__name__): _look_at_all
        for function in (
            *(abs, all, any, ascii, bin, callable, chr, compile, divmod, eval, exec, format),
            *(globals, hash, hex, id, issubclass, iter, locals, max, min, next, oct, ord, pow),
            *(repr, round, sorted, sum, __build_class__),
        )
    },
    ("builtins", "len"): _measure,
    ("builtins", "isinstance"): _read_class,
    ("builtins", "getattr"): _getattr,
    ("builtins", "hasattr"): _getattr,
    ("builtins", "setattr"): _setattr,
    ("builtins", "delattr"): _delattr,
    ("builtins", "__import__"): _import,
    ("builtins", "vars"): _vars,
    ("builtins", "dir"): _dir,
    ("_functools", "reduce"): _look_at_all,
    ("_collections", "_count_elements"): _change_first,
    ("_bisect", "bisect_left"): _look_at_all,
    ("_bisect", "bisect_right"): _look_at_all,
    **{("_bisect", name): _change_first for name in ("insort_left", "insort_right")},
    **{("_heapq", name): _change_first for name in ("heappush", "heappop", "heapify")},
    **{("_heapq", name): _change_first for name in ("heapreplace", "heappushpop")},
    ("sys", "intern"): _nothing,
    **{
        ("_operator", name): _change_all
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
    operator.itemgetter: _look_at_all,
    operator.attrgetter: _read_attributes,
}
_READERS_OF_ATTRIBUTES = (operator.attrgetter, operator.methodcaller)
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
    list: {"append": _operate, "extend": _operate_on_each},
    set: {"add": _operate, "discard": _operate, "update": _operate_on_each},
    deque: {
        **dict.fromkeys(("append", "appendleft"), _operate),
        **dict.fromkeys(("extend", "extendleft"), _operate_on_each),
    },
    dict: {
        **dict.fromkeys(("get", "__getitem__", "__contains__"), _read_item),
        **dict.fromkeys(("pop", "setdefault"), _read_and_write_item),
        "__setitem__": _set_item,
        "update": _update,
    },
    object: {
        "__setattr__": _raw_setattr,
        "__delattr__": _raw_delattr,
        "__getattribute__": _raw_getattr,
        **dict.fromkeys(("__reduce__", "__reduce_ex__", "__getstate__"), _read_everything),
        **dict.fromkeys(("__dir__", "__sizeof__"), _read_everything),
    },
    **{
        type(make()): dict.fromkeys(("__enter__", "__exit__", "acquire", "release"), _lock)
        for make in (threading.Lock, threading.RLock)
    },
    type: {
        "__setattr__": _raw_setattr,
        "__delattr__": _raw_delattr,
        "__getattribute__": _raw_getattr,
    },
}
