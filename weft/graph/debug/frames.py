"""Where a line of the user's stands: its stack, and its text."""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ...core.errors import is_weft_code


class StackLine(NamedTuple):
    """One line of a stack: the file, the line's number in it and the function."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        head = f"{os.path.basename(self.file)}:{self.line} in {self.function}"
        return f"{head}: {text}" if text else head


Stack = tuple[StackLine, ...]  # innermost first


def user_stack() -> Stack:
    """Return the user's lines that led to this call, innermost first."""
    found = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_weft_code(code):
            found.append(StackLine(code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return tuple(found)


def stack_of_site(site: Any) -> Stack:
    """Return the one line that a node knows, as a stack."""
    code, offset = site if isinstance(site, tuple) else (None, 0)
    if not isinstance(code, CodeType):
        return ()
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            line = number
    return (StackLine(code.co_filename, line, code.co_name),)


def listing(at: StackLine, around: int = 3) -> str:
    """Return the lines around one, with a mark at it."""
    numbers = range(max(1, at.line - around), at.line + around + 1)
    lines = [(n, linecache.getline(at.file, n).rstrip()) for n in numbers]
    shown = [f"{'->' if n == at.line else '  '} {n:4}  {text}" for n, text in lines if text]
    return "\n".join(shown) or "the text of this line is not there"
