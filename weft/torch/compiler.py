"""torch.compiler: what programs say to, and ask, `torch.compile`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.modes import current_recorder, modes
from .absent import absent
from .compiling import compile

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "reset",
]

Function = Callable[..., Any]


def allow_in_graph(fn: Any) -> Any:
    """Let recordings take a function as it is: its results follow from what it is given.

    What it computes with tensors is part of the program; what else it reads, a cache or a class,
    is not looked at. A module stands for all functions of its package.

    >>> from weft import torch
    >>> known = {}
    >>> @torch.compiler.allow_in_graph
    ... def scaled(x):
    ...     return x * known.setdefault(type(x), 2)
    >>> torch.compile(scaled)(torch.ones(2))
    tensor([2., 2.])
    """
    from ..capture.watch.trust import take_as_computing  # noqa: PLC0415  (only for those who ask)

    for function in fn if isinstance(fn, (list, tuple)) else (fn,):
        take_as_computing(function)
    return fn


def disable(fn: Any = None, recursive: bool = True, **unused: Any) -> Any:
    """Leave a function as it is: recordings follow it, and run eagerly what they cannot."""
    return _as_it_is if fn is None else fn


def _as_it_is(fn: Function) -> Function:
    return fn


def assume_constant_result(fn: Function) -> Function:
    """Leave a function as it is."""
    return fn


def is_compiling() -> bool:
    """Tell whether a function is being recorded."""
    return bool(modes.interpreters) and current_recorder() is not None


is_dynamo_compiling = is_compiling


def reset() -> None:
    """Do nothing: programs go with the functions that they belong to."""


__getattr__ = absent(globals(), {})
