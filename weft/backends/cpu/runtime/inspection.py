"""Look inside executables: their kernels, their code, and where the time goes."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

from ....core.dtype import Array
from ....core.errors import ArgumentError
from ....core.shape import as_int
from ....graph.feeds import as_feed
from ....graph.graph import Graph
from ....lower.program import KernelProgram
from ....plan.run_plan import RunPlan
from ..codegen.program import ProgramText
from ..codegen.target import Target
from .analysis import Analysis
from .clock import seconds
from .linking import assembly
from .listing import KernelInfo, KernelList, count_control, list_kernels
from .memory import ProgramMemory
from .objects import object_code
from .profile import Profile, RunTimes
from .timing import Timing

Wanted = KernelInfo | int | str | None


class Inspection(ABC):
    """What can be asked of an executable."""

    plan: RunPlan
    memory: ProgramMemory
    timing: Timing | None
    _lock: RLock
    _analyse: Callable[[], Analysis | None]
    # Not cached properties: those of Python 3.11 have a lock, which a forked child may find held.
    _analysis: Analysis | None = None
    _kernels: KernelList | None = None

    @abstractmethod
    def _load(self, objects: Sequence[bytes]) -> None:
        """Make the code ready to run, with memory of its own."""

    @abstractmethod
    def _execute(self, feeds: Sequence[Array], states: Sequence[Array]) -> None:
        """Run all kernels on feeds and states; those updated in place are written to."""

    @property
    def analysis(self) -> Analysis:
        """How the code came about; found out again if it was not made by this process."""
        if self._analysis is None:
            self._analysis = self._analyse()
            assert self._analysis is not None, "what has code was analysed before"
        return self._analysis

    @property
    def graph(self) -> Graph:
        """The graph that was lowered."""
        graph = self.analysis.graph
        assert graph is not None, "what the compiler made has a graph"
        return graph

    @property
    def program(self) -> KernelProgram:
        """The kernels that it became."""
        return self.analysis.program

    @property
    def text(self) -> ProgramText:
        """The text of the code."""
        return self.analysis.text

    @property
    def target(self) -> Target:
        """The machine that the code is for."""
        return self.analysis.target

    @property
    def kernels(self) -> KernelList:
        """The kernels in the order in which they run; printed as a table."""
        if self._kernels is None:
            self._kernels = list_kernels(self.text, self.analysis.sources)
        return self._kernels

    def llvm_ir(self, kernel: Wanted = None) -> str:
        """Return the code as LLVM IR: of one kernel, by number or name, or of everything."""
        return "\n".join(self._modules(kernel))

    def asm(self, kernel: Wanted = None) -> str:
        """Return the code as assembly: of one kernel, by number or name, or of everything."""
        return "\n".join(assembly(text, self.target) for text in self._modules(kernel))

    def _modules(self, kernel: Wanted) -> list[str]:
        if kernel is None:
            return list(self.text.modules.values())
        found = self.kernels.find(kernel)
        if not found.function:
            raise ArgumentError(
                f"kernel {found.number} ({found.name}) has no code: it calls the reference kernel "
                f"of {found.ops[0]} from Python"
            )
        return [self.text.modules[found.function]]

    def stats(self) -> dict[str, Any]:
        """Return how many kernels of each kind there are, and what runs in Python."""
        return {
            "kernels": dict(
                Counter(kernel.kind for kernel in self.kernels) + count_control(self.text)
            ),
            "library": [kernel.ops[0] for kernel in self.kernels if kernel.kind == "library"],
            "arena_bytes": self.plan.memory.arena_bytes,
        }

    def __repr__(self) -> str:
        kinds = Counter(kernel.kind for kernel in self.kernels)
        shown = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "no kernels"
        return f"<{type(self).__name__}: {shown}; {self.plan.memory.arena_bytes} bytes of memory>"

    # -- profiles ----------------------------------------------------------------------------------

    def profile(self, feeds: Sequence[Any] = (), *, runs: int = 20) -> Profile:
        """Run on feeds several times and return the times of all kernels.

        Nothing is changed by it: states are read, but the runs write to copies of them.
        """
        count = as_int(runs, "profile: runs")
        if count < 1:
            raise ArgumentError(f"profile: runs must be at least 1. Received: {count}")
        arrays = self._fed(feeds)
        timed = self._timed_copy()
        timed._timed_run(arrays)  # the first one starts threads and touches memory
        return Profile(self.kernels, [timed._timed_run(arrays) for _ in range(count)])

    def _fed(self, feeds: Sequence[Any]) -> list[Array]:
        inputs = self.analysis.sources.feeds
        if len(feeds) != len(inputs):
            names = ", ".join(value.name for value in inputs)
            raise ArgumentError(
                f"profile: expected {len(inputs)} feeds ({names}). Received: {len(feeds)}"
            )
        return [as_feed(value, fed, "profile") for value, fed in zip(inputs, feeds, strict=True)]

    def _timed_copy(self) -> Inspection:
        """Return the same program with clocks in its code and with its own memory."""
        analysis = self.analysis
        timed = copy.copy(self)
        timed._lock = RLock()
        timed.plan = analysis.plan
        places = analysis.memory.places
        timed.timing = Timing(analysis.text, places, analysis.target, len(self.memory.table))
        modules = timed.timing.modules.values()
        timed._load([object_code(text, analysis.target) for text in modules])
        return timed

    def _timed_run(self, feeds: Sequence[Array]) -> RunTimes:
        assert self.timing is not None
        kept = self.plan.sources.states
        states = [kept[b.slot].read().copy() for b in self.plan.memory.states]
        begin = seconds()
        self._execute(feeds, states)
        return RunTimes(begin, seconds(), self.timing.take())
