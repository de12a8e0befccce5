"""The least and the greatest value that expressions of unknown sizes can have."""

from __future__ import annotations

import math
from collections.abc import Callable

Bounds = tuple[float, float]  # integers, or infinite


def times(a: Bounds, b: Bounds) -> Bounds:
    """Return bounds of a product."""
    products = [0 if 0 in (x, y) else x * y for x in a for y in b]
    return min(products), max(products)


def divided(a: Bounds, b: Bounds) -> Bounds:
    """Return bounds of a floor division by a size, which nobody divides by if it is 0."""
    if b[0] < 0:
        return -math.inf, math.inf
    positive = (max(b[0], 1), b[1])
    quotients = [_floor_ratio(x, y) for x in a for y in positive]
    return min(quotients), max(quotients)


def _floor_ratio(x: float, y: float) -> float:
    if math.isinf(y):
        return -1 if x < 0 else 0
    return x if math.isinf(x) else x // y


CALLS: dict[str, Callable[[Bounds, Bounds], Bounds]] = {
    "floordiv": divided,
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "broadcast": lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
}
