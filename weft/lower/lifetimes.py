"""When buffers are alive: from the first kernel that touches them to the last.

Kernels are numbered in the order in which they run, those of bodies too, so that what lives within
one step of a loop shares memory with the rest of the step. What lives longer than a step (it is
touched outside of the loop as well) is alive during the whole loop.

Of chains that run at the same time nobody knows which kernel of one runs when some kernel of
another does. The numbers order the kernels of one chain; against all others, what lives within a
chain is alive as long as the chains are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from .kernels import Kernel, TogetherKernel, buffers_of, may_fail
from .storage import Buffer, buffers_behind

Span = tuple[int, int]


def uses_of(kernels: Sequence[Kernel | None]) -> dict[Buffer, list[int]]:
    """Return the positions of the kernels that touch each buffer, themselves or inside."""
    found: dict[Buffer, list[int]] = {}
    for i, kernel in enumerate(kernels):
        for buffer in () if kernel is None else buffers_of(kernel):
            found.setdefault(buffer, []).append(i)
    return found


Position = tuple[int, int, int]  # of a kernel; of one in a chain: of all chains, which one, where


class InChains:
    """The kernels of a program, those of chains among them, and which come before others.

    kernels    by their positions
    uses       where each buffer is touched, by a kernel or inside it
    failures   where a run may find that it must be given up
    """

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = dict(_positions(kernels))
        self.uses: dict[Buffer, list[Position]] = {}
        for position, kernel in self.kernels.items():
            for buffer in buffers_of(kernel):
                self.uses.setdefault(buffer, []).append(position)
        self.failures = [at for at, kernel in self.kernels.items() if may_fail(kernel)]

    @staticmethod
    def is_before(one: Position, other: Position) -> bool:
        """Tell whether a kernel has always ended when another one begins."""
        return one < other and (one[0] < other[0] or one[1] == other[1])


def _positions(kernels: Sequence[Kernel]) -> Iterator[tuple[Position, Kernel]]:
    for i, kernel in enumerate(kernels):
        if isinstance(kernel, TogetherKernel):
            for c, chain in enumerate(kernel.chains):
                yield from (((i, c, k), inner) for k, inner in enumerate(chain))
        else:
            yield (i, 0, 0), kernel


@dataclass(eq=False)
class PartSpan:
    """A list of kernels inside a kernel, which runs from one number to another.

    chain    whether it is one of those that run at the same time
    number   of the part among those of its kernel
    """

    chain: bool
    number: int
    start: int = 0
    end: int = 0


@dataclass
class Lifetimes:
    """The spans of buffers, in numbers of kernels, and the number behind the last.

    chains   of buffers that nothing touches outside of one chain: which that is
    """

    spans: dict[Buffer, Span]
    end: int
    chains: dict[Buffer, PartSpan]

    def meet(self, a: Buffer, b: Buffer) -> bool:
        """Tell whether two buffers may be alive at the same time."""
        mine, other = self.chains.get(a), self.chains.get(b)
        if mine is other:
            return _overlap(self.spans.get(a, (0, 0)), self.spans.get(b, (0, 0)))
        return _overlap(self._outside(a, mine), self._outside(b, other))

    def until_the_end(self, buffers: Iterable[Buffer]) -> Lifetimes:
        """Return the same where some buffers are read when all kernels have run."""
        wanted = set(buffers)
        spans = dict(self.spans)
        for buffer in wanted:
            chain = self.chains.get(buffer)
            start, _ = self.spans.get(buffer, (0, 0)) if chain is None else (chain.start, 0)
            spans[buffer] = start, self.end
        return Lifetimes(spans, self.end, {b: c for b, c in self.chains.items() if b not in wanted})

    def _outside(self, buffer: Buffer, chain: PartSpan | None) -> Span:
        return self.spans.get(buffer, (0, 0)) if chain is None else (chain.start, chain.end)


def _overlap(a: Span, b: Span) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


Touch = tuple[int, tuple[PartSpan, ...]]  # when, and inside of what


def lifetimes(kernels: Sequence[Kernel]) -> Lifetimes:
    """Return when each buffer that kernels touch is alive."""
    touches: dict[Buffer, list[Touch]] = {}
    numbers = count()
    _number(kernels, (), numbers, touches)
    spans: dict[Buffer, Span] = {}
    chains: dict[Buffer, PartSpan] = {}
    for buffer, found in touches.items():
        around = _around_all(found)
        spans[buffer] = _span(found, len(around))
        chains.update((buffer, part) for part in around if part.chain)
    return Lifetimes(spans, next(numbers), chains)


def _number(
    kernels: Sequence[Kernel],
    path: tuple[PartSpan, ...],
    numbers: count[int],
    touches: dict[Buffer, list[Touch]],
) -> None:
    for kernel in kernels:
        start, parts = next(numbers), []
        for i, inner in enumerate(kernel.parts):
            parts.append(PartSpan(isinstance(kernel, TogetherKernel), i))
            _number(inner, (*path, parts[-1]), numbers, touches)
        end = next(numbers) if parts else start
        for part in parts:  # each part of a loop runs again after the others, chains side by side
            part.start, part.end = start, end
        for buffer in _touched(kernel):
            touches.setdefault(buffer, []).extend([(start, path), (end, path)])


def _touched(kernel: Kernel) -> list[Buffer]:
    """Return the memory that a kernel touches itself; that behind windows, and their words."""
    return [buffer for view in kernel.views for buffer in buffers_behind(view.buffer)]


def _around_all(found: Sequence[Touch]) -> tuple[PartSpan, ...]:
    """Return the parts that all touches are inside of, from the outermost on."""
    paths = [path for _, path in found]
    shared = 0
    while all(len(path) > shared and path[shared] is paths[0][shared] for path in paths):
        shared += 1
    return paths[0][:shared]


def _span(found: Sequence[Touch], shared: int) -> Span:
    """Return from when to when a buffer lives that is touched at times in parts."""
    spans = [
        (path[shared].start, path[shared].end) if len(path) > shared else (time, time)
        for time, path in found
    ]
    return min(start for start, _ in spans), max(end for _, end in spans)
