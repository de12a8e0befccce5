"""What each instruction of a program reads and writes, by the operands that it finds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from ...core.bytecode import Step, steps
from .attributes import read_after, read_attribute, write_attribute
from .call_instructions import CallFollower
from .call_rules import item_place, note_class, refuse_class
from .calls import note_call
from .frames import NULL, function_of, operand
from .log import WRITTEN, AccessLog
from .observed import ObservedCall
from .places import AttributePlace, CellPlace, ElementPlace, ItemPlace, PythonPlace
from .trust import is_library
from .values import (
    FROZEN,
    MISSING,
    container_kind,
    find,
    holds_in_c,
    is_atom,
    is_iterator,
    is_named,
)

Handler = Callable[["Follower", FrameType, Step], None]
Plan = dict[int, tuple[Handler, Step]]
_plans: dict[int, tuple[CodeType, Plan]] = {}  # by id: hashing a code object is slow
_MOST_PLANS = 10_000


class Follower(CallFollower):
    """Follows a program's instructions, and writes what they touch into a log."""

    def __init__(self, log: AccessLog) -> None:
        super().__init__(log)
        self._done: tuple[FrameType, int] | None = None

    def is_told_nothing(self, frame: FrameType) -> bool:
        """Tell, quickly, whether the instruction that a frame comes to touches nothing."""
        known = _plans.get(id(frame.f_code))
        return known is not None and frame.f_lasti not in known[1] and not self._awaited

    def follow(self, frame: FrameType) -> None:
        """Note what the instruction does that a frame comes to."""
        self.note_awaited(frame)
        found = plan(frame.f_code).get(frame.f_lasti)
        if found is None:
            return
        handler, step = found
        if self._done == (frame, step.offset):  # its prefix was told of before
            self._done = None
            return
        self._done = (frame, step.offset) if frame.f_lasti != step.offset else None
        handler(self, frame, step)

    # -- variables ---------------------------------------------------------------------------------

    def read_global(self, frame: FrameType, step: Step) -> None:
        """Note that a global variable or a builtin is read."""
        name, variables = step.argument, frame.f_globals
        if step.name != "LOAD_GLOBAL" and self._has_local(frame, name):
            return
        value = variables.get(name, MISSING)
        if is_library(variables) and self._is_fixed(value):
            self.log.ages.hold(variables, value)
        else:
            self.log.read(ItemPlace(variables, name, name))

    def _has_local(self, frame: FrameType, name: str) -> bool:
        """Note that a variable of a class body, or of `exec`, is looked for."""
        held = frame.f_locals
        if held is frame.f_globals or type(held) is not dict:
            return held is not frame.f_globals and name in held
        return self.log.read(ItemPlace(held, name, name)) is not MISSING

    def _is_fixed(self, value: Any) -> bool:
        return value is MISSING or is_named(value) or is_atom(value) or self.is_left_out(value)

    def write_global(self, frame: FrameType, step: Step) -> None:
        """Note that a global variable is written or deleted, or one of a class body."""
        held = frame.f_locals if step.name.endswith("_NAME") else frame.f_globals
        value = MISSING if step.name.startswith("DELETE") else None
        if type(held) is dict:
            self.log.write(ItemPlace(held, step.argument, step.argument), value)

    def read_cell(self, frame: FrameType, step: Step) -> None:
        """Note that a variable of an enclosing function is read."""
        place = self._cell(frame, step.argument)
        if place is not None:
            self.log.read(place)

    def write_cell(self, frame: FrameType, step: Step) -> None:
        """Note that a variable of an enclosing function is written or deleted."""
        place = self._cell(frame, step.argument)
        if place is not None:
            self.log.write(place, MISSING if step.name.startswith("DELETE") else None)

    def _cell(self, frame: FrameType, name: str) -> CellPlace | None:
        names = frame.f_code.co_freevars
        if name not in names:
            return None
        function = function_of(frame)
        closure = None if function is None else function.__closure__
        if closure is None:
            self.log.refuse(f"reads {name!r} of a function that cannot be found")
            return None
        self.log.ages.see(function)
        cell = closure[names.index(name)]
        return CellPlace(cell, name)

    # -- attributes --------------------------------------------------------------------------------

    def read_attribute(self, frame: FrameType, step: Step) -> None:
        """Note that an attribute is read."""
        owner = operand(frame, 0)
        if self.is_left_out(owner):
            self.log.use_opaque(owner, step.argument)
        else:
            read_attribute(self.log, owner, step.argument, name_in(frame, owner))

    def write_attribute(self, frame: FrameType, step: Step) -> None:
        """Note that an attribute is written."""
        owner, value = operand(frame, 0), operand(frame, 1)
        if self.is_left_out(owner):
            self.log.use_opaque(owner, WRITTEN)
        else:
            write_attribute(self.log, owner, step.argument, value, name_in(frame, owner))

    def delete_attribute(self, frame: FrameType, step: Step) -> None:
        """Note that an attribute is deleted."""
        owner = operand(frame, 0)
        if self.is_left_out(owner):
            self.log.use_opaque(owner, WRITTEN)
        else:
            write_attribute(self.log, owner, step.argument, MISSING, name_in(frame, owner))

    def read_through_super(self, frame: FrameType, step: Step) -> None:
        """Note that an attribute is read by `super().name`."""
        owner, kind = operand(frame, 0), operand(frame, 1)
        if not self.is_left_out(owner) and isinstance(kind, type):
            read_after(self.log, kind, owner, step.argument)

    # -- items -------------------------------------------------------------------------------------

    def read_item(self, frame: FrameType, step: Step) -> None:
        """Note that an item is read."""
        key, owner = operand(frame, 0), operand(frame, 1)
        place = self._item(owner, key, frame)
        if place is None:
            self._use(owner, key)
        elif self.log.read(place) is MISSING and isinstance(owner, defaultdict):
            self.log.read(AttributePlace(owner, "default_factory", "default_factory"))
            self.log.write(place)  # reading makes it

    def find_item(self, frame: FrameType, step: Step) -> None:
        """Note that a program asks whether something is in a container."""
        owner, key = operand(frame, 0), operand(frame, 1)
        self.log.compare_all(owner, key)
        place = self._item(owner, key, frame) if issubclass(type(owner), dict) else None
        if place is not None:
            self.log.read(place)
        else:
            self._use(owner, key)

    def write_item(self, frame: FrameType, step: Step) -> None:
        """Note that an item is written."""
        key, owner = operand(frame, 0), operand(frame, 1)
        self._write_item(owner, key, None, frame)

    def delete_item(self, frame: FrameType, step: Step) -> None:
        """Note that an item is deleted."""
        key, owner = operand(frame, 0), operand(frame, 1)
        self._write_item(owner, key, MISSING, frame)

    def _write_item(self, owner: Any, key: Any, value: Any, frame: FrameType) -> None:
        place = self._item(owner, key, frame)
        if place is not None and not (value is MISSING and issubclass(type(owner), list)):
            self.log.write(place, value)
        else:
            self._change(owner)

    def _item(self, owner: Any, key: Any, frame: FrameType) -> PythonPlace | None:
        """Return the place of an item; None if it is none of a list or dictionary."""
        if self.is_left_out(owner):
            return None
        if _is_usual_list(owner) and type(key) is int and -len(owner) <= key < len(owner):
            text = f"{name_in(frame, owner) or 'a list'}[{key}]"
            return ElementPlace(owner, key % len(owner), text)
        found = item_place(self.log, owner, key) if issubclass(type(owner), dict) else None
        if found is not None:
            shown = repr(key)[:40] if is_atom(key) else f"a {type(key).__name__}"
            found.text = f"{name_in(frame, owner) or 'a dictionary'}[{shown}]"
        return found

    def read_slice(self, frame: FrameType, step: Step) -> None:
        """Note that a part of a container is read."""
        self._use(operand(frame, 2))

    def write_slice(self, frame: FrameType, step: Step) -> None:
        """Note that a part of a container is written."""
        self._use(operand(frame, 3))
        self._change(operand(frame, 2))

    # -- operators ---------------------------------------------------------------------------------

    def use_last(self, frame: FrameType, step: Step) -> None:
        """Note that all of an operand may be read."""
        self._use(operand(frame, 0))

    def measure(self, frame: FrameType, step: Step) -> None:
        """Note that a program asks whether an operand is empty."""
        value = operand(frame, 0)
        if value is not NULL and type(value) is not bool and not self.is_left_out(value):
            self.log.measure(value)

    def use_two(self, frame: FrameType, step: Step) -> None:
        """Note that all of two operands may be read."""
        self._use(operand(frame, 0), operand(frame, 1))

    def match_class(self, frame: FrameType, step: Step) -> None:
        """Note that a pattern reads attributes."""
        names, kind, subject = (operand(frame, depth) for depth in range(3))
        note_class(self.log, subject)
        refuse_class(self.log, subject, exactly=False)
        if not self.is_left_out(subject):
            for name in (*names, *getattr(kind, "__match_args__", ())[: step.arg]):
                read_attribute(self.log, subject, name, name_in(frame, subject))

    def binary(self, frame: FrameType, step: Step) -> None:
        """Note what an operator with two operands reads, and writes if it works in place."""
        if step.symbol == "[]":
            self.read_item(frame, step)
            return
        right, left = operand(frame, 0), operand(frame, 1)
        if not step.symbol.endswith("="):
            self._use(left, right)
        elif step.symbol == "+=" and type(left) is list and type(right) in (list, tuple):
            note_call(self.log, ObservedCall(list.extend, (left, right), {}))
        elif container_kind(left) in FROZEN:
            self._use(left, right)
        else:
            self._use(right)
            self._change(left)

    def go_on(self, frame: FrameType, step: Step) -> None:
        """Note that an iterator is used: one that was begun before cannot be wound back."""
        iterator = operand(frame, 1 if step.name == "SEND" else 0)
        if iterator is not NULL and is_iterator(iterator) and not self.is_left_out(iterator):
            self.log.go_on(iterator)

    def compare(self, frame: FrameType, step: Step) -> None:
        """Note that two objects are told apart."""
        self.log.compare(operand(frame, 0), operand(frame, 1))

    def begin_iteration(self, frame: FrameType, step: Step) -> None:
        """Note that a container is gone through; an iterator is not, until it is asked."""
        value = operand(frame, 0)
        if not self.is_left_out(value) and not is_iterator(value):
            self._use(value)

    def _change(self, value: Any) -> None:
        kind = container_kind(value)
        if self.is_left_out(value) or is_atom(value) or kind in FROZEN:
            return
        if kind is not None:
            self.log.change(value)
        elif holds_in_c(value):
            self.log.refuse(f"writes into a {type(value).__name__}", value)

    # -- others -----------------------------------------------------------------------------------

    def refuse(self, frame: FrameType, step: Step) -> None:
        """Refuse an instruction."""
        self.log.refuse(f"runs {step.name.lower()}")


