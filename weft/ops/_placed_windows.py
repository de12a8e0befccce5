"""Windows and taps in compiled loops: which elements of an axis make an element of the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..core.shape import Shape, size_of
from ._axis_tables import Ranges, Taps
from .conv.geometry import Pairs

MOST = 64  # elements of a window that code goes through one by one
Element = tuple[Any, Any]  # a place along an axis, and whether it is there (None: surely)


def window_elements(
    b: Any, size: Shape, kernel: Shape, stride: Shape, pairs: Pairs, dilation: Shape
) -> list[list[Element]] | None:
    """Return, for each spatial axis, the elements of the window; None if they are too many."""
    if size_of(kernel) > MOST:
        return None
    axes = zip(b.coordinates[2:], size, kernel, stride, pairs, dilation, strict=True)
    return [
        [_element(b, here * s + (k * d - before), n, before > 0 or after > 0) for k in range(count)]
        for here, n, count, s, (before, after), d in axes
    ]


def _element(b: Any, place: Any, size: int, guarded: bool) -> Element:
    return place, b.inside(place, size) if guarded else None


def range_elements(b: Any, here: Any, size: int, ranges: Ranges) -> list[Element] | None:
    """Return the elements of the range that stands at a place; None if they are too many."""
    lengths = ranges.stop - ranges.start
    most = int(lengths.max(initial=0))
    if most > MOST:
        return None
    steps = set(np.diff(ranges.start).tolist()) or {0}
    if len(steps) == 1 and (lengths == most).all():
        (step,) = steps
        first = int(ranges.start[0]) if ranges.start.size else 0
        return [(here * step + (first + k), None) for k in range(most)]
    start, length = b.table(ranges.start).at(here), b.table(lengths).at(here)
    last = b.minimum(start + most, size) - 1
    return [(b.minimum(start + k, last), length > k) for k in range(most)]


def boxes(b: Any, axes: Sequence[list[Element]]) -> Iterator[tuple[list[Any], Any]]:
    """Yield the places of all elements of a window in row-major order, and whether they exist."""
    for chosen in product(*axes):
        where = None
        for _, holds in chosen:
            where = b.both(where, holds)
        yield [place for place, _ in chosen], where


def total(parts: Sequence[Any]) -> Any:
    """Return a sum, added from the first on."""
    first, *rest = parts
    for part in rest:
        first = first + part
    return first


def tapped(b: Any, x: Any, axis: int, table: Taps) -> Any:
    """Return the weighted sum of an operand's elements at the taps along an axis."""
    if len(table.positions) > MOST:
        return None
    positions, places = b.table(table.positions), list(b.coordinates)
    parts = []
    for k in range(len(table.positions)):
        places[axis] = positions.at(k, b.coordinates[axis])
        parts.append(x.at(*places))
    if table.weights is None:
        return parts[0]
    weights = b.table(table.weights.astype(parts[0].dtype))
    here = b.coordinates[axis]
    weighted = total([part * weights.at(k, here) for k, part in enumerate(parts)])
    if table.unread is None or not table.unread.size:
        return weighted
    read = np.ones(b.shape[axis], np.bool_)
    read[table.unread] = False
    return b.select(b.table(read).at(here), weighted, 0)
