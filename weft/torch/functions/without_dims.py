"""Tensors without dimensions, of which PyTorch takes dimension 0 all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import tensor as core
from ...core.op import F
from ..adoption import adopt
from ..view_functions import wrapped_dim

Function = Callable[..., Any]


def axis_of(input: Any, dim: Any) -> Any:
    """Return dimensions as Weft takes them: all where there are none, or where none are named."""
    if dim is None:
        return None
    dims = tuple(dim) if isinstance(dim, (list, tuple)) else (dim,)
    checked = tuple(wrapped_dim(d, input.ndim) for d in dims)
    if not input.ndim or not checked:
        return None
    if len(set(checked)) != len(checked):
        twice = next(d for d in checked if checked.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return checked if isinstance(dim, (list, tuple)) else checked[0]


def with_one_dim(function: Function) -> Function:
    """Return a function that takes a tensor without dimensions as one of a single element."""

    def call(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else next(iter(kwargs.values()), None)
        if not isinstance(first, core.Tensor) or first.ndim:
            return function(*args, **kwargs)
        found = function(*map(_one, args), **{name: _one(x) for name, x in kwargs.items()})
        return _none(found)

    call.__name__ = call.__qualname__ = getattr(function, "__name__", "function")
    call.__doc__ = function.__doc__
    return call


def _one(x: Any) -> Any:
    return F.reshape(x, (1,)) if isinstance(x, core.Tensor) and not x.ndim else x


def _none(found: Any) -> Any:
    if isinstance(found, tuple):
        parts = [_none(part) for part in found]
        return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
    return adopt(F.reshape(found, ())) if found.numel() == 1 else found
