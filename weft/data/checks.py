"""Checks of arguments; messages begin with the name of what was called."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.shape import as_int


def as_count(owner: object, name: str, value: Any, least: int = 1) -> int:
    """Return an integer option that must not be smaller than `least`."""
    number = as_int(value, f"{label_of(owner)}: {name}")
    if number < least:
        raise ArgumentError(
            f"{label_of(owner)}: {name} must be at least {least}. Received: {number}"
        )
    return number


def as_real(owner: object, name: str, value: Any, least: float | None = None) -> float:
    """Return a finite real number, not smaller than `least`."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"{label_of(owner)}: {name} must be a number. Received: {value!r}")
    number = float(value)
    if not np.isfinite(number) or (least is not None and number < least):
        wanted = "finite" if least is None else f"finite and at least {least:g}"
        raise ArgumentError(f"{label_of(owner)}: {name} must be {wanted}. Received: {value!r}")
    return number


def as_probability(owner: object, name: str, value: Any) -> float:
    """Return a number from 0 to 1."""
    number = as_real(owner, name, value)
    if not 0 <= number <= 1:
        raise ArgumentError(f"{label_of(owner)}: {name} must lie in [0, 1]. Received: {value!r}")
    return number


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


def as_choice(owner: object, name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return an option that must be one of a few words."""
    if not isinstance(value, str) or value not in choices:
        shown = " or ".join(map(repr, choices))
        raise ArgumentError(f"{label_of(owner)}: {name} must be {shown}. Received: {value!r}")
    return value


def check_callable(owner: object, name: str, value: Any) -> None:
    """Raise unless an argument can be called."""
    if not callable(value):
        raise ArgumentTypeError(
            f"{label_of(owner)}: {name} must be callable. Received: {type(value).__name__} "
            f"{value!r:.60}"
        )


def label_of(owner: object) -> str:
    """Return the name with which messages begin."""
    return owner if isinstance(owner, str) else type(owner).__name__


def several(given: tuple[Any, ...], kind: type) -> tuple[Any, ...]:
    """Return arguments; a single list of instances of a class stands for as many."""
    listed = tuple(given[0]) if len(given) == 1 and isinstance(given[0], list | tuple) else ()
    return listed if listed and all(isinstance(x, kind) for x in listed) else given
