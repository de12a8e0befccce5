"""What a kernel computes for one element: the expressions of core/scalar."""

from __future__ import annotations

from ..core.scalar.builder import (
    CHEAP,
    PLACED,
    Expr,
    ScalarBuilder,
    computed_dtype,
    is_defined,
    postorder,
    substituted,
)

__all__ = [
    "CHEAP",
    "PLACED",
    "Expr",
    "ScalarBuilder",
    "computed_dtype",
    "is_defined",
    "postorder",
    "substituted",
]
