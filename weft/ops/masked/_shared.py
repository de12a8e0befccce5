"""Operands of masked functions: a mask, and what stands where it is False."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import bool_, is_float
from ...core.errors import DTypeError
from ...core.op import F
from .._operands import in_dtype, operand


def read(fn: str, x: Any, mask: Any, dtype: Any = None) -> tuple[Any, Any]:
    """Return the tensor, in a dtype if asked for, and its mask, or None."""
    x = in_dtype(operand(fn, "x", x), dtype)
    if mask is None:
        return x, None
    mask = operand(fn, "mask", mask)
    if mask.dtype != bool_:
        raise DTypeError(f"{fn}: mask must hold truth values. Received: {mask.dtype}")
    return x, F.broadcast_to(mask, tuple(x.shape))


def filled(x: Any, mask: Any, value: Any) -> Any:
    """Return x with a value where the mask is False."""
    return x if mask is None else F.where(mask, x, F.full_like(x, value))


def lowest(x: Any) -> Any:
    """Return what no element of the dtype is less than."""
    return -np.inf if is_float(x.dtype) else np.iinfo(x.dtype).min if x.dtype != bool_ else False


def highest(x: Any) -> Any:
    """Return what no element of the dtype is greater than."""
    return np.inf if is_float(x.dtype) else np.iinfo(x.dtype).max if x.dtype != bool_ else True


def counts(x: Any, mask: Any, axis: Any, keepdims: bool) -> Any:
    """Return how many elements count for each result, in the dtype of x."""
    ones = F.full_like(x, 1) if mask is None else F.cast(mask, x.dtype)
    return F.sum(ones, axis, keepdims)
