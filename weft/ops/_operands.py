"""Operands and axes of composites, checked so that a message names the function that was called."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from ..core import dtype as dt
from ..core.errors import ArgumentTypeError, WeftError
from ..core.op import F, composites, registry
from ..core.operands import tensor_from
from ..core.shape import normalize_axis
from ..core.tensor import Tensor

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def names_errors(fn: FunctionT) -> FunctionT:
    """Return a function whose errors begin with its own name, not that of an operator within."""
    own = fn.__name__

    @wraps(fn)
    def named(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except WeftError as error:
            name, _, rest = str(error).partition(": ")
            message = rest if name in registry or name in composites else str(error)
            named = f"{own}: {message.removeprefix(f'{own}: ')}"
            raise type(error)(named, **error.facts) from None

    return named  # type: ignore[return-value]  # wraps keeps the signature


def operand(fn: str, name: str, x: Any) -> Any:
    """Return an argument as something to compute with; lists and numbers become tensors."""
    if isinstance(x, (Tensor, np.ndarray)):
        return x
    if isinstance(x, (bool, int, float, list, tuple, np.generic)):
        return tensor_from(x, f"{fn}: {name}")
    raise ArgumentTypeError(
        f"{fn}: {name} must be a tensor, an array or a list of numbers. "
        f"Received: {type(x).__name__} {x!r:.60}"
    )


def chosen_axis(fn: str, x: Any, axis: Any, dim: Any) -> int:
    """Return the axis given as `axis` or as its alias `dim`, counted from the front."""
    return normalize_axis(axis if dim is None else dim, x.ndim, f"{fn}: axis")


def in_dtype(x: Any, dtype: Any) -> Any:
    """Return x in a dtype, or as it is if none is asked for."""
    return x if dtype is None or dt.as_dtype(dtype) == x.dtype else F.cast(x, dt.as_dtype(dtype))


def constant(value: float, x: Any) -> Any:
    """Return a number in the dtype of x.

    Kernels and rules need it for fractions: bfloat16 is not one of NumPy's own dtypes, and a Python
    float (an int does no harm) next to it would widen the result to float32.
    """
    return x.dtype.type(value)


def concrete(x: Any) -> np.ndarray[Any, Any] | None:
    """Return the value of an operand, or None for a symbol, which has none yet."""
    value = x if isinstance(x, np.ndarray) else getattr(x, "_value", None)
    return value if isinstance(value, np.ndarray) else None
