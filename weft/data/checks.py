"""Checks of arguments; messages begin with the name of what was called."""

from __future__ import annotations

import math
from typing import Any

from ..core import options
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.options import as_choice, as_count, as_number, label_of

__all__ = [
    "as_choice",
    "as_count",
    "as_pair",
    "as_probability",
    "as_range",
    "as_real",
    "check_callable",
    "label_of",
    "several",
]


def as_real(owner: object, name: str, value: Any, least: float | None = None) -> float:
    """Return a finite real number, not smaller than `least`."""
    number = float(as_number(owner, name, value))
    if not math.isfinite(number) or (least is not None and number < least):
        wanted = "finite" if least is None else f"finite and at least {least:g}"
        raise ArgumentError(f"{label_of(owner)}: {name} must be {wanted}. Received: {value!r}")
    return number


def as_probability(owner: object, name: str, value: Any) -> float:
    """Return a number from 0 to 1, as a float."""
    return float(options.as_probability(owner, name, value))


def as_range(
    owner: object, name: str, value: Any, *, around: float | None = None, least: float | None = None
) -> tuple[float, float]:
    """Return (low, high) from a pair, or from one number as its distance from `around`."""
    if isinstance(value, tuple | list):
        if len(value) != 2:
            raise ArgumentError(
                f"{label_of(owner)}: {name} must be a number or a pair. Received: {value!r}"
            )
        low, high = (as_real(owner, name, entry, least) for entry in value)
    else:
        width, centre = as_real(owner, name, value, 0.0), around or 0.0
        low, high = centre - width, centre + width
        low = low if least is None else max(low, least)
    if low > high:
        raise ArgumentError(f"{label_of(owner)}: {name} must be ordered. Received: {value!r}")
    return low, high


def as_pair(owner: object, name: str, value: Any, least: int = 1) -> tuple[int, int]:
    """Return (height, width) from a pair, or from one number for both."""
    if not isinstance(value, tuple | list):
        size = as_count(owner, name, value, least)
        return size, size
    if len(value) != 2:
        raise ArgumentError(
            f"{label_of(owner)}: {name} must be an int or (height, width). Received: {value!r}"
        )
    height, width = (as_count(owner, name, entry, least) for entry in value)
    return height, width


def check_callable(owner: object, name: str, value: Any) -> None:
    """Raise unless an argument can be called."""
    if not callable(value):
        raise ArgumentTypeError(
            f"{label_of(owner)}: {name} must be callable. Received: {type(value).__name__} "
            f"{value!r:.60}"
        )


def several(given: tuple[Any, ...], kind: type) -> tuple[Any, ...]:
    """Return arguments; a single list of instances of a class stands for as many."""
    listed = tuple(given[0]) if len(given) == 1 and isinstance(given[0], list | tuple) else ()
    return listed if listed and all(isinstance(x, kind) for x in listed) else given
