"""What a running frame holds besides its variables: its function, and the operands of what is next.

Python shows a tracer neither. They are read from the frame's memory, whose layout is that of each
version of CPython. Where a version does not say in a frame how deep its stack is, that follows from
the code. `is_readable` runs a small function whose operands are known and compares
addresses, without following any: where the layout is another one, nothing is ever read by it.
"""

from __future__ import annotations

import ctypes
import dis
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, NamedTuple

from ...core.bytecode import depths_below, stack_depths
from ...core.watching import IS_SLOW, watchers

Tracer = Callable[[FrameType, str, Any], Any]
NULL: Any = type("Null", (), {"__repr__": lambda self: "<no operand>"})()
_WORD = ctypes.sizeof(ctypes.c_void_p)
_INTERPRETER_FRAME = 3 * _WORD  # where a frame object points to what the interpreter works on
_TAGS = 3  # low bits of an operand that are no part of its address, from 3.14 on


class Layout(NamedTuple):
    """Where things lie in the interpreter's record of a frame, in bytes.

    function   its function object
    first      its variables, and behind them its stack
    held       how many variables and values there are; None where a tracer finds another number
    """

    function: int
    first: int
    held: int | None = None


_LAYOUTS = {
    (3, 11): Layout(0, 9 * _WORD, 8 * _WORD),
    (3, 12): Layout(2 * _WORD, 9 * _WORD),
    (3, 13): Layout(2 * _WORD, 9 * _WORD),
    (3, 14): Layout(2 * _WORD, 10 * _WORD),
}
_LAYOUT = _LAYOUTS.get(sys.version_info[:2], _LAYOUTS[3, 14])  # used only if it is known


def function_of(frame: FrameType) -> FunctionType | None:
    """Return the function that a frame runs; None for a class body or a module."""
    found = _object_at(_record(frame) + _LAYOUT.function)
    return found if isinstance(found, FunctionType) else None


def operand(frame: FrameType, depth: int) -> Any:
    """Return an operand of the instruction that a frame runs next, counted from the last one."""
    return _object_at(_operand_address(frame, depth))


def operands(frame: FrameType, first: int, last: int) -> list[Any]:
    """Return some operands in the order in which they were computed; see `operand`."""
    start = _operand_address(frame, first)
    return [_object_at(start + _WORD * i) for i in range(first - last + 1)]


@cache
def is_readable() -> bool:
    """Tell whether frames of this interpreter are laid out as expected."""
    known = sys.implementation.name == "cpython" and sys.version_info[:2] in _LAYOUTS
    if not known or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    return _probe() == [True, True]


def _record(frame: FrameType) -> int:
    return _word(id(frame) + _INTERPRETER_FRAME)


def _operand_address(frame: FrameType, depth: int) -> int:
    """Return where an operand lies: behind the variables, and what is below it on the stack."""
    record = _record(frame)
    return record + _LAYOUT.first + _WORD * (_count(frame, record) - 1 - depth)


def _count(frame: FrameType, record: int) -> int:
    """Return how many variables, and values on its stack, a frame holds."""
    if _LAYOUT.held is not None:
        return ctypes.c_int.from_address(record + _LAYOUT.held).value
    variables, depths = _shape(frame.f_code)
    return variables + depths[frame.f_lasti]


def _shape(code: CodeType) -> tuple[int, dict[int, int]]:
    """Return how many variables the frames of a code object hold, and how deep their stacks are."""
    found = _shapes.get(id(code))
    if found is None:
        if len(_shapes) >= _MOST_SHAPES:
            _shapes.clear()
        cells = sum(name not in code.co_varnames for name in code.co_cellvars)
        variables = code.co_nlocals + cells + len(code.co_freevars)
        found = _shapes[id(code)] = code, (variables, stack_depths(code))
    return found[1]


_shapes: dict[int, tuple[CodeType, tuple[int, dict[int, int]]]] = {}  # hashing code is slow
_MOST_SHAPES = 10_000


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _tagged_object_at(address: int) -> Any:
    pointer = _word(address) & ~_TAGS
    return ctypes.cast(pointer, ctypes.py_object).value if pointer else NULL


def _plain_object_at(address: int) -> Any:
    try:
        return ctypes.py_object.from_address(address).value
    except ValueError:  # says that there is none
        return NULL


_object_at = _tagged_object_at if sys.version_info >= (3, 14) else _plain_object_at


# -- the check -----------------------------------------------------------------------------------


def _probed(left: object, right: object) -> bool:
    return left is right


def _probe() -> list[bool]:
    """Return whether the function and both operands of a comparison were found where expected."""
    left, right = object(), object()
    found: list[bool] = []

    def look(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is not _probed.__code__:
            return None
        if event == "call":
            ask_for_instructions(frame, look, lines=False)
            found.append(_holds(_record(frame) + _LAYOUT.function, _probed))
        elif event == "opcode" and _opcode_name(frame) == "IS_OP":
            places = (_operand_address(frame, depth) for depth in (0, 1))
            found.append(all(map(_holds, places, (right, left))))
        return look

    with traced(look):
        _probed(left, right)
    return found


def _holds(address: int, value: object) -> bool:
    return _word(address) & ~_TAGS == id(value)


def _opcode_name(frame: FrameType) -> str:
    return dis.opname[frame.f_code.co_code[frame.f_lasti]]


def ask_for_instructions(frame: FrameType, tracer: Tracer, lines: bool) -> None:
    """Let a tracer be told of each instruction that a frame comes to, and of lines if wanted."""
    frame.f_trace_lines = lines
    frame.f_trace = tracer  # 3.13 and later begin with instructions only if this is set before
    frame.f_trace_opcodes = True


class traced:  # noqa: N801  (a context, named like a function)
    """Tell a function of every call, and of instructions in frames that ask for it.

    Who was told before, a debugger say, is told on: `forward` does it.
    """

    def __init__(self, function: Tracer) -> None:
        self.function = function
        self.before: Any = None
        self.tells = False  # somebody; a tracer in C would put itself in our place
        self._told: dict[FrameType, Any] = {}

    def __enter__(self) -> None:
        self.before = sys.gettrace()
        self.tells = isinstance(self.before, (FunctionType, MethodType))
        sys._getframe().f_trace_opcodes = True  # 3.12 looks at this only in settrace
        if IS_SLOW and self.before is None:
            watchers[id(self.function)] = self.function
        sys.settrace(self.function)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)
        watchers.pop(id(self.function), None)
        self._told.clear()

    def forward(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Tell who was told before; return what it wants to be told of in this frame."""
        if not self.tells:
            return None
        tell = self.before if event == "call" else self._told.get(frame)
        if tell is None or event == "opcode":
            return tell
        wanted = self._told[frame] = tell(frame, event, argument)
        if event == "return":
            del self._told[frame]
        return wanted


# -- frames that are in the middle of an instruction -----------------------------------------------


def held_below(frame: FrameType) -> list[Any] | None:
    """Return what is on the stack of a frame below the operands of the instruction that it runs.

    None for an instruction of which that is not known.
    """
    count = _below(frame.f_code).get(frame.f_lasti) if is_readable() else None
    if count is None:
        return None
    variables, _ = _shape(frame.f_code)
    first = _record(frame) + _LAYOUT.first + _WORD * variables
    return [_object_at(first + _WORD * i) for i in range(count)]


@cache
def _below(code: CodeType) -> dict[int, int]:
    return depths_below(code)
