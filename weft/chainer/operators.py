"""Python's operators of variables."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .variable import Variable, as_tensor, wrapped


def _binary(compute: Callable[[Any, Any], Any]) -> Callable[[Variable, Any], Variable]:
    def called(self: Variable, other: Any) -> Variable:
        return wrapped(compute(self._tensor, as_tensor(other)))

    return called


def _reflected(compute: Callable[[Any, Any], Any]) -> Callable[[Variable, Any], Variable]:
    def called(self: Variable, other: Any) -> Variable:
        return wrapped(compute(as_tensor(other), self._tensor))

    return called


def _unary(compute: Callable[[Any], Any]) -> Callable[[Variable], Variable]:
    return lambda self: wrapped(compute(self._tensor))


def _refused(symbol: str) -> Callable[[Variable, Any], Any]:
    def called(self: Variable, other: Any) -> Any:
        raise NotImplementedError(f"variables are not compared by {symbol}: use their arrays")

    return called


_TWO = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "pow": operator.pow,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "matmul": operator.matmul,
}


_ONE: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg,
    "abs": operator.abs,
    "pos": operator.pos,
}


def attach_operators() -> None:
    """Give variables the operators of tensors."""
    for name, compute in _TWO.items():
        setattr(Variable, f"__{name}__", _binary(compute))
        setattr(Variable, f"__r{name}__", _reflected(compute))
    for name, one in _ONE.items():
        setattr(Variable, f"__{name}__", _unary(one))
    for name, symbol in {
        "eq": "==",
        "ne": "!=",
        "lt": "<",
        "le": "<=",
        "gt": ">",
        "ge": ">=",
    }.items():
        setattr(Variable, f"__{name}__", _refused(symbol))
    setattr(Variable, "__hash__", object.__hash__)  # noqa: B010  (lost with __eq__; a slot to mypy)
