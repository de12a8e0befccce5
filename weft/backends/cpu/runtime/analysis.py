"""How a program became code: what is known of it up to the text. Machine code follows from that."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from ....core.cached_property import cached_property
from ....graph.graph import Graph
from ....lower.memory import MemoryPlan
from ....lower.program import KernelProgram, Sources
from ....plan.run_plan import Planned, RunPlan
from ..codegen.program import ProgramText, write_program
from ..codegen.target import Target
from ..device import CpuDevice
from .objects import begin_object, object_codes, object_key


class Code(NamedTuple):
    """A program ready to be loaded."""

    plan: RunPlan
    objects: list[bytes]


class Analysis:
    """A planned program with its code as text.

    sources   what the numbers of the program stand for
    graph     what was lowered, for people who look inside
    text      of the code, if it is written already
    found     where the code finds everything, if not where the program says that it lies
    """

    def __init__(
        self,
        program: KernelProgram,
        sources: Sources,
        device: CpuDevice,
        graph: Graph | None = None,
        text: ProgramText | None = None,
        found: MemoryPlan | None = None,
    ) -> None:
        self.program, self.sources, self.device, self.graph = program, sources, device, graph
        begin = partial(begin_object, target=self.target)
        self.text = write_program(program, self.target, begin) if text is None else text
        self.found = self.memory if found is None else found

    @cached_property
    def plan(self) -> RunPlan:
        """Return what a run needs to know."""
        texts = self.text.modules.values()
        return self.plan_with([object_key(text, self.target) for text in texts])

    def plan_with(self, objects: list[bytes]) -> RunPlan:
        """Return what a run needs to know, given the keys of the code."""
        program, sources, schedule = self.program, self.sources, self.text.schedule
        return RunPlan(
            self.memory,
            Sources((), sources.constants, sources.states),
            program.fetches,
            program.commits,
            program.flag,
            schedule.steps,
            schedule.names,
            objects,
        )

    @property
    def target(self) -> Target:
        """Return the machine that the code is for."""
        return self.device.target

    @property
    def memory(self) -> MemoryPlan:
        """Return where everything lies."""
        assert self.program.memory is not None, "memory is planned before code is written"
        return self.program.memory

    def code(self) -> Code:
        """Return the machine code with its plan."""
        texts = self.text.modules.values()
        return Code(self.plan, object_codes(texts, self.target))


def analyse(planned: Planned) -> Analysis:
    """Return what a planned program becomes, up to the text of its code."""
    assert isinstance(planned.device, CpuDevice), "it was planned for this back end"
    return Analysis(planned.program, planned.sources, planned.device, planned.graph)
