"""What functions in C do to what they are given: rules, which call_tables.py gives to them."""

from __future__ import annotations

import itertools
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

from .attributes import (
    read_attribute,
    read_class,
    read_raw_attribute,
    write_attribute,
    write_raw_attribute,
)
from .log import AccessLog
from .observed import ObservedCall
from .places import ItemPlace, dictionary, place_of_attribute
from .values import MAPPINGS, MISSING, find, is_atom

Rule = Callable[[AccessLog, ObservedCall], None]


def note_nothing(log: AccessLog, call: ObservedCall) -> None:
    """Note nothing."""


def look_at_all(log: AccessLog, call: ObservedCall) -> None:
    """Note that all of the arguments may be read."""
    for value in call.given:
        log.look(value)


def measure_all(log: AccessLog, call: ObservedCall) -> None:
    """Note that lengths of the arguments are read."""
    for value in call.given:
        log.count(value)


def change_first(log: AccessLog, call: ObservedCall) -> None:
    """Note that the first argument changes in a way that depends on all of them."""
    for value in call.given[1:]:
        log.look(value)
    log.change(call.args[0])


def change_all(log: AccessLog, call: ObservedCall) -> None:
    """Note that all arguments may change."""
    for value in call.given:
        log.change(value)


def operate(log: AccessLog, call: ObservedCall) -> None:
    """Note a method that adds or removes one element, whatever else is there."""
    if len(call.args) != 2 or call.kwargs:
        return
    log.operate(call.args[0], call.function.__name__, call.args[1])


def operate_on_each(log: AccessLog, call: ObservedCall) -> None:
    """Note a method that adds all elements of a list or tuple."""
    if len(call.args) == 2 and type(call.args[1]) in (list, tuple) and not call.kwargs:
        log.look(call.args[1])
        if call.args[1] is not call.args[0]:
            log.operate(call.args[0], call.function.__name__, *call.args[1])
            return
    change_first(log, call)


def read_item(log: AccessLog, call: ObservedCall) -> None:
    """Note that an item of a dictionary is read."""
    item = item_place(log, call.args[0], call.args[1]) if len(call.args) > 1 else None
    if item is None:
        look_at_all(log, call)
    else:
        log.read(item)


def set_item(log: AccessLog, call: ObservedCall) -> None:
    """Note that an item of a dictionary is written."""
    item = item_place(log, call.args[0], call.args[1]) if len(call.args) == 3 else None
    if item is None:
        change_first(log, call)
    else:
        log.write(item, call.args[2])


def read_and_write_item(log: AccessLog, call: ObservedCall) -> None:
    """Note `pop` and `setdefault` of a dictionary."""
    item = item_place(log, call.args[0], call.args[1]) if len(call.args) > 1 else None
    if item is None:
        change_first(log, call)
        return
    present = log.read(item) is not MISSING
    if present == (call.function.__name__ == "pop"):
        log.write(item, MISSING if present else None)


def update_items(log: AccessLog, call: ObservedCall) -> None:
    """Note `update` of a dictionary: a write of every key."""
    holder, *others = call.args
    if any(type(other) not in MAPPINGS for other in others):
        change_first(log, call)
        return
    for other in others:
        log.look(other)
    for given in itertools.chain(*others, call.kwargs):
        key = _plain_key(log, holder, given) if log.recorded(given) else given
        log.write(ItemPlace(holder, key, f"[{key!r:.40}]" if is_atom(key) else "an item"))


def read_named(log: AccessLog, call: ObservedCall) -> None:
    """Note `getattr` and `hasattr`."""
    if len(call.args) > 1 and isinstance(call.args[1], str):
        read_attribute(log, call.args[0], call.args[1])


def read_named_raw(log: AccessLog, call: ObservedCall) -> None:
    """Note `object.__getattribute__`."""
    if len(call.args) == 2 and isinstance(call.args[1], str):
        read_raw_attribute(log, call.args[0], call.args[1])


def follow_getter(log: AccessLog, call: ObservedCall) -> None:
    """Note what an attrgetter reads, step by step."""
    for path in call.function.__reduce__()[1]:
        value = call.args[0]
        for name in path.split("."):
            read_attribute(log, value, name)
            value = place_of_attribute(value, name, name).get()


def read_everything(log: AccessLog, call: ObservedCall) -> None:
    """Note that all attributes of an object are read."""
    log.look_at_attributes(call.args[0])


