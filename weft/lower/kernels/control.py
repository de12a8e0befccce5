"""Control flow: kernels that are repeated, or chosen between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.dtype import bool_, int64
from ...core.shape import Shape, Size
from ..storage import Buffer, View, contiguous
from .base import Kernel, Origins, maybe_within

if TYPE_CHECKING:
    from ..checks import Verifier
    from ..text import Text


@dataclass(frozen=True, slots=True)
class LoopKernel(Kernel):
    """Kernels that are repeated, by their numbers in memory.

    A body works on windows, which move with two words: `index`, the place of the step in what is
    taken apart and stacked, and `half`, which of the two copies of the carries is the newer.

    length    the most steps; None for a loop that only its test ends
    reverse   whether the index counts down from length - 1
    test      what computes the truth value `holds` before each step, if there is one
    stops     a truth value that the body computes, and that ends the loop
    room      what outlives a step: the stacked results
    """

    kind = "loop"

    name: str
    index: Buffer
    half: Buffer
    length: Size | None
    reverse: bool
    body: tuple[Kernel, ...]
    test: tuple[Kernel, ...] = ()
    holds: View | None = None
    stops: View | None = None
    room: tuple[View, ...] = ()
    origins: Origins = ()

    @property
    def views(self) -> list[View]:
        """Return truth values, words, and what outlives a step."""
        flags = [view for view in (self.holds, self.stops) if view is not None]
        return [*flags, *self.words, *self.room]

    @property
    def words(self) -> list[View]:
        """Return the numbers in memory that windows move with."""
        return [contiguous(word, ()) for word in (self.index, self.half)]

    @property
    def written(self) -> frozenset[int]:
        """Return the words: what else it has its kernels write."""
        words = len(self.views) - len(self.room)
        return frozenset((words - 2, words - 1))

    @property
    def parts(self) -> tuple[tuple[Kernel, ...], ...]:
        """Return the test and the body."""
        return self.test, self.body

    @property
    def shape(self) -> Shape:
        """Return the number of steps, if it is known."""
        return () if self.length is None else (self.length,)

    def within(self, buffers: Mapping[Buffer, Buffer]) -> LoopKernel:
        """Return the same loop over other buffers."""
        return replace(
            self,
            index=buffers[self.index],
            half=buffers[self.half],
            body=all_within(self.body, buffers),
            test=all_within(self.test, buffers),
            holds=maybe_within(self.holds, buffers),
            stops=maybe_within(self.stops, buffers),
            room=tuple(view.within(buffers) for view in self.room),
        )

    def verify(self, v: Verifier) -> None:
        """Check words and truth values; that something ends it."""
        for view in self.words:
            v.view(view, "a word")
            v.dtype(view.dtype, int64, "a word")
        if self.index is self.half:
            v.fail("index and half are one word")
        if self.length is None and (self.holds is None or self.reverse):
            v.fail("has no end, or counts down from nowhere")
        if self.length is not None and v.surely_less(self.length, 0):
            v.fail(f"has {self.length} steps")
        if (self.holds is None) != (not self.test):
            v.fail("a test computes whether a loop goes on")
        for flag in (self.holds, self.stops):
            if flag is not None:
                v.truth(flag)
        for view in self.room:
            v.view(view, "what outlives a step")

    def lines(self, text: Text) -> list[str]:
        """Return how often, and what is repeated."""
        index, half = (text.view(word) for word in self.words)
        steps = "while" if self.length is None else f"{self.length} steps"
        order = ", last first" if self.reverse else ""
        head = f"{text.head(self)} {steps}{order}, index {index}, half {half}"
        test = [] if self.holds is None else [f"while {text.view(self.holds)}"]
        stops = [] if self.stops is None else [f"until {text.view(self.stops)}"]
        return [head, *text.inner(self.test), *test, *text.inner(self.body), *stops]


@dataclass(frozen=True, slots=True)
class BranchKernel(Kernel):
    """Kernels of which one list or the other runs, as a truth value says, and their results."""

    kind = "branch"

    name: str
    chosen: View
    yes: tuple[Kernel, ...]
    no: tuple[Kernel, ...]
    results: tuple[View, ...]
    origins: Origins = ()

    @property
    def views(self) -> list[View]:
        """Return the truth value and the results."""
        return [self.chosen, *self.results]

    @property
    def written(self) -> frozenset[int]:
        """Return nothing: it has its kernels write."""
        return frozenset()

    @property
    def parts(self) -> tuple[tuple[Kernel, ...], ...]:
        """Return both lists."""
        return self.yes, self.no

    @property
    def shape(self) -> Shape:
        """Return the shape of what it gives first."""
        return self.results[0].shape if self.results else ()

    def within(self, buffers: Mapping[Buffer, Buffer]) -> BranchKernel:
        """Return the same branch over other buffers."""
        return replace(
            self,
            chosen=self.chosen.within(buffers),
            yes=all_within(self.yes, buffers),
            no=all_within(self.no, buffers),
            results=tuple(view.within(buffers) for view in self.results),
        )

    def verify(self, v: Verifier) -> None:
        """Check the truth value, and where results lie."""
        v.truth(self.chosen)
        v.dtype(self.chosen.dtype, bool_, "what is chosen by")
        for view in self.results:
            v.view(view, "a result")

    def lines(self, text: Text) -> list[str]:
        """Return both lists."""
        head = f"{text.head(self)} if {text.view(self.chosen)}"
        return [head, *text.inner(self.yes), "else", *text.inner(self.no)]


def all_within(kernels: Iterable[Kernel], buffers: Mapping[Buffer, Buffer]) -> tuple[Kernel, ...]:
    """Return the same kernels over other buffers."""
    return tuple(kernel.within(buffers) for kernel in kernels)
