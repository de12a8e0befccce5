"""Tensors that nobody holds: whether the target of a write is one, by the caller's own code.

It follows from the instruction that wrote it: from the expression that its caller computed it by
(core/bytecode.py) and from the variables named there. In doubt it is none. Loaded at a program's
first write into a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

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
from .tensor import Tensor


class _Marker:
    """What is known of a value that cannot be looked up."""


UNKNOWN = _Marker()
FRESH = _Marker()  # a new tensor, or several, that nobody holds

FRESH_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real", "imag"})


def suspect_writes(code: CodeType) -> dict[int, Write]:
    """Return the writes of a code object, by their places, whose target may be a temporary."""
    return {
        offset: write
        for offset, write in written_at(code).items()
        if _may_be_temporary(write.receiver) or _may_be_temporary(write.first)
    }


def _may_be_temporary(expression: Expression) -> bool:
    if isinstance(expression, AttributeExpression):
        return expression.name in FRESH_ATTRIBUTES
    return isinstance(expression, (Item, CallExpression))


def is_temporary(expression: Expression, tensor: Tensor, frame: FrameType) -> bool:
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


def message(write: Write, target: Expression, frame: FrameType) -> str:
    """Say what would be lost, and what to write instead."""
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
