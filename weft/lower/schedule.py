"""How the kernels of a program are called, once that is planned: by whom, in how many parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.dim import Dim
from ..core.shape import Size
from .kernels import BranchKernel, Kernel, LoopKernel, TogetherKernel
from .storage import Buffer, View, buffers_behind


@dataclass(frozen=True, slots=True)
class Piece:
    """A kernel ready to be called.

    views     what it takes
    written   which of them it writes
    units     of work
    chunks    into which the units are divided; 0 until that is decided
    cost      nanoseconds on one thread
    """

    kernel: Kernel
    views: tuple[View, ...]
    written: frozenset[int]
    units: Size
    chunks: Size
    cost: float

    @property
    def name(self) -> str:
        """Return the name of the kernel."""
        return self.kernel.name

    @property
    def flag(self) -> View | None:
        """Return what the kernel sets if it meets an index out of range."""
        flag: View | None = getattr(self.kernel, "flag", None)
        return flag

    def touched(self) -> Iterator[tuple[Buffer, bool]]:
        """Yield the memory that it touches, and whether it writes there.

        A window may be anywhere in its buffer, and the word that tells where is read as well.
        """
        for i, view in enumerate(self.views):
            buffer, *words = buffers_behind(view.buffer)
            yield buffer, i in self.written
            yield from ((word, False) for word in words)


@dataclass(frozen=True, slots=True)
class Region:
    """Pieces that do not depend on one another: in any order, on several threads if parallel.

    In a program for many sizes that, and how pieces are divided, is told to each run.
    """

    pieces: tuple[Piece, ...]
    parallel: bool | Dim

    @property
    def flag(self) -> View | None:
        """Return what is set if one of the pieces meets an index out of range."""
        return next((piece.flag for piece in self.pieces if piece.flag is not None), None)


@dataclass(frozen=True, slots=True)
class LoopCalls:
    """A loop, with its kernels ready to be called."""

    kernel: LoopKernel
    test: tuple[Any, ...]
    body: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class BranchCalls:
    """A branch, with its kernels ready to be called."""

    kernel: BranchKernel
    yes: tuple[Any, ...]
    no: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class TogetherCalls:
    """Chains with their kernels ready to be called: each by one thread if parallel, else in turn.

    In a program for many sizes which of them is told to each run.
    """

    kernel: TogetherKernel
    chains: tuple[tuple[Any, ...], ...]
    parallel: bool | Dim


Calls = LoopCalls | BranchCalls  # which the host may drive
Holding = Calls | TogetherCalls


@dataclass(frozen=True, slots=True)
class RunSchedule:
    """What to run, in order.

    steps       names of stretches, operators that the host calls, control flow around those
    stretches   what each stretch runs without the host: regions, and control flow around them
    """

    steps: tuple[Any, ...]
    stretches: tuple[tuple[Any, ...], ...]

    @property
    def names(self) -> list[str]:
        """Return the names of the stretches."""
        return [stretch_name(i) for i in range(len(self.stretches))]

    @property
    def pieces(self) -> list[Piece]:
        """Return all kernels of stretches, in the order in which they run."""
        regions = (region for calls in self.stretches for region, _ in flattened(calls))
        return [piece for region in regions for piece in region.pieces]


def chains_in(calls: Sequence[Any]) -> Iterator[tuple[tuple[Any, ...], ...]]:
    """Yield the chains of each group that runs at the same time, inside control flow too."""
    for call in calls:
        if isinstance(call, TogetherCalls):
            yield call.chains
        elif isinstance(call, Calls):
            yield from chains_in(inner_calls(call))


def stretch_name(number: int) -> str:
    """Return the name of a stretch: of the function that runs it."""
    return f"run_{number}"


def inner_calls(call: Holding) -> tuple[Any, ...]:
    """Return what is called inside of control flow."""
    if isinstance(call, LoopCalls):
        return *call.test, *call.body
    if isinstance(call, BranchCalls):
        return *call.yes, *call.no
    return tuple(inner for chain in call.chains for inner in chain)


def flattened(calls: Sequence[Any], times: int = 1) -> Iterator[tuple[Any, int]]:
    """Yield all that is called, inside control flow too, and how often, as far as that is known."""
    for call in calls:
        if isinstance(call, Holding):
            length = call.kernel.length if isinstance(call, LoopCalls) else None
            yield from flattened(inner_calls(call), times * (1 if length is None else length))
        else:
            yield call, times
