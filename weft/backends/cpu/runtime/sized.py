"""Programs for many sizes: one machine code, and memory for the sizes of a run.

The code reads sizes from words that the host has written. For each new combination of sizes that
takes a plan of memory and a table of addresses, but no compiler: an executable that shares code and
arena with the others. The arena has room for the largest so far, and grows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ....core.dim import Decisions, SizeVar, evaluate
from ....core.dtype import Array
from ....core.locks import fork_safe_lock
from ....lower.at_sizes import AtSizes
from ....lower.kernels import Kernel
from ....lower.program import Sources
from ....lower.size_numbers import SizeNumber
from ....lower.verify import verified
from ....plan.device import Work
from ....plan.run_plan import Planned, RunPlan
from ....plan.sized import Bound, SizedPlan
from ..codegen.program import ProgramText
from ..codegen.told import Told, told_about
from ..device import CpuDevice
from .analysis import Analysis, Code
from .arena import aligned_empty
from .executable import Executable, linked
from .memory import SizedMemory
from .sharing import Sized, run_lock_of

_lock = fork_safe_lock("sizes")

MOST_BOUND = 256  # combinations of sizes, each with a table of addresses
ROOM = 1.25  # times what is needed, when the arena grows: sizes that follow are often a bit larger


class BoundCode(NamedTuple):
    """Code for many sizes at some of them: how it looks there, what is run, and what it reads."""

    analysis: Analysis
    plan: RunPlan
    words: Array


class SizedCodeText:
    """A program for all sizes that its decisions allow, up to the text of its code."""

    def __init__(self, planned: Planned, decisions: Decisions) -> None:
        assert isinstance(planned.device, CpuDevice), "it was planned for this back end"
        self.device = planned.device
        self.decisions = decisions
        self.plan = SizedPlan(planned.program, planned.device.threads)
        self.analysis = Analysis(planned.program, planned.sources, planned.device, planned.graph)

    def admits(self, sizes: Mapping[SizeVar, int]) -> bool:
        """Tell whether the code is right for some sizes."""
        return self.decisions.hold(sizes)

    def at(self, sizes: Mapping[SizeVar, int]) -> BoundCode:
        """Return the program planned for some sizes."""
        told: dict[int, Told] = {}

        def work(kernel: Kernel, known: Kernel, at: AtSizes) -> Work:
            plan = self.analysis.text.plans[id(kernel)]
            device = self.device
            made = told_about(known, plan, at, device.target, device.threads)
            told[id(kernel)] = made
            return made.work

        bound = self.plan.bind(sizes, work)
        sources = _sources_at(self.analysis.sources, sizes)
        verified(bound.program, sources)
        analysis = self._analysis(bound, sources)
        plan = analysis.plan_with(self.analysis.plan.objects)
        return BoundCode(analysis, plan, self._words(bound, told))

    def _words(self, bound: Bound, told: Mapping[int, Told]) -> Array:
        """Return what the code reads: words of kernels, then those of what calls them."""
        text, words = self.analysis.text, list[int]()
        for key, wanted in text.words.items():
            known = {**bound.told, **told[key].words} if wanted else {}
            words += [evaluate(size, known) for size in wanted]
        words += [evaluate(size, bound.told) for size in text.entry_words]
        return np.array([*words, 0], np.int64)

    def _analysis(self, bound: Bound, sources: Sources) -> Analysis:
        """Return how the code looks for the sizes of an executable."""
        text, schedule = self.analysis.text, bound.program.schedule
        assert schedule is not None, "it is planned"
        kernels = {key: id(kernel) for key, kernel in bound.kernels.items()}
        at = ProgramText(
            schedule,
            text.modules,
            {kernels[key]: name for key, name in text.functions.items()},
            {kernels[key]: words for key, words in text.words.items()},
            entry=text.entry,
            entry_words=text.entry_words,
        )
        assert bound.program.memory is not None
        found = replace(bound.program.memory, places=bound.found)
        return Analysis(bound.program, sources, self.device, self.analysis.graph, at, found)


class SizedExecutable:
    """A program as machine code for all sizes that its decisions allow."""

    def __init__(self, planned: Planned, decisions: Decisions) -> None:
        self.text = SizedCodeText(planned, decisions)
        code = self.text.analysis.code()
        self._library = linked(code.objects, code.plan.entries)
        self._run_lock = run_lock_of(code.plan)
        self._arena: Array = aligned_empty(64)
        self._bound: OrderedDict[tuple[int, ...], Executable] = OrderedDict()

    @property
    def analysis(self) -> Analysis:
        """How the code came about."""
        return self.text.analysis

    @property
    def plan(self) -> SizedPlan:
        """What is planned before sizes are known."""
        return self.text.plan

    @property
    def decisions(self) -> Decisions:
        """For which sizes the code is right."""
        return self.text.decisions

    def admits(self, sizes: Mapping[SizeVar, int]) -> bool:
        """Tell whether the code is right for some sizes."""
        return self.text.admits(sizes)

    def bind(self, sizes: Mapping[SizeVar, int]) -> Executable:
        """Return the executable for some sizes, made at their first use."""
        key = tuple(sizes.values())
        with _lock:
            known = self._bound.get(key)
            if known is None:
                known = self._new(sizes)  # which may empty the table: the arena grows
                self._bound[key] = known
                while len(self._bound) > MOST_BOUND:
                    self._bound.popitem(last=False)
            return known

    def _new(self, sizes: Mapping[SizeVar, int]) -> Executable:
        bound = self.text.at(sizes)
        self._grow(bound.plan.memory.arena_bytes)
        shared = SizedMemory(self._arena, bound.words)
        sized = Sized(self._library, shared, self._run_lock, sizes, self.decisions.conditions)
        return Executable(Code(bound.plan, []), bound.analysis, sized=sized)

    def _grow(self, nbytes: int) -> None:
        """Let the arena have room for so many bytes; others compute in the new one too."""
        if nbytes > len(self._arena):
            self._arena = aligned_empty(int(nbytes * ROOM))
            self._bound.clear()


def _sources_at(sources: Sources, sizes: Mapping[SizeVar, int]) -> Sources:
    """Return what a program's numbers stand for, with numbers that follow from sizes."""
    constants = tuple(c.at(sizes) if isinstance(c, SizeNumber) else c for c in sources.constants)
    return replace(sources, constants=constants)
