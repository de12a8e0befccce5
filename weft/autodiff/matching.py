"""Checks that what is given for a tensor (a gradient, a tangent, a result) is of its type."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import ArgumentTypeError, ShapeError
from ..core.tensor import Tensor


def array_of(given: Any, like: Any, what: str) -> np.ndarray[Any, Any]:
    """Return numbers that are no tensor as an array of the dtype of another value."""
    try:
        return np.array(given, like.dtype)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"{what} must be a tensor or an array. Received: {type(given).__name__}"
        ) from None


def require_tensor(given: Any, what: str) -> None:
    """Raise unless a tensor was given where nothing else but None may be."""
    if not isinstance(given, Tensor):
        raise ArgumentTypeError(
            f"{what} must be a tensor or None. Received: {type(given).__name__}"
        )


def require_type(given: Tensor, like: Any, what: str, pattern: str) -> None:
    """Raise unless a tensor has the shape and dtype of another value, which `pattern` names."""
    if given.shape != like.shape or given.dtype != like.dtype:
        raise ShapeError(
            f"{what} must be {like.dtype}{list(like.shape)} like {pattern}. "
            f"Received: {given.dtype}{list(given.shape)}"
        )
