"""Errors that name what was received, and the user's source line behind every message.

Each class also derives from the builtin that NumPy or Python would have raised, so that code
written against those keeps working.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from types import CodeType, FrameType
from typing import Any

# As Python itself names the files of code: it keeps the ".." of a path that it looked in.
PACKAGE_DIR = os.path.dirname(os.path.dirname(__file__)) + os.sep
GENERATED_PREFIX = "<weft."


class WeftError(Exception):
    """Base of every error that Weft raises on purpose.

    facts   what was met, by name: the message in pieces, for faces of other frameworks, which say
            it in their own words (core/wording.py)
    """

    facts: Mapping[str, Any] = {}

    def __init__(self, *args: object, **facts: Any) -> None:
        super().__init__(*args)
        if facts:
            self.facts = facts


class ShapeError(WeftError, ValueError):
    """Shapes do not fit the operation."""


class AxisError(ShapeError, IndexError):
    """An axis lies outside the tensor's dimensions, or is named twice."""


class UnknownSizeError(ShapeError):
    """A size is needed that is not known before the graph runs."""

    made = 0  # so far: a function that is recorded for many sizes may have caught one

    def __init__(self, *args: object, **facts: Any) -> None:
        super().__init__(*args, **facts)
        UnknownSizeError.made += 1


class DTypeError(WeftError, TypeError):
    """A dtype, or a mixture of dtypes, does not fit the operation."""


class ArgumentError(WeftError, ValueError):
    """An argument has the right type but a value the operation cannot use."""


class ArgumentTypeError(WeftError, TypeError):
    """An argument has a type the operation cannot use."""


class IndexOutOfRange(WeftError, IndexError):  # noqa: N818  (says what happened)
    """An index points outside the dimension it selects from."""


class LinalgError(WeftError, ValueError):
    """A matrix lacks the property (full rank, positive definite) the operation needs."""


class GradientError(WeftError, RuntimeError):
    """The requested derivative does not exist or its graph is gone."""


class GraphError(WeftError, RuntimeError):
    """A graph is used in a way that its state or its contents do not allow."""


class AnomalyError(GradientError, ArithmeticError):
    """A NaN appeared while anomaly detection or the NaN trap was on."""

    trapped = False  # whether it ended a run of a program, which has changed nothing


class CheckError(WeftError, AssertionError):
    """A check that a program makes of its values (wf.debug.check) does not hold."""


class LostWriteError(WeftError, TypeError):
    """A write went into a tensor that nobody holds, or nobody reads, and would be lost."""


class DonatedError(WeftError, RuntimeError):
    """A tensor is used whose memory a call has taken."""


class AllocationError(WeftError, MemoryError):
    """The result would not fit in memory."""


class MissingDependencyError(WeftError, ImportError):
    """An optional package is needed for this function and is not installed."""


FROM_SIGNAL = "_weft_from_signal"  # the attribute that marks what code of the user's raised
COMMITTED = "_weft_committed"  # the same, of what was raised when states were written


def is_from_signal(error: BaseException) -> bool:
    """Tell whether code of the user's raised an error during a run: it is handed on as it is.

    That is the handler of a signal while native code runs, or what wf.debug calls.
    """
    return getattr(error, FROM_SIGNAL, False) is True


def note_outside(error: BaseException) -> None:
    """Note that code of the user's raised an error during a run."""
    setattr(error, FROM_SIGNAL, True)


def is_trapped(error: BaseException) -> bool:
    """Tell whether the NaN trap of a program raised an error."""
    return isinstance(error, AnomalyError) and error.trapped


def note_commit(error: BaseException) -> None:
    """Note that an error came when a program had written its states: it must not run again."""
    setattr(error, COMMITTED, True)


def is_committed(error: BaseException) -> bool:
    """Tell whether an error came when a program had written its states."""
    return getattr(error, COMMITTED, False) is True


def is_final(error: BaseException) -> bool:
    """Tell whether an error ends a call: to do again what it was met in would be wrong."""
    return is_from_signal(error) or is_trapped(error) or is_committed(error)


Site = tuple[CodeType | None, int] | None

# Whether a code object belongs to Weft, by id: hashing a code object is far slower. An id that is
# reused after user code was freed can at worst name a wrong line in a message.
internal_code: dict[int, bool] = {}
_MAX_KNOWN_CODE = 100_000


class SiteSearch:
    """How many of Weft's own frames are passed over in search of the user's line.

    Every operation inside a layer pays for the frames between it and the user, so the search ends
    early: a line of Weft's own is recorded then. Anomaly detection searches to the end.
    """

    QUICK, FULL = 4, sys.maxsize

    depth = QUICK


def caller_site(frame: FrameType | None, depth: int = 0) -> tuple[CodeType | None, int]:
    """Return the nearest position outside Weft, starting at `frame`.

    It is recorded for every operation, so it is the code object and the instruction's offset; the
    line number is left to `format_site`.
    """
    if frame is None:
        return (None, 0)
    for _ in range(depth or SiteSearch.depth):
        code = frame.f_code
        internal = internal_code.get(id(code))
        if internal is None:
            internal = _classify(code)
        if not internal or frame.f_back is None:
            break
        frame = frame.f_back
    return (frame.f_code, frame.f_lasti)


def user_site() -> Site:
    """Return the nearest line outside Weft that led to this call."""
    return caller_site(sys._getframe(1), SiteSearch.FULL)


def user_stacklevel() -> int:
    """Return the `stacklevel` with which a warning names the user's line."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and _classify(frame.f_code):
        frame = frame.f_back
        level += 1
    return level


def user_line(error: BaseException) -> str | None:
    """Return "file.py:12", the innermost line outside Weft that an error was raised through."""
    found, traceback = None, error.__traceback__
    while traceback is not None:
        if not _classify(traceback.tb_frame.f_code):
            found = (traceback.tb_frame.f_code, traceback.tb_lasti)
        traceback = traceback.tb_next
    return format_site(found)


def format_site(site: Site) -> str | None:
    """Return "file.py:12" for a recorded source position."""
    code, offset = site or (None, 0)
    if code is None:
        return None
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            line = number
    return f"{os.path.basename(code.co_filename)}:{line}"


def is_weft_code(code: CodeType) -> bool:
    """Tell whether a code object belongs to Weft."""
    return _classify(code)


def site_of_user(site: Site) -> str | None:
    """Return "file.py:12" for a position in the user's code; None if it is one of Weft's."""
    code = site[0] if site else None
    return None if code is None or is_weft_code(code) else format_site(site)


def _classify(code: CodeType) -> bool:
    """Return whether a code object belongs to Weft, and remember it."""
    internal = code.co_filename.startswith((PACKAGE_DIR, GENERATED_PREFIX))
    if len(internal_code) < _MAX_KNOWN_CODE:
        internal_code[id(code)] = internal
    return internal
