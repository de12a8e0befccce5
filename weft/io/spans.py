"""Parts of arrays: boxes, and ranges of an array that is laid out in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import ArgumentTypeError, ShapeError
from ..core.tensor import Tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class ArrayPart:
    """What this process has of an array that is divided among several.

    values   the part: a tensor or array
    shape    of the whole
    start    where the part begins: a place in the whole; or, of a part with one axis of a whole
             with any number, a place in the whole laid out in one line

    >>> ArrayPart(np.zeros((2, 3)), shape=(4, 3), start=(2, 0)).size
    6
    """

    values: Any
    shape: tuple[int, ...]
    start: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.values, Tensor | np.ndarray):
            raise ArgumentTypeError(
                f"a part of an array must be a tensor or array. Received: {self.values!r:.60}"
            )
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        object.__setattr__(self, "start", tuple(int(n) for n in self.start))
        check_span(self.span, self.shape, "a part of an array")

    @property
    def size(self) -> int:
        """Return how many elements the part has."""
        return math.prod(self.values.shape)

    @property
    def span(self) -> ArraySpan:
        """Return where the part stands."""
        return ArraySpan(self.start, tuple(self.values.shape))


class ArraySpan(NamedTuple):
    """Where a part stands in an array: a box; or a range of the array in one line."""

    start: tuple[int, ...]
    shape: tuple[int, ...]

    def within(self, whole: Sequence[int]) -> bool:
        """Tell whether it lies in a whole of some shape."""
        line = (math.prod(whole),) if self.is_line(whole) else tuple(whole)
        places = zip(self.start, self.shape, line, strict=True)
        return all(a >= 0 and n >= 0 and a + n <= most for a, n, most in places)

    def is_line(self, whole: Sequence[int]) -> bool:
        """Tell whether it counts the elements of the whole in one line."""
        return len(self.shape) == 1 and len(whole) != 1


def check_span(span: ArraySpan, whole: Sequence[int], what: str) -> None:
    """Refuse a part that does not lie in its whole."""
    axes = 1 if span.is_line(whole) else len(whole)
    if len(span.start) != axes or len(span.shape) != axes or not span.within(whole):
        raise ShapeError(
            f"{what} of shape {span.shape} that begins at {span.start} does not lie in a whole of "
            f"shape {tuple(whole)}"
        )


def overlap(a: ArraySpan, b: ArraySpan) -> bool:
    """Tell whether two boxes, or two ranges, have elements in common."""
    axes = zip(a.start, a.shape, b.start, b.shape, strict=True)
    return all(p < q + m and q < p + n for p, n, q, m in axes)


def cut(whole: Array, span: ArraySpan) -> Array:
    """Return the part of a whole that stands at a span."""
    if span.is_line(whole.shape):
        return whole.reshape(-1)[span.start[0] : span.start[0] + span.shape[0]]
    return whole[tuple(slice(a, a + n) for a, n in zip(span.start, span.shape, strict=True))]


def copy_common(
    values: Array, held: ArraySpan, target: Array, wanted: ArraySpan, whole: Sequence[int]
) -> None:
    """Copy what a part has of another part."""
    if held.is_line(whole) == wanted.is_line(whole):
        _copy_box(values, held, target, wanted)
        return
    # A range meets a box: by the number of each element in one line.
    mine = numbers_of(held, whole).reshape(-1)
    theirs = numbers_of(wanted, whole).reshape(-1)
    _, places, taken = np.intersect1d(theirs, mine, assume_unique=True, return_indices=True)
    target.reshape(-1)[places] = values.reshape(-1)[taken]


def _copy_box(values: Array, held: ArraySpan, target: Array, wanted: ArraySpan) -> None:
    ranges = [
        (max(a, b), min(a + n, b + m))
        for a, n, b, m in zip(held.start, held.shape, wanted.start, wanted.shape, strict=True)
    ]
    if any(first >= last for first, last in ranges):
        return
    read = tuple(slice(f - a, e - a) for (f, e), a in zip(ranges, held.start, strict=True))
    written = tuple(slice(f - b, e - b) for (f, e), b in zip(ranges, wanted.start, strict=True))
    target[written] = values[read]


def numbers_of(span: ArraySpan, whole: Sequence[int]) -> Array:
    """Return the number of each element of a part in one line."""
    if span.is_line(whole):
        return np.arange(span.start[0], span.start[0] + span.shape[0])
    places = [np.arange(a, a + n) for a, n in zip(span.start, span.shape, strict=True)]
    if not places:
        return np.zeros((), np.int64)
    return np.ravel_multi_index(np.meshgrid(*places, indexing="ij"), tuple(whole))
