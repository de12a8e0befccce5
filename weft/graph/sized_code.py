"""Machine code for many sizes: which code of a program computes feeds of given shapes.

The first shapes get code of their own, which is the fastest. When a size is seen to change, code is
made in which it is a number that every run is told; it takes all shapes that follow. What is
computed is the same, to the last bit: the order of additions follows from sizes, not from the code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.dim import SizeVar
from ..core.errors import UnknownSizeError
from ..core.shape import Shape
from .size_patterns import Shapes, pattern_of, sizes_in, told_pattern, with_one_size

MOST_SEEN = 64  # shapes that are remembered, to tell what changes
MOST_SIZED = 8  # codes for many sizes: of different patterns, or decided differently

# Compiles for shapes with sizes in them, as for those at hand; None if it cannot.
Compile = Callable[[Shapes, Mapping[SizeVar, int]], Any]


class _Sized(NamedTuple):
    pattern: Shapes
    code: Any


class SizedCode:
    """The codes of a program that are for many sizes."""

    def __init__(self, types: Sequence[Shape]) -> None:
        self._types = types
        self._seen: list[Shapes] = []
        self._made: list[_Sized] = []
        self._refused: dict[Shapes, str] = {}  # patterns, and what of them needs a number
        self._latest: dict[int, Any] = {}  # of each code, as it was run last

    def find(self, shapes: Shapes, compile: Compile) -> Any:
        """Return an executable for shapes, if there is code for them or if it is time for some."""
        found = self._known(shapes)
        if found is None:
            pattern = told_pattern(self._types, shapes) or pattern_of(
                self._types, shapes, self._seen
            )
            self._see(shapes)
            if pattern is not None and len(self._made) < MOST_SIZED:
                found = self._new(pattern, shapes, compile)
        return found

    def executables(self) -> list[Any]:
        """Return each code as it was run last."""
        return list(self._latest.values())

    def why_fixed(self) -> str | None:
        """Return why sizes that change are numbers of the code, if they are."""
        return next(reversed(self._refused.values()), None)

    def _see(self, shapes: Shapes) -> None:
        if shapes not in self._seen:
            self._seen = [*self._seen[1 - MOST_SEEN :], shapes]

    def _known(self, shapes: Shapes) -> Any:
        for pattern, code in self._made:
            sizes = sizes_in(pattern, shapes)
            if sizes is not None and code.admits(sizes):
                return self._bound(code, sizes)
        return None

    def _bound(self, code: Any, sizes: Mapping[SizeVar, int]) -> Any:
        self._latest[id(code)] = executable = code.bind(sizes)
        return executable

    def _new(self, pattern: Shapes, shapes: Shapes, compile: Compile) -> Any:
        """Return an executable of new code; of a pattern with fewer sizes if it must be."""
        for tried in (pattern, *with_one_size(pattern, shapes)):
            sizes = sizes_in(tried, shapes)
            if sizes is None or tried in self._refused:
                continue
            try:
                code = compile(tried, sizes)
            except UnknownSizeError as error:
                self._refused[tried] = str(error)
                continue
            if code is None:
                self._refused[tried] = "the device takes no sizes that only a run knows"
                continue
            self._made = [*self._made, _Sized(tried, code)]
            return self._bound(code, sizes)
        return None
