"""Where Python stands in a function that is recorded, and what it holds there.

What a function does next follows from where it is, its variables, and what these hold. Two states
of one shape differ only in the values that recorded tensors stand for: from both, Python goes on
alike, and does with the values of the one what it does with those of the other. A loop comes back
to a state of the same shape (loops.py).

Seen are frames of Python. C code that calls back, such as `sorted`, has a state that is not: only
the truth of a value that the function's own instructions ask for has a state here.
"""

from __future__ import annotations

import dis
import operator
from collections import deque
from collections.abc import Iterable
from functools import cache
from types import CodeType, FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.effects import CHAIN
from ..core.rng import Generator
from ..graph.node import Value
from ..graph.special import SOURCES
from ..graph.symbol import Symbol
from .watch.frames import held_below
from .watch.values import is_atom, is_iterator

if TYPE_CHECKING:
    from .recorder import Recorder

MOST_PARTS = 4_096  # of a state: variables, elements of containers and the like
_READING = (
    *("capture/recorder.py", "capture/recorded.py", "capture/python_state.py"),
    "core/tensor.py",
)
_CALLING = ("nn/hooks.py", "nn/module.py")  # which call a method of the user's once
_COUNTED: tuple[type, ...] = (type(iter([])), type(iter(())), type(iter(range(0))))


class PythonState(NamedTuple):
    """A state of Python's.

    shape        all of it but for what recorded values are
    leaves       those values, in the order of the shape
    generators   which leaves are states of random generators
    kept         objects that the shape speaks of by their ids
    """

    shape: tuple[Any, ...]
    leaves: list[Value]
    generators: list[int]
    kept: list[Any]


class _UnseenError(Exception):
    """A part of the state cannot be seen."""


def python_state(recorder: Recorder, frame: FrameType | None) -> PythonState | None:
    """Return the state in which a function asks for a truth; None if not all of it is seen."""
    reader = _Reader(recorder)
    try:
        for one in _frames(frame, recorder.around):
            reader.read_frame(one)
        reader.read_recorder()
    except _UnseenError:
        return None
    return PythonState(tuple(reader.shape), reader.leaves, reader.generators, reader.kept)


def _frames(frame: FrameType | None, around: FrameType | None) -> list[FrameType]:
    """Return the frames from the one that asks out to the function that is recorded."""
    while frame is not None and _is_of(frame, _READING):
        frame = frame.f_back
    found = []
    while frame is not None and frame is not around:
        found.append(frame)
        frame = frame.f_back
    if frame is None or not found or not asks_for_truth(found[0]):
        raise _UnseenError
    if not all(_is_of(one, _CALLING) for one in found[1:]):
        raise _UnseenError  # C code may stand between them: map, say
    return found


def _is_of(frame: FrameType, files: tuple[str, ...]) -> bool:
    return frame.f_code.co_filename.replace("\\", "/").endswith(files)


def asks_for_truth(frame: FrameType) -> bool:
    """Tell whether the instruction that a frame runs asks for a truth, with no C code between."""
    name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return name.startswith(("POP_JUMP", "JUMP_IF", "UNARY_NOT", "TO_BOOL"))


@cache
def _positions(code: CodeType) -> list[Any]:
    return list(code.co_positions())


def _place(frame: FrameType) -> Any:
    """Return where a frame is: in the source, since a `while` has its test twice in the code.

    So has a `finally` all it does, with other ends: then it is the instruction.
    """
    if frame.f_code.co_exceptiontable:
        return frame.f_lasti
    return _positions(frame.f_code)[frame.f_lasti // 2]


class _Reader:
    """Reads the parts of a state."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.shape: list[Any] = []
        self.leaves: list[Value] = []
        self.generators: list[int] = []
        self.kept: list[Any] = []
        self._met: dict[int, int] = {}
        self._values: dict[Value, int] = {}

    def read_frame(self, frame: FrameType) -> None:
        """Read where a frame is, and its variables."""
        below = held_below(frame)
        if below is None:
            raise _UnseenError
        self._note("frame", id(frame.f_code), _place(frame), len(below))
        self.kept.append(frame.f_code)
        for value in below:
            self._read_held(value)
        for name, value in frame.f_locals.items():
            self._note(name)
            self._read(value)

    def read_recorder(self) -> None:
        """Read what the recording knows at this point besides."""
        recorder = self.recorder
        self._note(*recorder.progress())
        for key, (state, value) in recorder.written.items():
            self._note(key)
            if state.owner is CHAIN:  # a loop that shows values has a path for each number of trips
                self._note(value)
            elif isinstance(state.owner, Generator):
                self.generators.append(len(self.leaves))
            self._read_value(value)
        for value in recorder.held_values():
            self._read(value)

    def _note(self, *parts: Any) -> None:
        self.shape.append(parts)
        if len(self.shape) > MOST_PARTS:
            raise _UnseenError

    def _read_held(self, value: Any) -> None:
        """Read a value below the operands of an instruction: of a `for` or of a `with` around."""
        if isinstance(value, MethodType) or type(value).__name__ == "builtin_function_or_method":
            self._by_identity(value.__self__)
        else:
            self._read(value)

    def _read(self, value: Any) -> None:
        if is_atom(value):
            self._note(type(value), _exactly(value))
        elif id(value) in self._met:
            self._note("again", self._met[id(value)])
        else:
            self._met[id(value)] = len(self._met)
            self.kept.append(value)
            self._read_new(value)

    def _read_new(self, value: Any) -> None:
        if isinstance(value, Symbol):
            self._note(type(value))
            self._read_value(value.value)
        elif isinstance(value, (list, tuple, deque)):
            self._note(type(value), len(value))
            self._read_all(value)
        elif isinstance(value, dict):
            self._note(type(value), len(value))
            self._read_all(part for item in value.items() for part in item)
        elif isinstance(value, FunctionType):
            self._by_identity(value)
            self._read_all(cell.cell_contents for cell in value.__closure__ or ())
        elif isinstance(value, _COUNTED):
            self._note(id(value), operator.length_hint(value))
        elif isinstance(value, (set, frozenset)) and not any(isinstance(x, Symbol) for x in value):
            self._note(type(value), frozenset(_exactly(x) if is_atom(x) else id(x) for x in value))
        elif isinstance(value, (set, bytearray)) or is_iterator(value):
            raise _UnseenError
        else:  # what is done to it is counted
            self._by_identity(value)

    def _by_identity(self, value: Any) -> None:
        self._note(id(value))
        self.kept.append(value)

    def _read_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self._read(value)

    def _read_value(self, value: Value) -> None:
        """Read a recorded value: which others are the same one, and how gradients see it."""
        number = self._values.setdefault(value, len(self._values))
        self._note(value.type, number, value.node.op in SOURCES, self.recorder.standing(value))
        self.leaves.append(value)
        detached = self.recorder.detached_value(value)
        if detached is not None:
            self._note(self._values.setdefault(detached, len(self._values)))
            self.leaves.append(detached)


def _exactly(value: Any) -> Any:
    return value if type(value) in (int, bool, str, bytes, type(None)) else repr(value)
