"""Sizes of windows: one number for all axes, or one for each."""

from __future__ import annotations

from typing import Any


def spatial(value: Any, count: int) -> tuple[int, ...]:
    """Return a number once for each axis, and a list as a tuple."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,) * count


def pair(value: Any) -> tuple[int, int]:
    """Return a number twice, and a pair as it is."""
    first, second = spatial(value, 2)
    return first, second
