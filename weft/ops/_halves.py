"""Functions of 16-bit floats: computed in float32, rounded once.

Each operator rounds its result to the dtype of its operands, which with 11 or 8 bits of significand
spoils what consists of several: the square of 300 is no float16, and of the digits that a deviation
from the mean should have, bfloat16 keeps two. So composites that compute are declared with
`rounded_once`. Their gradients, which follow from the same operators, are rounded once too.
Reference kernels of several steps are declared with `through_float32`; compiled code needs neither,
because it computes each operator in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from typing import Any, TypeVar

import numpy as np

from ..core.dtype import DType, bool_, float32, is_float, is_half, promote
from ..core.op import F
from ..core.tensor import Tensor

TENSORS = (Tensor, np.ndarray)
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def rounded_once(fn: FunctionT) -> FunctionT:
    """Let a function compute 16-bit floats in float32; its results have their common dtype."""

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values()) if kwargs else args
        for x in given:
            if isinstance(x, TENSORS) and x.itemsize == 2 and is_half(x.dtype):
                return _call_wide(fn, args, kwargs)
        return fn(*args, **kwargs)

    return call  # type: ignore[return-value]  # it has the function's signature, by `wraps`


def widened(x: Any) -> Any:
    """Return a tensor of 16-bit floats in float32, and anything else as it is."""
    if isinstance(x, TENSORS) and is_half(x.dtype):
        return F.cast(x, float32)
    return x


def common_float(*operands: Any) -> DType:
    """Return the dtype that the floats among operands have in common; bool if there are none."""
    dtypes = [x.dtype for x in operands if isinstance(x, TENSORS)]
    return reduce(promote, filter(is_float, dtypes), bool_)


def rounded(result: Any, dtype: DType) -> Any:
    """Return floats in the dtype that a result should have, if that is one of 16 bits."""
    if isinstance(result, tuple | list):
        parts = [rounded(x, dtype) for x in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return F.cast(result, dtype) if is_half(dtype) and is_float(result.dtype) else result


def _call_wide(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    dtype = common_float(*args, *kwargs.values())
    wide = {name: widened(x) for name, x in kwargs.items()}
    return rounded(fn(*map(widened, args), **wide), dtype)


def through_float32(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Let a reference kernel compute 16-bit floats in float32, where sums keep digits too."""

    @wraps(kernel)
    def wide(x: Any, *rest: Any) -> Any:
        if x.itemsize != 2 or not is_half(x.dtype):
            return kernel(x, *rest)
        return kernel(*(_wide_array(value, x.dtype) for value in (x, *rest))).astype(x.dtype)

    return wide


def _wide_array(value: Any, dtype: DType) -> Any:
    is_operand = isinstance(value, np.ndarray | np.generic) and value.dtype == dtype
    return value.astype(float32) if is_operand else value
