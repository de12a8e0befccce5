"""Which frames of a call are followed, and what is noted when one begins."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from .attributes import read_class
from .frames import ask_for_instructions, function_of, traced
from .instructions import Follower
from .log import UNSCHEDULED, AccessLog
from .places import FactPlace, OwnClassPlace
from .trust import Owner, is_import, is_library_class, owner_of
from .values import MISSING, container_kind, is_atom

_HERE = os.path.dirname(__file__) + os.sep
_not_followed: dict[int, CodeType] = {}  # the code of Weft that has run; its hash would be slow
_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class FollowedFrames:
    """Sees frames begin, and has their instructions followed."""

    def __init__(self, log: AccessLog) -> None:
        self.log = log
        self.trace = traced(self._enter_frame)
        self._follower = Follower(log)
        self._following = self._follow  # one object, which is returned for each instruction
        self._has_begun = False
        self._importing: FrameType | None = None

    def _enter_frame(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Decide whether a frame is followed, when it begins or goes on."""
        # Nearly all frames, thousands of them, are of code that is not followed, called by such.
        if id(frame.f_code) in _not_followed and not self.trace.tells:
            back = frame.f_back
            if back is not None and back.f_trace is None:
                return None
        wanted = self.trace.forward(frame, event, argument)
        if self._importing is not None:  # a library that loads late: no part of the program
            return wanted
        if is_import(frame.f_code):
            self._importing = frame
            frame.f_trace_lines = False
            return self._end_import
        if self._follower.is_missed(frame):
            self.log.refuse(f"{frame.f_code.co_name} has not kept this result yet", once=True)
        if not self._is_followed(frame):
            return wanted
        ask_for_instructions(frame, self._following, lines=wanted is not None)
        self._has_begun = True
        self.log.frame = frame
        self._guarded(self._enter_function, frame)
        return self._follow

    def _is_followed(self, frame: FrameType) -> bool:
        """Tell whether a frame is followed; note what one is given that is not."""
        owner = owner_of(frame.f_code)
        called_by_followed = frame.f_back is not None and frame.f_back.f_trace == self._follow
        if owner is Owner.INTERNAL and called_by_followed:
            self._guarded(self._hand_over, frame)
        if owner is Owner.STANDARD:
            return called_by_followed or not self._has_begun
        if owner is Owner.INTERNAL and not is_import(frame.f_code):
            _not_followed[id(frame.f_code)] = frame.f_code
        return owner is not Owner.INTERNAL

    def _follow(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.log.frame = frame
            if not self._follower.is_told_nothing(frame):  # as by most instructions
                self._guarded(self._follower.follow, frame)
            return self._following
        self.trace.forward(frame, event, argument)
        if event == "return" and frame.f_code.co_flags & _SUSPENDED:
            frame.f_trace = None  # set again when it goes on; if it never does, it would keep us:
            return None  # the garbage collector does not see what the frame of a generator traces
        return self._follow

    def _end_import(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "return":
            self._importing = None
        self.trace.forward(frame, event, argument)
        return self._end_import

    def _guarded(self, action: Callable[[FrameType], None], frame: FrameType) -> None:
        """Do something without ever raising into the program that is watched."""
        try:
            action(frame)
        except Exception as error:
            self.log.refuse(f"could not be followed: {type(error).__name__}: {error}")

    def _hand_over(self, frame: FrameType) -> None:
        """Note what code that is not followed is given: it may look at all of it."""
        code = frame.f_code
        if code.co_filename.startswith(_HERE):
            return
        count = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames[: count + bool(code.co_flags & 4) + bool(code.co_flags & 8)]
        for name in names:
            value = frame.f_locals.get(name, MISSING)
            if is_atom(value):
                continue
            if self.log.is_left_out(value):
                if code.co_name not in UNSCHEDULED:
                    self.log.refuse_closed(value, name)
                self.log.handed(value)
            else:
                self._look_inside(value)

    def _look_inside(self, value: Any) -> None:
        """Note that code which is not followed may read all of an object."""
        self.log.look(value)
        kinds = type(value).__mro__[:-1]
        if container_kind(value) is None and not any(map(is_library_class, kinds)):
            self.log.look_at_attributes(value)

    def _enter_function(self, frame: FrameType) -> None:
        """Note that the code and the defaults of a function are read."""
        function = function_of(frame)
        if function is None:
            return
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.log.ages.see(function)
            self.log.ages.hold(function, value)
        if owner_of(frame.f_code) is Owner.USER:
            self._read_function(function, frame)

    def _read_function(self, function: FunctionType, frame: FrameType) -> None:
        name = function.__name__
        self.log.read(FactPlace(function, "__code__", f"the code of {name}"))
        for part in ("__defaults__", "__kwdefaults__"):
            if getattr(function, part) is not None:
                self.log.read(FactPlace(function, part, f"the defaults of {name}"))
        if frame.f_code.co_argcount:
            self._read_method(function, frame)

    def _read_method(self, function: FunctionType, frame: FrameType) -> None:
        """Note which class a method was found in."""
        first = frame.f_locals.get(frame.f_code.co_varnames[0], MISSING)
        kind = first if isinstance(first, type) else type(first)
        for base in kind.__mro__:
            if is_library_class(base):
                continue
            for name in {function.__name__, frame.f_code.co_name}:
                if _function_in(base.__dict__.get(name)) is function:
                    self.log.read(OwnClassPlace(base, name, f"{base.__name__}.{name}"))
                    if name.startswith("__"):  # which operators find by the class alone
                        read_class(self.log, first)


def _function_in(held: Any) -> Any:
    """Return the function of what a class says of an attribute."""
    if isinstance(held, property):
        return held.fget
    return (
        getattr(held, "__func__", held) if isinstance(held, (staticmethod, classmethod)) else held
    )
