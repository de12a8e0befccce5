"""Refuse writes that nobody could ever see: `x[0][1] = 5`, `w.detach().zero_()`.

Tensors are values, so `x[0]` is a tensor of its own, and what is written into it does not reach x.
Where that tensor has no name and the result of the write is dropped, the write cannot have been
meant: PyTorch's users write so, because there an index is a window into x. What has a name keeps
its new value (`for row in x: row += 1; use(row)`), and so does a result that is used.

Whether a tensor is such a temporary follows from the instruction that wrote it: see temporaries.py.
Most places write into plain names, which is found out once for each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .errors import LostWriteError
from .imports import deferred_imports
from .tensor import Tensor

if TYPE_CHECKING:
    from .bytecode import Write

P = ParamSpec("P")
R = TypeVar("R")

# Suspect writes by their place in a code object, by its id: hashing a code object is slow. The
# objects themselves are kept, so that their ids are not used again.
_places: dict[int, dict[int, Write]] = {}
_kept: list[CodeType] = []
_MAX_PLACES = 10_000


def refusing_lost_writes(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a method that writes into its tensor, refused where the write would be lost."""

    @wraps(method)
    def write(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        suspects = _places.get(id(frame.f_code))
        if suspects is None or frame.f_lasti in suspects:
            _check(self, name, frame, of_method=True)
        return method(self, *args, **kwargs)

    write.__name__ = name
    return write


def refusing_lost_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that writes into its first argument, refused where that is a temporary."""

    @wraps(function)
    def write(*args: P.args, **kwargs: P.kwargs) -> R:
        if args and isinstance(args[0], Tensor):
            _check(args[0], function.__name__, sys._getframe(1), of_method=False)
        return function(*args, **kwargs)

    return write


def _check(tensor: Tensor, name: str, frame: FrameType, of_method: bool) -> None:
    """Raise if what a frame is about to write into a tensor can never be read."""
    suspects = _places.get(id(frame.f_code))
    if suspects is None:
        suspects = _remembered(frame.f_code, _analysis().suspect_writes(frame.f_code))
    write = suspects.get(frame.f_lasti)
    if write is not None and write.name == name:
        target = write.receiver if of_method else write.first
        if _analysis().is_temporary(target, tensor, frame):
            raise LostWriteError(_analysis().message(write, target, frame))


def _analysis() -> ModuleType:
    """Return the module that reads callers' code: loaded at a program's first write."""
    with deferred_imports:
        from . import temporaries  # noqa: PLC0415  (`import weft` reads no code)
    return temporaries


def _remembered(code: CodeType, suspects: dict[int, Write]) -> dict[int, Write]:
    if len(_places) >= _MAX_PLACES:
        _places.clear()
        _kept.clear()
    _kept.append(code)
    _places[id(code)] = suspects
    return suspects
