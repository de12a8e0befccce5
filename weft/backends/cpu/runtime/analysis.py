"""How a program became code: what is known of it up to the text. Machine code follows from that."""

from __future__ import annotations

from ....graph.graph import Graph
from ....lower.memory import MemoryPlan
from ....lower.program import KernelProgram, Sources
from ....plan.run_plan import RunPlan
from ..codegen.program import write_program
from ..codegen.target import Target
from ..device import CpuDevice
from .objects import object_code, object_key


class Analysis:
    """A planned program with its code as text.

    sources   what the numbers of the program stand for
    graph     what was lowered, for people who look inside
    """

    def __init__(
        self,
        program: KernelProgram,
        sources: Sources,
        device: CpuDevice,
        graph: Graph | None = None,
    ) -> None:
        self.program, self.sources, self.device, self.graph = program, sources, device, graph
        self.text = write_program(program, self.target)
        self.plan = RunPlan(
            self.memory,
            Sources((), sources.constants, sources.states),
            program.fetches,
            program.commits,
            program.flag,
            self.text.schedule.steps,
            self.text.schedule.names,
            [object_key(text, self.target) for text in self.text.modules.values()],
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

    def objects(self) -> list[bytes]:
        """Return the machine code."""
        return [object_code(text, self.target) for text in self.text.modules.values()]
