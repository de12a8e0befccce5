"""Refuse writes that nobody could ever see: `x[0][1] = 5`, `w.detach().zero_()`.

Tensors are values, so `x[0]` is a tensor of its own, and what is written into it does not reach x.
Where that tensor has no name and the result of the write is dropped, the write cannot have been
meant: PyTorch's users write so, because there an index is a window into x. What has a name keeps
its new value (`for row in x: row += 1; use(row)`), and so does a result that is used.

Whether a tensor is such a temporary follows from the instruction that wrote it: from the expression
that its caller computed it by (core/bytecode.py) and from the variables named there. In doubt a
write is let through. Most places write into plain names, which is found out once for each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from types import CodeType, FrameType
from typing import Any, ParamSpec, TypeVar

from .bytecode import (
    AttributeExpression,
    CallExpression,
    Expression,
    Item,
    LiteralExpression,
    Name,
    Write,
    text_of,
    written_at,
)
from .errors import LostWriteError
from .tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")


class _Marker:
    """What is known of a value that cannot be looked up."""


UNKNOWN = _Marker()
FRESH = _Marker()  # a new tensor, or several, that nobody holds

FRESH_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real", "imag"})

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
    write = _suspects(frame.f_code).get(frame.f_lasti)
    if write is not None and write.name == name:
        target = write.receiver if of_method else write.first
        if _is_temporary(target, tensor, frame):
            raise LostWriteError(_message(write, target, frame))


def _suspects(code: CodeType) -> dict[int, Write]:
    """Return where a code object may write into a temporary."""
    found = _places.get(id(code))
    if found is not None:
        return found
    if len(_places) >= _MAX_PLACES:
        _places.clear()
        _kept.clear()
    _kept.append(code)
    _places[id(code)] = found = {
        offset: write
        for offset, write in written_at(code).items()
        if _may_be_temporary(write.receiver) or _may_be_temporary(write.first)
    }
    return found


def _may_be_temporary(expression: Expression) -> bool:
    if isinstance(expression, AttributeExpression):
        return expression.name in FRESH_ATTRIBUTES
    return isinstance(expression, (Item, CallExpression))


def _is_temporary(expression: Expression, tensor: Tensor, frame: FrameType) -> bool:
    """Tell whether an expression made the tensor that it stands for."""
    if not _may_be_temporary(expression) or _value(expression, frame) is not FRESH:
        return False
    # x.cpu().zero_() writes into x: some methods return their own tensor.
    return all(_value(part, frame) is not tensor for part in _owners(expression))


def _owners(expression: Expression) -> Iterator[Expression]:
    """Yield what an expression was computed from, outwards: x.T and x for x.T[0]."""
    while isinstance(expression, (AttributeExpression, Item, CallExpression)):
        expression = (
            expression.function if isinstance(expression, CallExpression) else expression.owner
        )
        yield expression


# -- looking values up, without running any of the user's code -----------------------------------


def _value(expression: Expression, frame: FrameType) -> Any:
    """Return what an expression stands for, FRESH for a new tensor, or UNKNOWN."""
    if isinstance(expression, Name):
        return _variable(expression.name, frame)
    if isinstance(expression, AttributeExpression):
        return _attribute(_value(expression.owner, frame), expression.name)
    if isinstance(expression, Item):
        return _item(_value(expression.owner, frame), expression.key, frame)
    if isinstance(expression, CallExpression) and isinstance(
        expression.function, AttributeExpression
    ):
        return _method_result(_value(expression.function.owner, frame), expression.function.name)
    return UNKNOWN


def _variable(name: str, frame: FrameType) -> Any:
    for names in (frame.f_locals, frame.f_globals):
        if name in names:
            return names[name]
    return UNKNOWN


def _attribute(owner: Any, name: str) -> Any:
    if owner is FRESH or isinstance(owner, Tensor):
        return FRESH if name in FRESH_ATTRIBUTES else UNKNOWN
    return getattr(owner, "__dict__", {}).get(name, UNKNOWN)


def _item(owner: Any, index: Expression, frame: FrameType) -> Any:
    if owner is FRESH or isinstance(owner, Tensor):
        return FRESH
    key = index.value if isinstance(index, LiteralExpression) else _value(index, frame)
    if owner.__class__ not in (list, tuple, dict) or isinstance(key, _Marker):
        return UNKNOWN
    try:
        return owner[key]
    except (LookupError, TypeError):
        return UNKNOWN


def _method_result(owner: Any, name: str) -> Any:
    """Return what a tensor's method gives: itself after a write, else a new tensor."""
    if owner is FRESH or (name.endswith("_") and isinstance(owner, Tensor)):
        return owner
    ours = isinstance(owner, Tensor) and _is_ours(getattr(type(owner), name, None))
    return FRESH if ours else UNKNOWN


def _is_ours(method: Any) -> bool:
    """Tell whether a method is Weft's own: a user's may return a tensor that somebody holds."""
    return getattr(method, "__module__", "").split(".")[0] == __name__.split(".")[0]


# -- the message ---------------------------------------------------------------------------------


def _message(write: Write, target: Expression, frame: FrameType) -> str:
    return (
        f"{_statement(write)} would be lost: {text_of(target)} is a new tensor, not a view, "
        f"and nothing holds it after the write. {_advice(write, target, frame)}"
    )


def _statement(write: Write) -> str:
    if write.name == "__setitem__":
        return f"{text_of(write.receiver)}[{text_of(write.first)}] = ..."
    owner = "" if write.receiver is None else f"{text_of(write.receiver)}."
    return f"{owner}{write.name}({'' if write.first is None else text_of(write.first)})"


def _advice(write: Write, target: Expression, frame: FrameType) -> str:
    if isinstance(target, Item) and _value(target.owner, frame) is not FRESH:
        owner, key = text_of(target.owner), text_of(target.key)
        inner = f", {text_of(write.first)}" if write.name == "__setitem__" else ""
        return f"Write {owner}[{key}{inner}] = ..."
    function = target.function if isinstance(target, CallExpression) else None
    if isinstance(function, AttributeExpression) and function.name == "detach":
        return f"Write into {text_of(function.owner)} itself, inside `with wf.no_grad():`."
    return f"Give it a name first (y = {text_of(target)}), write into y, and use y."
