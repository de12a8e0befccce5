"""Which sizes change from call to call, and which recordings hold for those of a call.

The first call of a kind is recorded for its shapes. When one comes that differs from earlier ones
in sizes only, the function is recorded with these as sizes that know their numbers
(recorded_size.py), and what comes of it runs for all sizes that meet its conditions. A size whose
number the function needs stays a number: such calls have a recording for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.dim import Decisions, SizeVar, is_known, unknown_size, variables
from ..core.shape import Shape
from ..core.tensor import PLAIN, Tensor
from ..graph.size_patterns import Place, Shapes, pattern_of, places_of, sizes_in, with_numbers
from .stand_in import can_stand_in

MOST_SEEN = 64  # shapes of calls that are remembered, to tell what changes
MOST_PATTERNS = 16  # recordings for many sizes: of different patterns, conditions or paths
_OPEN = unknown_size("any")


class CallSizes(NamedTuple):
    """The sizes that a recording is to hold for all of.

    leaves   shapes of arguments, by their positions, with sizes in them
    places   and of what places hold that change
    now      what the sizes are in the call that is recorded
    """

    leaves: Mapping[int, Shape]
    places: Mapping[Any, Shape]
    now: Mapping[SizeVar, int]


FIXED_SIZES = CallSizes({}, {}, {})


class SizedCalls:
    """Calls that are alike but for sizes: which of these have changed, and what runs them."""

    def __init__(self) -> None:
        self._seen: list[Shapes] = []
        self._sized: list[Any] = []
        self._places: tuple[Any, ...] = ()  # that hold a tensor which changes
        self._fixed: set[Place] = set()  # where the very number is needed
        self._refused: set[Shapes] = set()
        self.tried: Shapes | None = None  # which pattern the call at hand was to be recorded for

    def find(self, leaves: Sequence[Any]) -> Iterator[Any]:
        """Yield the traces that hold for the sizes of a call."""
        if not self._sized:
            return
        shapes = self._shapes(leaves)
        for trace in self._sized:
            now = None if shapes is None else sizes_in(trace.pattern, shapes)
            if now is not None and trace.decisions.may_hold(now):
                yield trace

    def pattern(self, leaves: Sequence[Any]) -> Shapes | None:
        """Return the shapes of a call with sizes in the place of what changes, if that is known."""
        shapes = self._shapes(leaves)
        if shapes is None or len(self._sized) >= MOST_PATTERNS:
            return None
        types = self._types(leaves, shapes)
        found = pattern_of(types, shapes, self._seen) or self._like_a_known_one(shapes)
        return None if found in self._refused else found

    def sizes(self, pattern: Shapes, leaves: Sequence[Any]) -> CallSizes:
        """Return a pattern as the sizes of a call."""
        shapes = self._shapes(leaves)
        now = None if shapes is None else sizes_in(pattern, shapes)
        assert now is not None, "the pattern is that of the call"
        open_shapes = [(i, shape) for i, shape in enumerate(pattern) if not is_known(shape)]
        count = len(leaves)
        return CallSizes(
            {i: shape for i, shape in open_shapes if i < count},
            {self._places[i - count]: shape for i, shape in open_shapes if i >= count},
            now,
        )

    def without_fixed(self, pattern: Shapes, trace: Any, leaves: Sequence[Any]) -> Shapes | None:
        """Return a pattern with numbers for the sizes that a recording for it holds one number of.

        None if there are none: then the recording is what it was to be.
        """
        open_sizes = {v for shape in pattern for size in shape for v in variables(size)}
        numbers = _with_one_number(trace.decisions) & open_sizes
        if not numbers:
            return None
        for place in places_of(pattern):
            if not trace.decisions.pinned.isdisjoint(variables(pattern[place[0]][place[1]])):
                self._fixed.add(place)
        return with_numbers(pattern, self._shapes(leaves) or (), numbers)

    def see(self, leaves: Sequence[Any], trace: Any) -> None:
        """Note a call that was recorded; keep what came of it if it is for many sizes.

        If it is not, though that was tried, calls of the pattern are recorded for their own sizes.
        """
        if trace.pattern is not None:
            self._sized.insert(0, trace)
        elif self.tried is not None:
            self._refused.add(self.tried)
        self.tried = None
        places = tuple(trace.places)
        if places != self._places and not self._sized:
            self._places, self._seen = places, []
        shapes = self._shapes(leaves)
        if shapes is not None and shapes not in self._seen:
            self._seen = [*self._seen[1 - MOST_SEEN :], shapes]

    def traces(self) -> list[Any]:
        """Return what runs calls of many sizes."""
        return list(self._sized)

    def _shapes(self, leaves: Sequence[Any]) -> Shapes | None:
        held = [place.get() for place in self._places]
        if not all(map(_is_tensor, held)):
            return None
        return tuple([_shape_of(leaf) for leaf in (*leaves, *held)])

    def _types(self, leaves: Sequence[Any], shapes: Shapes) -> Shapes:
        """Return shapes that are open where numbers may become sizes."""
        may = [isinstance(x, np.ndarray) or can_stand_in(x) for x in leaves]
        may += [True] * len(self._places)
        return tuple(
            tuple([_OPEN if may[i] and (i, k) not in self._fixed else n for k, n in enumerate(s)])
            for i, s in enumerate(shapes)
        )

    def _like_a_known_one(self, shapes: Shapes) -> Shapes | None:
        """Return the pattern of shapes by one that is known, of which some sizes are 0 or 1 now."""
        for trace in self._sized:
            made = with_numbers(trace.pattern, shapes, (), small=True)
            if has_sizes(made) and sizes_in(made, shapes) is not None:
                return made
        return None


def has_sizes(pattern: Shapes) -> bool:
    """Tell whether there are sizes in a pattern."""
    return not all(map(is_known, pattern))


def _is_tensor(held: Any) -> bool:
    return type(held) in PLAIN and held._node is None


def _shape_of(leaf: Any) -> Shape:
    return tuple(leaf.shape) if isinstance(leaf, (Tensor, np.ndarray)) else ()


def _with_one_number(decisions: Decisions) -> set[SizeVar]:
    """Return the sizes that conditions leave one number for."""
    equal = [c.size for c in decisions.conditions if c.relation == "!=" and not c.wanted]
    found = [set(variables(size)) for size in equal]
    alone = {v for some in found if len(some) == 1 for v in some}
    return alone.union(decisions.pinned or ())
