"""Remember what a rule gives for an operator, its attributes and types."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

R = TypeVar("R")

REMEMBERED = 4096  # results of each rule


def remembered(fn: Callable[..., R]) -> Callable[..., R]:
    """Return fn(op, attrs, *types) with its results kept, where the attributes can be keys."""

    @lru_cache(REMEMBERED)
    def kept(op: Any, attrs: tuple[Any, ...], kinds: tuple[type, ...], *types: Any) -> R:
        return fn(op, attrs, *types)

    @wraps(fn)
    def found(op: Any, attrs: tuple[Any, ...], *types: Any) -> R:
        kinds = tuple(map(type, attrs))  # 1, 1.0 and True are equal keys
        try:
            return kept(op, attrs, kinds, *types)
        except TypeError:  # an attribute that is no key
            return fn(op, attrs, *types)

    return found
