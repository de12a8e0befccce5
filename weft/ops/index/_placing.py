"""Indices in compiled loops: where the elements of a part lie in the whole, and the reverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.shape import Shape, broadcast
from ._spec import ARRAY, Spec, explicit, slice_places


def within_part(b: Any, shape: Shape, spec: Spec) -> tuple[list[Any], Any]:
    """Return where an element of a whole lies in the part that a basic index selects.

    The coordinates in the part, and whether the element belongs to it (None: surely).
    """
    places: list[Any] = []
    where, axis = None, 0
    for item in explicit(spec, len(shape)):
        if item is None:
            places.append(0)
            continue
        here, size = b.coordinates[axis], shape[axis]
        axis += 1
        if isinstance(item, tuple):
            place, holds = _within_slice(b, here, slice_places(item, size), size)
            places.append(place)
        else:
            holds = b.eq(here.expr, item + size if item < 0 else item)
        where = b.both(where, holds)
    return places, where


def _within_slice(b: Any, here: Any, taken: tuple[Any, Any, Any], size: Any) -> tuple[Any, Any]:
    start, count, step = taken
    if count == size and step == 1:
        return here, None
    place, holds = b.window_of(here - start if step > 0 else start - here, abs(step), count)
    return place, holds


def part_places(b: Any, shape: Shape, spec: Spec, arrays: Sequence[Any]) -> list[Any] | None:
    """Return where an element of the part that an index with arrays selects lies in the whole.

    None where the index holds masks, or is of the rare kinds that only NumPy's rules settle.
    """
    items = explicit(spec, len(shape))
    if any(x.dtype.kind == "b" for x in arrays) or (... in spec and len(items) < len(spec)):
        return None
    shared = broadcast(*(x.shape for x in arrays))
    own = [i for i, item in enumerate(items) if item == ARRAY or isinstance(item, int)]
    together = own == list(range(own[0], own[0] + len(own)))
    lead = own[0] if together else 0
    rest = [*b.coordinates[:lead], *b.coordinates[lead + len(shared) :]]
    chosen = _Chooser(b, shape, arrays, b.coordinates[lead : lead + len(shared)], shared)
    return chosen.places(items, rest)


class _Chooser:
    """Turns the items of an index into coordinates of the whole, one after another."""

    def __init__(
        self, b: Any, shape: Shape, arrays: Sequence[Any], shared: Sequence[Any], sizes: Shape
    ) -> None:
        self.b = b
        self.shape = shape
        self.arrays = list(arrays)
        self.shared = shared
        self.sizes = sizes

    def places(self, items: Sequence[Any], rest: list[Any]) -> list[Any] | None:
        """Return a coordinate for each axis of the whole."""
        found: list[Any] = []
        for item in items:
            if item is None:
                rest.pop(0)
                continue
            size = self.shape[len(found)]
            if item == ARRAY:
                if not size:
                    return None
                found.append(self.b.index(self._next(), size))
            elif isinstance(item, int):
                found.append(item + size if item < 0 else item)
            else:
                start, _, step = slice_places(item, size)
                found.append(rest.pop(0) * step + start)
        return found

    def _next(self) -> Any:
        """Return the element of the next array at the place of the result."""
        array = self.arrays.pop(0)
        own = self.shared[len(self.shared) - array.ndim :]
        return array.at(*(0 if n == 1 else c for n, c in zip(array.shape, own, strict=True)))
