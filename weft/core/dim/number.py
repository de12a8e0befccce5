"""Numbers made of unknown sizes that are no integers: `1.0 / n`, `n ** 0.5`.

Such a number is kept as the program wrote it and computed in Python's own floats when the graph
runs, so that it is rounded as in eager mode: once in float64 at each operation, and once more when
it meets a tensor, to the dtype of that tensor. It is weak like any Python float.

Its expression is a nested tuple, `("truediv", 1.0, n)`, which is what a node keeps as attribute.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from numbers import Integral
from typing import Any, NoReturn

from ..errors import ArgumentError, ArgumentTypeError
from .expression import Dim, undecided

OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "neg": operator.neg,
    "abs": operator.abs,
    "sqrt": math.sqrt,
}


class RealDim(Dim):
    """A number that is not known until the graph runs; behaves as a Python float."""

    __slots__ = ("expression",)

    def __init__(self, expression: tuple[Any, ...]) -> None:
        super().__init__(())
        self.expression = expression

    def _combined(self, fn: str, a: Any, b: Any) -> Any:
        return real(fn, a, b)

    def __pow__(self, other: Any) -> Any:
        return real("pow", self, other)

    def __neg__(self) -> Any:
        return RealDim(("neg", self.expression))

    def __abs__(self) -> Any:
        return RealDim(("abs", self.expression))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RealDim) and self.expression == other.expression:
            return True
        if hasattr(other, "shape"):
            return super().__eq__(other)
        if isinstance(other, (int, float, Dim)):
            undecided(self)
        return False

    def __ne__(self, other: object) -> bool:
        return super().__ne__(other) if hasattr(other, "shape") else not self == other

    def __hash__(self) -> int:
        return hash(self.expression)

    def __lt__(self, other: Any) -> bool:
        if hasattr(other, "shape"):
            return NotImplemented
        return undecided(self)

    __gt__ = __le__ = __ge__ = __lt__

    def __bool__(self) -> bool:
        return undecided(self)

    def __int__(self) -> NoReturn:
        undecided(self)

    __trunc__ = __int__

    def __float__(self) -> float:
        undecided(self)

    def __index__(self) -> NoReturn:
        raise ArgumentTypeError(f"the number {self!r} is not an integer")

    def __repr__(self) -> str:
        return number_text(self.expression)

    def __reduce__(self) -> tuple[Any, ...]:
        return (RealDim, (self.expression,))


def real(fn: str, *operands: Any) -> Any:
    """Return a number computed from others, unknown until the graph runs."""
    expressions = tuple(map(_expression, operands))
    if any(expression is None for expression in expressions):
        return NotImplemented
    return RealDim((fn, *expressions))


def size_sqrt(size: Any) -> Any:
    """Return the square root of a size."""
    return real("sqrt", size) if isinstance(size, Dim) else math.sqrt(size)


def number_value(expression: Any) -> Any:
    """Return the value of an expression whose sizes are known."""
    if expression.__class__ is not tuple:
        return expression
    fn, *operands = expression
    try:
        return OPERATIONS[fn](*map(number_value, operands))
    except ArithmeticError as error:
        raise ArgumentError(f"{number_text(expression)}: {error}") from None


def check_expression(expression: Any) -> Any:
    """Return an expression; raise unless it is one."""
    if expression.__class__ is tuple and expression and expression[0] in OPERATIONS:
        fn, *operands = expression
        if len(operands) == (1 if fn in ("neg", "abs", "sqrt") else 2):
            return (fn, *map(check_expression, operands))
    elif _expression(expression) is not None:
        return expression
    raise ArgumentTypeError(f"{expression!r:.60} is not an expression of sizes")


def number_text(expression: Any) -> str:
    """Return an expression as text."""
    if expression.__class__ is not tuple:
        return repr(expression)
    fn, *operands = expression
    return f"{fn}({', '.join(map(number_text, operands))})"


def _expression(operand: Any) -> Any:
    if isinstance(operand, RealDim):
        return operand.expression
    if isinstance(operand, bool):
        return None
    if isinstance(operand, Integral):
        return int(operand)
    return operand if isinstance(operand, (float, Dim)) else None
