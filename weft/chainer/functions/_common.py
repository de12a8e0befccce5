"""How functions over tensors become Chainer's functions over variables."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ...core.errors import DTypeError, ShapeError
from ...core.op import F
from ...core.tensor import Tensor
from ..utils.type_check import InvalidType
from ..variable import tensors, wrapped


def function(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of variables and arrays from one of tensors."""

    @wraps(compute)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            result = compute(*map(tensors, args), **{k: tensors(v) for k, v in kwargs.items()})
        except (ShapeError, DTypeError) as error:
            raise InvalidType.of(compute.__name__, error) from error
        return wrapped_result(result)

    return called


def wrapped_result(result: Any) -> Any:
    """Return tensors as variables, in the tuple that they stand in."""
    return wrapped(result) if isinstance(result, (Tensor, tuple, list)) else result


def named(name: str, operator: str | None = None) -> Callable[..., Any]:
    """Return Chainer's function of a name: an operator, found when it is first called."""
    found = operator or name

    def called(*args: Any, **kwargs: Any) -> Any:
        return getattr(F, found)(*args, **kwargs)

    called.__name__ = called.__qualname__ = name
    called.__doc__ = f"Return what Weft's operator `{found}` does."
    return function(called)
