"""Checks of arguments that several modules share."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ..core.errors import ArgumentError


def checked_int(name: str, value: Any, least: int) -> int:
    """Return an integer that is not less than a bound."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ArgumentError(f"{name} must be an integer from {least} on. Received: {value!r}")
    return value


def optional_int(name: str, value: Any, least: int) -> int | None:
    """Return such an integer, or None."""
    return None if value is None else checked_int(name, value, least)


def free_name(name: str, taken: Container[str]) -> str:
    """Return a name, with a number behind it if it is taken."""
    number, free = 1, name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def overrides(thing: Any, base: type, name: str) -> bool:
    """Tell whether a method is another one than that of the base, which does nothing."""
    return getattr(getattr(thing, name), "__func__", None) is not getattr(base, name)


def optional_positive(name: str, value: Any) -> float | None:
    """Return a number greater than 0, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ArgumentError(f"{name} must be a number greater than 0. Received: {value!r}")
    return float(value)
