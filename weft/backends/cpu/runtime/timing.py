"""Take the times of a program's kernels while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ....core.dtype import Array
from ....lower.kernels import CallKernel
from ....lower.memory import MemoryPlan
from ....lower.schedule import Region, TogetherCalls, flattened, inner_calls
from ..codegen.profile import SLOT_WORDS, write_profiled
from ..codegen.program import ProgramText
from ..codegen.target import Target
from .clock import clock_module, now, seconds_per_tick


class Span(NamedTuple):
    """A piece of work on one thread, in seconds of a steady clock."""

    begin: float
    end: float
    thread: int = 0

    @property
    def seconds(self) -> float:
        """Return how long it took."""
        return self.end - self.begin


class KernelSpans(NamedTuple):
    """A kernel in one run.

    whole     from the begin of its first chunk to the end of its last
    chunks    its chunks, if several threads shared it
    seconds   how long it held up the run: kernels that ran side by side share the time
    """

    whole: Span
    chunks: list[Span]
    seconds: float


class Timing:
    """The timed form of a program: its modules, and where its times go.

    record   what the native code writes, to be placed behind all other memory of the program
    """

    def __init__(self, text: ProgramText, memory: MemoryPlan, target: Target, record: int) -> None:
        self.text = text
        self.profiled = write_profiled(text, memory, target, record)
        self.modules = {name: m for name, m in text.modules.items() if name != text.entry}
        if text.entry:
            self.modules |= {"profile": self.profiled.entry, "clock": clock_module(target)}
        self.record: Array = np.zeros((max(1, self.profiled.count), SLOT_WORDS), np.int64)
        self._calls: dict[int, tuple[int, int]] = {}

    @contextmanager
    def library_call(self, kernel: CallKernel) -> Iterator[None]:
        """Take the time of a reference kernel; in a loop, the times of all calls add up."""
        begin = now()
        yield
        first, end = self._calls.get(id(kernel), (begin, begin))
        self._calls[id(kernel)] = first, end + now() - begin

    def take(self) -> list[KernelSpans]:
        """Return the times of the last run, in the order in which kernels run."""
        slots = iter(self.profiled.slots)
        stretches = iter(self.text.schedule.stretches)
        found: list[KernelSpans] = []
        for step, _ in flattened(self.text.schedule.steps):
            if isinstance(step, str):
                found += self._spans_in(next(stretches), slots)
            else:
                call = _span(*self._calls.get(id(step), (0, 0)), 0)
                found.append(KernelSpans(call, [], call.seconds))
        self._calls.clear()
        self.record[...] = 0
        return found

    def _spans_in(self, calls: Sequence[Any], slots: Iterator[range]) -> list[KernelSpans]:
        """Return the times of kernels one after another, inside control flow too."""
        found: list[KernelSpans] = []
        for call in calls:
            if isinstance(call, Region):
                found += self._region(call, slots)
            elif isinstance(call, TogetherCalls):
                found += self._together(call, slots)
            else:
                found += self._spans_in(inner_calls(call), slots)
        return found

    def _together(self, call: TogetherCalls, slots: Iterator[range]) -> list[KernelSpans]:
        """Return the times of kernels in chains: threads that ran side by side share the time."""
        made = [spans for chain in call.chains for spans in self._spans_in(chain, slots)]
        threads = len({spans.whole.thread for spans in made})
        return [spans._replace(seconds=spans.seconds / max(1, threads)) for spans in made]

    def _region(self, region: Region, slots: Iterator[range]) -> list[KernelSpans]:
        """Return the times of kernels that may have run side by side."""
        chunks = [[self._slot(i) for i in next(slots)] for _ in region.pieces]
        threads = len({span.thread for spans in chunks for span in spans})
        return [_spans_of(spans, threads) for spans in chunks]

    def _slot(self, number: int) -> Span:
        return _span(*self.record[number].tolist())


def _span(begin: int, end: int, thread: int) -> Span:
    tick = seconds_per_tick()
    return Span(begin * tick, end * tick, thread)


def _spans_of(chunks: list[Span], threads: int) -> KernelSpans:
    thread = chunks[0].thread if len(chunks) == 1 else 0
    whole = Span(min(c.begin for c in chunks), max(c.end for c in chunks), thread)
    shared = chunks if len(chunks) > 1 else []
    return KernelSpans(whole, shared, sum(c.seconds for c in chunks) / max(1, threads))
