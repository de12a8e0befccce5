"""Python's operators of tensors and variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import indexing, math_ops
from .tensor import Tensor
from .variable import Variable

_TWO: dict[str, Callable[..., Any]] = {
    "add": math_ops.add,
    "sub": math_ops.subtract,
    "mul": math_ops.multiply,
    "truediv": math_ops.truediv,
    "div": math_ops.div,
    "floordiv": math_ops.floordiv,
    "mod": math_ops.mod,
    "pow": math_ops.pow,
    "matmul": math_ops.matmul,
    "and": math_ops.logical_and,
    "or": math_ops.logical_or,
    "xor": math_ops.logical_xor,
}
_COMPARED: dict[str, Callable[..., Any]] = {
    "lt": math_ops.less,
    "le": math_ops.less_equal,
    "gt": math_ops.greater,
    "ge": math_ops.greater_equal,
}
_ONE: dict[str, Callable[[Any], Any]] = {
    "neg": math_ops.negative,
    "abs": math_ops.abs,
    "invert": math_ops.logical_not,
}


def _reflected(compute: Callable[..., Any], name: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: compute(other, self, name=name)


def _plain(compute: Callable[..., Any], name: str | None = None) -> Callable[[Any, Any], Any]:
    return lambda self, other: compute(self, other, name=name)


def _single(compute: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda self: compute(self, name=None)


def _getitem(self: Any, key: Any) -> Any:
    return indexing.getitem(self, key)


def attach_operators() -> None:
    """Give tensors and variables the operators of Python."""
    for owner in (Tensor, Variable):
        for name, two in _TWO.items():
            setattr(owner, f"__{name}__", _plain(two, name))
            setattr(owner, f"__r{name}__", _reflected(two, name))
        for name, compared in _COMPARED.items():
            setattr(owner, f"__{name}__", _plain(compared))
        for name, one in _ONE.items():
            setattr(owner, f"__{name}__", _single(one))
        for name in ("getitem",):
            setattr(owner, f"__{name}__", _getitem)
