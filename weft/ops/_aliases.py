"""PyTorch's argument names for composites: dim for axis, keepdim for keepdims.

Operators take these names without asking (see core/specialize.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..core.errors import ArgumentTypeError
from ..core.specialize import ALIASES

Function = Callable[..., Any]


def accepts_dim(fn: Function) -> Function:
    """Return the function taking `dim` and `keepdim` as other names of `axis` and `keepdims`."""

    @wraps(fn)
    def renaming(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = _renamed(fn, kwargs)
        return fn(*args, **kwargs)

    return renaming


def _renamed(fn: Function, kwargs: dict[str, Any]) -> dict[str, Any]:
    for name, alias in ALIASES.items():
        if alias in kwargs:
            if name in kwargs:
                raise ArgumentTypeError(
                    f"{fn.__name__}: {name} and {alias} are the same argument; give one of them. "
                    f"Received: {name}={kwargs[name]!r}, {alias}={kwargs[alias]!r}"
                )
            kwargs = {name if key == alias else key: value for key, value in kwargs.items()}
    return kwargs
