"""Which sizes of feeds change from call to call, and which are always the same numbers.

A pattern is the shapes of all feeds with a size in the place of each number that has been seen to
change; numbers that changed together are one size. Sizes of 0 and 1 are numbers in every pattern:
they mean something of their own, for loops and for broadcasting.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from ..core.dim import LEAST, Dim, SizeVar, is_told, run_time_size
from ..core.shape import Shape, Size

Shapes = tuple[Shape, ...]
Place = tuple[int, int]  # a feed, and an axis of it


def pattern_of(types: Sequence[Shape], shapes: Shapes, seen: Sequence[Shapes]) -> Shapes | None:
    """Return the pattern of shapes, given those seen before; None if nothing has changed.

    `types` are the shapes that feeds were declared with: what is a number there never changes.
    """
    open_places = [place for place in places_of(types) if _is_open(types, place)]
    like = [other for other in seen if _is_like(shapes, other)]
    values = {p: tuple(_at(s, p) for s in (shapes, *like)) for p in open_places}
    names: dict[tuple[int, ...], Dim] = {}
    sizes: dict[Place, Dim] = {}
    for place, history in values.items():
        if len(set(history)) > 1:
            sizes[place] = names.setdefault(history, run_time_size(f"n{len(names)}"))
    return _with_sizes(shapes, sizes) if sizes else None


def told_pattern(types: Sequence[Shape], shapes: Shapes) -> Shapes | None:
    """Return the pattern of shapes that were declared with run-time sizes; None if they were not.

    Such sizes are known to change: a function was recorded for many before. None too where all of
    them are numbers this time, of 0 or 1.
    """
    sizes = [size for shape in types for size in shape if isinstance(size, Dim)]
    if not sizes or not all(is_told([size]) and size.variable() is not None for size in sizes):
        return None
    made = with_numbers(tuple(types), shapes, (), small=True)
    return made if any(_is_open(made, place) for place in places_of(made)) else None


def with_one_size(pattern: Shapes, shapes: Shapes) -> Iterator[Shapes]:
    """Yield patterns in which one size of another is left, the others being numbers."""
    found = dict.fromkeys(_at(pattern, p) for p in places_of(pattern) if _is_open(pattern, p))
    for size in found if len(found) > 1 else ():
        sizes = {p: size for p in places_of(pattern) if _at(pattern, p) == size}
        yield _with_sizes(shapes, sizes)


def with_numbers(
    pattern: Shapes, shapes: Shapes, sizes: Container[SizeVar], *, small: bool = False
) -> Shapes:
    """Return a pattern with the numbers of shapes for some sizes: those given, or those below 2."""
    left = {}
    for place in places_of(pattern):
        size = _at(pattern, place)
        is_left = isinstance(size, Dim) and size.variable() not in sizes
        if is_left and (not small or _at(shapes, place) >= LEAST):
            left[place] = size
    return _with_sizes(shapes, left)


def sizes_in(pattern: Shapes, shapes: Shapes) -> dict[SizeVar, int] | None:
    """Return the sizes of a pattern that shapes have; None if they are not of the pattern."""
    sizes: dict[SizeVar, int] = {}
    for place in places_of(pattern):
        wanted, given = _at(pattern, place), _at(shapes, place)
        variable = wanted.variable() if isinstance(wanted, Dim) else None
        if variable is not None and given >= LEAST:
            wanted = sizes.setdefault(variable, given)
        if not isinstance(wanted, int) or wanted != given:
            return None
    return sizes


def places_of(shapes: Sequence[Shape]) -> list[Place]:
    """Return all places there are in shapes."""
    return [(feed, axis) for feed, shape in enumerate(shapes) for axis in range(len(shape))]


def _at(shapes: Sequence[Shape], place: Place) -> Size:
    feed, axis = place
    return shapes[feed][axis]


def _is_open(types: Sequence[Shape], place: Place) -> bool:
    size = types[place[0]][place[1]]
    return isinstance(size, Dim) and size.variable() is not None


def _is_like(shapes: Shapes, other: Shapes) -> bool:
    """Tell whether shapes differ in numbers only that may become sizes."""
    pairs = ((_at(shapes, p), _at(other, p)) for p in places_of(shapes))
    return all(a == b or min(a, b) >= LEAST for a, b in pairs)


def _with_sizes(shapes: Shapes, sizes: Mapping[Place, Dim]) -> Shapes:
    return tuple(
        tuple(sizes.get((feed, axis), size) for axis, size in enumerate(shape))
        for feed, shape in enumerate(shapes)
    )
