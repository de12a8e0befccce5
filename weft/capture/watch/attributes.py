"""What reading, writing or deleting an attribute touches, told without running any of its code."""

from __future__ import annotations

import threading
import weakref
from types import FunctionType, MethodType, ModuleType
from typing import Any

from .log import AccessLog
from .places import (
    AttributePlace,
    ClassPlace,
    FactPlace,
    ItemPlace,
    MethodPlace,
    OwnClassPlace,
    PythonPlace,
    dictionary,
    is_slot,
    place_of_attribute,
)
from .trust import is_library_class, is_library_module
from .values import (
    MISSING,
    NUMBERS,
    find,
    find_with_owner,
    has_get,
    is_atom,
    is_data_descriptor,
    is_named,
)

_FORWARDING = (threading.local, weakref.ProxyType, weakref.CallableProxyType)
_PARTS = ("__thisclass__", "__self__")
_FACTS = ("__class__", "__defaults__", "__kwdefaults__", "__code__")


def read_attribute(log: AccessLog, owner: Any, name: str, text: str = "") -> None:
    """Note what the attribute of an object is found in."""
    if is_atom(owner):
        return
    if log.is_left_out(owner):
        log.use_opaque(owner, name)
        return
    if type(owner) is super:
        kind, found = (super.__dict__[part].__get__(owner) for part in _PARTS)
        read_after(log, kind, found, name)
        return
    reader = find(type(owner), "__getattribute__")
    if isinstance(reader, FunctionType):  # whose code will be seen
        return
    if not _is_usual(reader):
        log.refuse(f"reads {name!r} of a {type(owner).__name__}", owner)
        return
    read_raw_attribute(log, owner, name, text)


def read_raw_attribute(log: AccessLog, owner: Any, name: str, text: str = "") -> None:
    """Note what an attribute is found in, past what its class has for finding it."""
    if log.is_left_out(owner):
        log.use_opaque(owner, name)
        return
    text = f"{text or type(owner).__name__}.{name}"
    if isinstance(owner, ModuleType):
        _read_of_module(log, owner, name, text)
    elif isinstance(owner, type):
        read_of_class(log, owner, name, text)
    else:
        _read_of_instance(log, owner, name, text)


def _is_usual(reader: Any) -> bool:
    """Tell whether attributes are found in the usual way: in the object, or in its class."""
    kind = getattr(reader, "__objclass__", None)
    return isinstance(kind, type) and kind not in _FORWARDING and is_library_class(kind)


def read_after(log: AccessLog, kind: type, owner: Any, name: str) -> None:
    """Note that an attribute is read from the bases of an object's class that follow another."""
    bases = (owner if isinstance(owner, type) else type(owner)).__mro__
    for base in bases[bases.index(kind) + 1 :] if kind in bases else ():
        if is_library_class(base):
            return
        place = OwnClassPlace(base, name, f"{base.__name__}.{name}")
        if log.read(place) is not MISSING:
            return


def _read_of_module(log: AccessLog, module: ModuleType, name: str, text: str) -> None:
    if not is_library_module(module):
        log.ages.see(module)
        log.ages.hold(module, dictionary(module))
        log.read(ItemPlace(dictionary(module), name, text))


def read_of_class(log: AccessLog, kind: type, name: str, text: str) -> None:
    """Note that an attribute of a class is read."""
    if is_data_descriptor(find(type(kind), name)):  # of the class of the class
        return
    definer, value = find_with_owner(kind, name)
    if is_library_class(kind):
        log.ages.hold(kind, value)
    elif definer is not None and _may_count(log, value):
        _read_of_definer(log, kind, definer, name, text)
    elif definer is None or not _was_written(log, definer, name):
        log.read(ClassPlace(kind, name, text))


def _may_count(log: AccessLog, value: Any) -> bool:
    """Tell whether a class holds a number, which functions may change: one of some class alone."""
    return type(value) in NUMBERS or log.recorded(value)


def _read_of_definer(log: AccessLog, kind: type, definer: type, name: str, text: str) -> None:
    """Note which class an attribute is found in, and that those before it have none."""
    for base in kind.__mro__[: kind.__mro__.index(definer) + 1]:
        if not is_library_class(base):
            log.read(OwnClassPlace(base, name, text))


def read_class(log: AccessLog, owner: Any) -> None:
    """Note that the class of an object is read, if that can change."""
    if not is_library_class(type(owner)) and not log.is_left_out(owner) and not is_named(owner):
        log.read(FactPlace(owner, "__class__", f"the class of a {type(owner).__name__}"))


def _was_written(log: AccessLog, definer: type, name: str) -> bool:
    return OwnClassPlace(definer, name, "") in log.writes


def _read_of_instance(log: AccessLog, owner: Any, name: str, text: str) -> None:
    if name == "__dict__":
        log.name_dictionary(dictionary(owner), owner)
        return
    if name in _FACTS and find(type(owner), name) is not MISSING:
        log.read(FactPlace(owner, name, text))
        return
    said = find(type(owner), name)
    if said is MISSING or is_slot(said):
        if log.read(AttributePlace(owner, name, text)) is MISSING:
            read_of_class(log, type(owner), name, text)
    elif is_data_descriptor(said):
        read_of_class(log, type(owner), name, text)
        log.look(owner)  # an array's shape
    elif has_get(said):
        _read_method(log, owner, name, text)
    elif log.read(AttributePlace(owner, name, text)) is MISSING:
        read_of_class(log, type(owner), name, text)


def _read_method(log: AccessLog, owner: Any, name: str, text: str) -> None:
    """Note that a method is read, or what hides it."""
    if find(type(owner), "__dict__") is MISSING:  # instances hold nothing
        return
    method = find(type(owner), name)
    if isinstance(method, FunctionType) and _is_bound(method, owner, name):
        log.read(MethodPlace(owner, name, text))
    else:
        log.read(AttributePlace(owner, name, text))
    read_of_class(log, type(owner), name, text)


def _is_bound(method: FunctionType, owner: Any, name: str) -> bool:
    """Tell whether an object has its class's method, and nothing of its own in that place."""
    found = object.__getattribute__(owner, name)
    return isinstance(found, MethodType) and found.__func__ is method and found.__self__ is owner


def write_attribute(log: AccessLog, owner: Any, name: str, value: Any, text: str = "") -> None:
    """Note that an attribute is about to be written; MISSING: deleted."""
    writer = find(type(owner), "__delattr__" if value is MISSING else "__setattr__")
    if isinstance(writer, FunctionType):  # whose code will be seen
        return
    write_raw_attribute(log, owner, name, value, text)


def write_raw_attribute(log: AccessLog, owner: Any, name: str, value: Any, text: str = "") -> None:
    """Note that an attribute is about to be written past what its class has for that."""
    if log.is_left_out(owner):
        return
    text = f"{text or type(owner).__name__}.{name}"
    said = find(type(owner), name)
    if said is not MISSING and is_data_descriptor(said) and not is_slot(said):
        if not _runs_code(said):
            log.refuse(f"writes {text}", owner)
        return
    place: PythonPlace
    if isinstance(owner, type):
        place = OwnClassPlace(owner, name, text)
        log.read(place)  # others may have read the class: a change is taken for one of code
    else:
        place = place_of_attribute(owner, name, text)
    log.write(place, value)


def _runs_code(descriptor: Any) -> bool:
    return isinstance(descriptor, property) or isinstance(
        find(type(descriptor), "__set__"), FunctionType
    )
