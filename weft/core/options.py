"""Checks of options; messages begin with the name of what was called: a class, or a function."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import ArgumentError, ArgumentTypeError
from .shape import as_int


def label_of(owner: object) -> str:
    """Return the name with which messages begin."""
    return owner if isinstance(owner, str) else type(owner).__name__


def as_count(owner: object, name: str, value: Any, least: int = 1) -> int:
    """Return an integer option that must not be smaller than `least`."""
    label = label_of(owner)
    number = as_int(value, f"{label}: {name}")
    if number < least:
        raise ArgumentError(f"{label}: {name} must be at least {least}. Received: {number}")
    return number


def as_number(owner: object, name: str, value: Any, least: float | None = None) -> float:
    """Return a real-number option as it is, after checking that it is one."""
    label = label_of(owner)
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"{label}: {name} must be a number. Received: {value!r}")
    if least is not None and not value >= least:
        raise ArgumentError(f"{label}: {name} must be at least {least:g}. Received: {value!r}")
    number: float = value.item() if isinstance(value, np.generic) else value
    return number


def as_probability(owner: object, name: str, value: Any) -> float:
    """Return a number from 0 to 1."""
    number = as_number(owner, name, value)
    if not 0 <= number <= 1:
        raise ArgumentError(f"{label_of(owner)}: {name} must lie in [0, 1]. Received: {value!r}")
    return number


def as_choice(owner: object, name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return an option that must be one of a few words."""
    if not isinstance(value, str) or value not in choices:
        *others, last = map(repr, choices)
        shown = f"{', '.join(others)} or {last}" if others else last
        raise ArgumentError(f"{label_of(owner)}: {name} must be {shown}. Received: {value!r}")
    return value