def _is_usual_list(owner: Any) -> bool:
    return issubclass(type(owner), list) and find(type(owner), "__getitem__") is list.__getitem__


def name_in(frame: FrameType, value: Any) -> str:
    """Return what a frame calls an object: the name of a variable, or nothing."""
    for name, held in frame.f_locals.items():
        if held is value:
            return str(name)
    return ""


_CONDITIONS = ("POP_JUMP", "JUMP_IF", "TO_BOOL", "UNARY_NOT")
_HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("LOAD_GLOBAL", "LOAD_NAME"), Follower.read_global),
    **dict.fromkeys(("STORE_GLOBAL", "STORE_NAME"), Follower.write_global),
    **dict.fromkeys(("DELETE_GLOBAL", "DELETE_NAME"), Follower.write_global),
    **dict.fromkeys(("LOAD_DEREF", "LOAD_CLASSDEREF"), Follower.read_cell),
    "LOAD_FROM_DICT_OR_DEREF": Follower.read_cell,
    "LOAD_FROM_DICT_OR_GLOBALS": Follower.read_global,
    **dict.fromkeys(("STORE_DEREF", "DELETE_DEREF"), Follower.write_cell),
    **dict.fromkeys(("LOAD_ATTR", "LOAD_METHOD"), Follower.read_attribute),
    "STORE_ATTR": Follower.write_attribute,
    "DELETE_ATTR": Follower.delete_attribute,
    "BINARY_SUBSCR": Follower.read_item,
    "STORE_SUBSCR": Follower.write_item,
    "DELETE_SUBSCR": Follower.delete_item,
    "BINARY_SLICE": Follower.read_slice,
    "STORE_SLICE": Follower.write_slice,
    "CONTAINS_OP": Follower.find_item,
    "BINARY_OP": Follower.binary,
    "COMPARE_OP": Follower.use_two,
    "IS_OP": Follower.compare,
    **dict.fromkeys(("UNPACK_SEQUENCE", "UNPACK_EX"), Follower.use_last),
    **dict.fromkeys(("FOR_ITER", "SEND", "GET_YIELD_FROM_ITER"), Follower.go_on),
    "GET_ITER": Follower.begin_iteration,
    **dict.fromkeys(("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE"), Follower.use_last),
    "DICT_MERGE": Follower.use_last,
    **dict.fromkeys(("UNARY_NEGATIVE", "UNARY_INVERT", "UNARY_POSITIVE"), Follower.use_last),
    **dict.fromkeys(("FORMAT_VALUE", "FORMAT_WITH_SPEC"), Follower.use_two),
    **dict.fromkeys(("FORMAT_SIMPLE", "CONVERT_VALUE", "MATCH_MAPPING"), Follower.use_last),
    "MATCH_SEQUENCE": Follower.use_last,
    "MATCH_KEYS": Follower.use_two,
    "MATCH_CLASS": Follower.match_class,
    "LOAD_SUPER_ATTR": Follower.read_through_super,
    **dict.fromkeys(("CALL", "CALL_KW"), Follower.call),
    "CALL_FUNCTION_EX": Follower.call_spread,
    "BEFORE_WITH": Follower.enter_context,
    "LOAD_SPECIAL": Follower.enter_context,
    "IMPORT_NAME": Follower.import_module,
    "IMPORT_FROM": Follower.import_name,
    **dict.fromkeys(
        ("GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "BEFORE_ASYNC_WITH"), Follower.refuse
    ),
}


def plan(code: CodeType) -> Plan:
    """Return what to do at which offset of a code object."""
    found = _plans.get(id(code))
    if found is None:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        told = ((offset, _handler(step), step) for offset, step in steps(code).items())
        found = code, {offset: (handler, step) for offset, handler, step in told if handler}
        _plans[id(code)] = found
    return found[1]


def _handler(step: Step) -> Handler | None:
    if step.name.startswith(_CONDITIONS) and "NONE" not in step.name:
        return Follower.measure
    return _HANDLERS.get(step.name)
