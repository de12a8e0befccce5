"""What calls of functions that are not written in Python do to what they are given."""

from __future__ import annotations

import functools
import types
from typing import Any

from .cached import is_cached
from .call_rules import look_at_all, note_nothing, read_item
from .call_tables import READERS_OF_ATTRIBUTES, rule_of
from .lengths import LEN
from .log import AccessLog
from .observed import ObservedCall, name_of, unwrapped
from .values import FUNCTIONS, MUTABLE, container_kind, is_iterator


def note_call(log: AccessLog, call: ObservedCall) -> ObservedCall:
    """Note what a call is about to do, unless it runs code that will be seen; return it bare."""
    if log.lengths is not None and log.lengths.is_counting(call.function):
        call = call._replace(function=LEN)  # the name `len` is not that now
    call = unwrapped(call)
    if not isinstance(call.function, types.FunctionType) and not log.is_left_out(call.function):
        _note_foreign_call(log, call)
    return call


def _note_foreign_call(log: AccessLog, call: ObservedCall) -> None:
    """Note what a call does whose code is not seen."""
    function = call.function
    rule = rule_of(call)
    if rule is None:
        log.refuse(f"calls {name_of(function)}")
        return
    for value in call.given:
        _note_use(log, value)
    log.compare_all(*call.given)
    rule(log, call)


def _note_use(log: AccessLog, value: Any) -> None:
    """Note that an argument may be called or used up."""
    if log.is_left_out(value):
        return
    if isinstance(value, (*FUNCTIONS[1:], types.MethodType, functools.partial)):
        _note_calls_to_come(log, unwrapped(ObservedCall(value, (), {})))
    elif type(value) in READERS_OF_ATTRIBUTES:
        log.refuse(f"hands a {type(value).__name__} to a function that may call it")
    elif is_cached(value):
        log.refuse(f"hands {name_of(value)}, which has a cache, to a function that may call it")
    elif is_iterator(value):
        log.go_on(value)


def _note_calls_to_come(log: AccessLog, call: ObservedCall) -> None:
    """Note that a function is handed to one that may call it, on what cannot be known."""
    if isinstance(call.function, types.FunctionType) or log.is_left_out(call.function):
        return
    rule = rule_of(call)
    if rule is not None and rule in (look_at_all, note_nothing, read_item):
        look_at_all(log, call)
    elif rule is not None and call.args and container_kind(call.args[0]) in MUTABLE:
        log.change(call.args[0])
    else:
        log.refuse(f"hands {name_of(call.function)} to a function that may call it")
