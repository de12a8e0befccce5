"""Look inside executables: their kernels, their code, and where the time goes."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from threading import RLock
from typing import Any

from ....core.dtype import Array
from ....core.errors import ArgumentError
from ....core.shape import as_int
from ....graph.feeds import as_feed
from ....graph.graph import Graph
from ....lower.program import KernelProgram
from ....plan.run_plan import RunPlan
from ...protocol import Planner
from ..codegen.program import ProgramText
from ..codegen.target import Target
from .analysis import Analysis, analyse
from .clock import seconds
from .linking import assembly
from .listing import KernelInfo, KernelList, count_control, kernels_in_order, list_kernels
from .memory import ProgramMemory
from .objects import object_code
from .profile import Profile, RunTimes
from .sharing import RunLock, Sized
from .timing import Timing

Wanted = KernelInfo | int | str | None


class Inspection(ABC):
    """What can be asked of an executable."""

    plan: RunPlan
    memory: ProgramMemory
    timing: Timing | None
    sized: Sized | None
    own_arena: bool
    _run_lock: RunLock
    _planner: Planner | None = None
    # Not cached properties: those of Python 3.11 have a lock, which a forked child may find held.
    fixed_because: str | None = None  # what needs numbers, where sizes were seen to change
    _analysis: Analysis | None = None
    _kernels: KernelList | None = None

    @abstractmethod
    def _load(self, objects: Sequence[bytes]) -> None:
        """Make the code ready to run, with memory of its own."""

    @abstractmethod
    def _execute(self, feeds: Sequence[Array], states: Sequence[Array]) -> None:
        """Run all kernels on feeds and states; those updated in place are written to."""

    def explain_by(self, planner: Planner) -> None:
        """Take who plans it again when someone looks inside, which no run needs."""
        self._planner = planner

    @property
    def analysis(self) -> Analysis:
        """How the code came about; found out again if it was not made by this process."""
        if self._analysis is None:
            planned = self._planner and self._planner()
            assert planned is not None, "what has code was planned before"
            self._analysis = analyse(planned)
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

    def ordered_kernels(self) -> list[Any]:
        """Return what `kernels` lists, as the kernels of the program themselves."""
        return kernels_in_order(self.text)

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
        """Return how many kernels of each kind there are, and what runs in Python.

        `native_calls` is how often a run calls machine code, apart from loops that Python drives.
        """
        return {
            "kernels": dict(
                Counter(kernel.kind for kernel in self.kernels) + count_control(self.text)
            ),
            "native_calls": sum(isinstance(step, str) for step in self.plan.steps),
            "library": [kernel.ops[0] for kernel in self.kernels if kernel.kind == "library"],
            "arena_bytes": self.plan.memory.arena_bytes,
            **self._about_donated(),
            **self._about_sizes(),
        }

    def _about_donated(self) -> dict[str, Any]:
        """Return the bytes of results that take the memory of feeds, if any do."""
        donated = self.plan.memory.donated
        return {"donated_bytes": sum(b.nbytes for b in donated)} if donated else {}

    def _about_sizes(self) -> dict[str, Any]:
        """Return the sizes of code for many, and for which it is; or why it is for one."""
        if self.sized is None:
            return {} if self.fixed_because is None else {"fixed_because": self.fixed_because}
        return {
            "sizes": {variable.name: size for variable, size in self.sized.sizes.items()},
            "conditions": [str(condition) for condition in self.sized.conditions],
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
        timed.own_arena = True  # also of a program that runs in memory lent to it
        timed._run_lock = RunLock(RLock())
        timed.sized = None if self.sized is None else self.sized.apart()
        timed.plan = analysis.plan
        record = len(self.memory.table)
        timed.timing = Timing(analysis.text, analysis.found, analysis.target, record)
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