def ask_for_class(log: AccessLog, call: ObservedCall) -> None:
    """Note `isinstance`, and `type` of one argument."""
    if not call.args:
        return
    note_class(log, call.args[0])
    if not log.in_library:
        refuse_class(log, call.args[0], exactly=call.function is type)
    read_class(log, call.args[0])


def note_class(log: AccessLog, value: Any) -> None:
    """Note that the class is asked of something opaque: sizes, of whom the caller knows."""
    if log.is_left_out(value) and not hasattr(value, "weak"):
        log.use_opaque(value, "__class__")


def refuse_class(log: AccessLog, value: Any, *, exactly: bool) -> None:
    """Refuse to tell the class of what stands for a number, or for a tensor: `exactly` that."""
    if not log.is_left_out(value):
        return
    if getattr(value, "weak", False) is True:
        log.refuse("asks for the class of a number that changes from call to call")
    elif exactly and getattr(value, "symbolic", False) is True:
        log.refuse("asks for the class of a tensor that it made; use isinstance")


def identify(log: AccessLog, call: ObservedCall) -> None:
    """Note `id`: of what is new in each call it is another number in each."""
    for value in () if log.in_library else call.given:  # which notes what it has met by ids
        if log.recorded(value):
            log.refuse("asks for the id of a tensor or number of the call")
        log.refuse_if_new("asks for the id of an object that it made", value)


def hash_value(log: AccessLog, call: ObservedCall) -> None:
    """Note `hash`, which follows from the id unless a class says otherwise."""
    if call.args and find(type(call.args[0]), "__hash__") is object.__hash__:
        identify(log, call)
    else:
        look_at_all(log, call)


def write_named(log: AccessLog, call: ObservedCall) -> None:
    """Note `setattr`."""
    if len(call.args) == 3:
        write_attribute(log, *call.args)


def delete_named(log: AccessLog, call: ObservedCall) -> None:
    """Note `delattr`."""
    if len(call.args) == 2:
        write_attribute(log, *call.args, MISSING)


def write_named_raw(log: AccessLog, call: ObservedCall) -> None:
    """Note `object.__setattr__`."""
    if len(call.args) == 3:
        write_raw_attribute(log, *call.args)


def delete_named_raw(log: AccessLog, call: ObservedCall) -> None:
    """Note `object.__delattr__`."""
    if len(call.args) == 2:
        write_raw_attribute(log, *call.args, MISSING)


def name_variables(log: AccessLog, call: ObservedCall) -> None:
    """Note `vars`: whose attributes a dictionary holds."""
    if not call.args or isinstance(call.args[0], type) or log.is_left_out(call.args[0]):
        return
    held = dictionary(call.args[0])
    if isinstance(call.args[0], types.ModuleType):
        log.ages.hold(call.args[0], held)
    else:
        log.name_dictionary(held, call.args[0])


def import_named(log: AccessLog, call: ObservedCall) -> None:
    """Note `__import__`: harmless if that is done."""
    if call.args and call.args[0] not in sys.modules:
        log.refuse(f"imports {call.args[0]} for the first time")


def use_lock(log: AccessLog, call: ObservedCall) -> None:
    """Refuse locks, but those of libraries."""
    if not log.in_library:  # which guards its own caches by it
        log.refuse("takes or leaves a lock")


def list_names(log: AccessLog, call: ObservedCall) -> None:
    """Note `dir`."""
    if call.args:
        log.look_at_attributes(call.args[0])


def item_place(log: AccessLog, owner: Any, key: Any) -> ItemPlace | None:
    """Return the place of an item of a dictionary; None if that cannot be told."""
    if log.recorded(key):
        key = _plain_key(log, owner, key)
    try:
        hash(key)
    except TypeError:
        return None
    text = f"[{key!r:.40}]" if isinstance(key, str) else "an item"
    return ItemPlace(owner, key, text) if _is_usual_dictionary(owner) else None


def _plain_key(log: AccessLog, owner: Any, key: Any) -> Any:
    """Return a key that stands for a number as the number that it is; refuse tensors."""
    is_number = getattr(key, "weak", None)
    if is_number is False:
        log.refuse("uses a tensor of the call as a key of a dictionary", owner)
    return operator.index(key) if is_number is None else key.plain() if is_number else key


def _is_usual_dictionary(owner: Any) -> bool:
    return isinstance(owner, dict) and find(type(owner), "__getitem__") is dict.__getitem__
