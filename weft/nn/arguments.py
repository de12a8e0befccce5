"""Checks of what layers are constructed with; messages begin with the name of the layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.options import as_choice, as_number, as_probability, label_of
from ..core.options import as_count as as_size

__all__ = [
    "as_choice",
    "as_flag",
    "as_number",
    "as_probability",
    "as_size",
    "as_sizes",
    "placement",
]


def as_sizes(layer: object, name: str, value: Any, count: int, least: int = 1) -> tuple[int, ...]:
    """Return an int, or a sequence of `count` ints, as one int for each axis."""
    if not isinstance(value, (tuple, list)):
        return (as_size(layer, name, value, least),) * count
    if len(value) != count:
        raise ArgumentError(
            f"{label_of(layer)}: {name} must be an int or {count} ints. Received: {value!r}"
        )
    return tuple(as_size(layer, f"each entry of {name}", v, least) for v in value)


def as_flag(layer: object, name: str, value: Any) -> bool:
    """Return an option that must be True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(
            f"{label_of(layer)}: {name} must be True or False. Received: {value!r}"
        )
    return bool(value)


def placement(layer: object, given: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords `device` and `dtype`; raise on any other."""
    unknown = sorted(set(given) - {"device", "dtype"})
    if unknown:
        raise ArgumentTypeError(f"{label_of(layer)} has no option {unknown[0]!r}")
    return {"device": None, "dtype": None} | given
