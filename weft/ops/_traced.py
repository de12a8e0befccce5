"""Kernels of NumPy's functions in operators: the formulas of special functions on devices.

A kernel of `core/special` is run once on a block that has no elements: `TracedBlock` stands for a
tensor in float64, and what is done to it by NumPy's functions and Python's operators is done to the
tensor by operators. Where a kernel would choose a formula by value, all of them are computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..core.dtype import Array, float64, int64
from ..core.op import F, Op
from ..core.special.abstract import AbstractBlock

# What NumPy's functions are called here, where that is another name.
_NAMES = {
    "absolute": "abs",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "divide": "div",
    "invert": "logical_not",
    "multiply": "mul",
    "negative": "neg",
    "power": "pow",
    "remainder": "mod",
    "rint": "round",
    "subtract": "sub",
}


def in_operators(*records: Op) -> None:
    """Let elementwise operators say by their kernels what they are in other operators."""
    for record in records:
        assert record.eval_rule is not None
        record.expand(traced(record.eval_rule))


def traced(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel of arrays as a function of tensors."""

    def expanded(*operands: Any) -> Any:
        found = kernel(*(TracedBlock(F.cast(x, float64)) for x in operands))
        return F.cast(found.tensor, operands[0].dtype)

    return expanded


class TracedBlock(NDArrayOperatorsMixin, AbstractBlock):
    """What a kernel takes for a block."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply the operator that a function of NumPy's is; `out` is a name, nothing is written."""
        if method != "__call__" or options.keys() - {"out"}:
            return NotImplemented
        if ufunc is np.ldexp:
            return _scaled(*inputs)
        function = getattr(F, _NAMES.get(ufunc.__name__, ufunc.__name__))
        return TracedBlock(function(*(_tensor(x) for x in inputs)))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """Do the same for those of its functions that are no ufuncs."""
        known = _FUNCTIONS.get(function)
        return NotImplemented if known is None else known(*args, **options)

    def astype(self, dtype: Any) -> TracedBlock:
        """Return it in another dtype."""
        return TracedBlock(F.cast(self.tensor, dtype))

    def copy(self) -> TracedBlock:
        """Return it: whoever changes a block gets another one."""
        return self

    def any(self) -> bool:
        """Say that an element may be true."""
        return True

    def looked_up(self, table: Array) -> TracedBlock:
        """Return what integers name in a table; any of those that are too large or too small."""
        inside = F.maximum(F.minimum(F.cast(self.tensor, int64), len(table) - 1), 0)
        return TracedBlock(F.take(np.ascontiguousarray(table), inside, 0))


def _tensor(x: Any) -> Any:
    return x.tensor if isinstance(x, TracedBlock) else float(x)


def _scaled(x: TracedBlock, exponent: int) -> Any:
    """Return a block times a power of two, in two steps so that none is out of range."""
    half = exponent // 2
    return x * math.ldexp(1.0, half) * math.ldexp(1.0, exponent - half)


def _where(condition: TracedBlock, yes: Any, no: Any) -> TracedBlock:
    if not isinstance(yes, TracedBlock):
        yes = np.asarray(yes, float64)
    return TracedBlock(F.where(condition.tensor, getattr(yes, "tensor", yes), _tensor(no)))


def _full_like(x: Any, value: Any) -> TracedBlock:
    return TracedBlock(F.fill_like(x.tensor, value))


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.full_like: _full_like,
    np.zeros_like: lambda x: _full_like(x, 0.0),
    np.ones_like: lambda x: _full_like(x, 1.0),
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.isposinf: lambda x: x == np.inf,
}
