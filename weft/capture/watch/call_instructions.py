"""What the instructions do that call something, enter a context or import a module."""

from __future__ import annotations

import sys
import types
from types import CodeType, FrameType
from typing import Any

from ...core.bytecode import Step, steps
from .attributes import read_attribute
from .cached import CachedCall, CachedCallPlace, is_cached
from .calls import note_call
from .frames import NULL, operand, operands
from .log import AccessLog
from .observed import ObservedCall
from .values import MISSING, find


class CallFollower:
    """Follows calls, and writes what they touch into a log."""

    def __init__(self, log: AccessLog) -> None:
        self.log = log
        self.is_left_out = log.is_left_out
        self._awaited: list[tuple[FrameType, int, ObservedCall]] = []

    def call(self, frame: FrameType, step: Step) -> None:
        """Note what a call does that runs no Python code."""
        names = step.keywords
        skipped = 1 if step.name == "CALL_KW" else 0
        if skipped:
            names = operand(frame, 0)
        first, second, *args = operands(frame, step.arg + 1 + skipped, skipped)
        function, args = _called(first, second, args)
        count = len(args) - len(names)
        kwargs = dict(zip(names, args[count:], strict=True))
        self._note(ObservedCall(function, tuple(args[:count]), kwargs), frame)

    def call_spread(self, frame: FrameType, step: Step) -> None:
        """Note what `f(*args, **kwargs)` does."""
        later = sys.version_info >= (3, 14)
        has_kwargs = later or step.arg & 1
        kwargs = operand(frame, 0) if has_kwargs else NULL
        args = operand(frame, 1 if has_kwargs else 0)
        function = operand(frame, 3 if later else 2 if has_kwargs else 1)
        self._use(args, kwargs)
        given = tuple(args) if type(args) in (tuple, list) else (args,)
        named = dict(kwargs) if isinstance(kwargs, dict) else {}
        self._note(ObservedCall(function, given, named), frame)

    def enter_context(self, frame: FrameType, step: Step) -> None:
        """Note what `with` calls."""
        manager = operand(frame, 0)
        if self.is_left_out(manager):
            return
        for name in ("__enter__", "__exit__"):
            method = find(type(manager), name)
            if method is not MISSING:
                self._note(ObservedCall(method, (manager,), {}), frame)

    def _note(self, call: ObservedCall, frame: FrameType) -> None:
        bare = note_call(self.log, call)
        if is_cached(bare.function):
            self._awaited.append((frame, frame.f_lasti, bare))

    def note_awaited(self, frame: FrameType) -> None:
        """Note what a function with a cache gave that a frame has called, if it did."""
        if self._awaited and self._awaited[-1][0] is frame:
            self._note_result(frame)

    def _note_result(self, frame: FrameType) -> None:
        """Note what a function with a cache gave; nothing if it raised."""
        _, offset, call = self._awaited.pop()
        if following(frame.f_code, offset) != frame.f_lasti:
            return
        if any(map(self.is_left_out, call.given)):
            self.log.refuse(f"calls {call.function.__name__}, which has a cache, with a tensor")
            return
        key = CachedCall(*call)
        place = CachedCallPlace(call.function, key, f"{call.function.__name__}(...)")
        self.log.note(place, operand(frame, 0))

    def is_missed(self, frame: FrameType) -> bool:
        """Tell whether a frame begins because a function with a cache has no result to give."""
        if not self._awaited or self._awaited[-1][0] is not frame.f_back:
            return False
        called = self._awaited[-1][2].function
        return called.__wrapped__.__code__ is frame.f_code

    def import_module(self, frame: FrameType, step: Step) -> None:
        """Note that a module is imported: harmless if that is done."""
        name, level = step.argument, operand(frame, 1)
        package = frame.f_globals.get("__package__") or ""
        if level:
            parts = package.split(".")
            package = ".".join(parts[: len(parts) - level + 1])
            name = f"{package}.{name}" if name else package
        if name not in sys.modules:
            self.log.refuse(f"imports {name} for the first time")

    def import_name(self, frame: FrameType, step: Step) -> None:
        """Note that `from module import name` reads an attribute."""
        read_attribute(self.log, operand(frame, 0), step.argument)

    def _use(self, *values: Any) -> None:
        for value in values:
            if value is NULL or self.is_left_out(value):
                continue
            if type(value) is types.MappingProxyType:
                self.log.refuse("reads the dictionary of a class")
            else:
                self.log.look(value)


def _called(first: Any, second: Any, args: list[Any]) -> tuple[Any, list[Any]]:
    """Return what is called, and all arguments: the two places before them depend on versions."""
    if sys.version_info >= (3, 13):
        return first, args if second is NULL else [second, *args]
    return (second, args) if first is NULL else (first, [second, *args])


def following(code: CodeType, offset: int) -> int:
    """Return the offset of the instruction behind another one, with its prefixes."""
    return min(at for at in steps(code) if at > offset)
