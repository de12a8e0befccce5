"""Formulas as functions of arrays: what a rule says for an element, for all of them at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..imports import deferred_imports

Formula = Callable[..., Any]


def on_arrays(formula: Formula) -> Callable[..., Any]:
    """Return a formula of a builder and values as a function of arrays and numbers.

    It is written as NumPy source for each combination of dtypes, when it is first met.
    """
    known: dict[Any, Callable[..., Any]] = {}

    @wraps(formula)
    def call(*given: Any) -> Any:
        key = tuple([getattr(x, "dtype", None) for x in given])
        try:
            return known[key](*given)
        except KeyError:
            with deferred_imports:
                from .kernels import formula_kernel  # noqa: PLC0415  (`import weft` needs none)

            return known.setdefault(key, formula_kernel(formula, key))(*given)

    return call
