"""Read sizes that were written as text, e.g. `2*n + (m // 3)`: names, integers, + - * //, calls."""

from __future__ import annotations

import ast
import operator
from typing import Any

from .expression import FUNCTIONS, floor_divide, unknown_size

_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: floor_divide,
}


def parse_size(text: str) -> Any:
    """Return the size that a text stands for; raise ValueError if it is none."""
    try:
        return _read(ast.parse(text, mode="eval").body)
    except (SyntaxError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text!r:.60} is not the expression of a size") from error


def _read(tree: ast.expr) -> Any:
    match tree:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            return unknown_size(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_read(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_read(left), _read(right))
        case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]):
            return FUNCTIONS[name](_read(left), _read(right))
    raise ValueError(f"{ast.unparse(tree)!r:.60} is not the expression of a size")
