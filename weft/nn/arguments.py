"""Checks of what layers are constructed with; messages begin with the name of the layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.shape import as_int


def as_size(layer: object, name: str, value: Any, least: int = 1) -> int:
    """Return an integer option that must not be smaller than `least`."""
    label = _label(layer)
    number = as_int(value, f"{label}: {name}")
    if number < least:
        raise ArgumentError(f"{label}: {name} must be at least {least}. Received: {number}")
    return number


def as_sizes(layer: object, name: str, value: Any, count: int, least: int = 1) -> tuple[int, ...]:
    """Return an int, or a sequence of `count` ints, as one int for each axis."""
    if not isinstance(value, (tuple, list)):
        return (as_size(layer, name, value, least),) * count
    if len(value) != count:
        raise ArgumentError(
            f"{_label(layer)}: {name} must be an int or {count} ints. Received: {value!r}"
        )
    return tuple(as_size(layer, f"each entry of {name}", v, least) for v in value)


def as_number(layer: object, name: str, value: Any, least: float | None = None) -> float:
    """Return a real-number option as it is, after checking that it is one."""
    label = _label(layer)
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentTypeError(f"{label}: {name} must be a number. Received: {value!r}")
    if least is not None and not value >= least:
        raise ArgumentError(f"{label}: {name} must be at least {least:g}. Received: {value!r}")
    number: float = value.item() if isinstance(value, np.generic) else value
    return number


def as_probability(layer: object, name: str, value: Any) -> float:
    """Return a number from 0 to 1."""
    number = as_number(layer, name, value)
    if not 0 <= number <= 1:
        raise ArgumentError(f"{_label(layer)}: {name} must lie in [0, 1]. Received: {value!r}")
    return number


def as_flag(layer: object, name: str, value: Any) -> bool:
    """Return an option that must be True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(
            f"{_label(layer)}: {name} must be True or False. Received: {value!r}"
        )
    return bool(value)


def as_choice(layer: object, name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return an option that must be one of a few words."""
    if not isinstance(value, str) or value not in choices:
        shown = ", ".join(map(repr, choices[:-1])) + f" or {choices[-1]!r}"
        raise ArgumentError(f"{_label(layer)}: {name} must be {shown}. Received: {value!r}")
    return value


def placement(layer: object, given: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords `device` and `dtype`; raise on any other."""
    unknown = sorted(set(given) - {"device", "dtype"})
    if unknown:
        raise ArgumentTypeError(f"{_label(layer)} has no option {unknown[0]!r}")
    return {"device": None, "dtype": None} | given


def _label(layer: object) -> str:
    return layer if isinstance(layer, str) else type(layer).__name__
