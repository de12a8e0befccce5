"""All that the compiler knows of a program: kernels, memory, text. Machine code follows from it."""

from __future__ import annotations

from collections.abc import Sequence

from ....core.threads import get_num_threads
from ....graph.graph import Graph
from ....graph.state import State
from ....lower.fetches import with_own_memory
from ....lower.lowering import lower
from ....lower.program import Sources
from ..codegen.gemm.kernel import with_scratch
from ..codegen.gemm.prologue import with_prologues
from ..codegen.program import write_program
from ..codegen.target import Target, host
from .layout import Layout
from .objects import object_code, object_key
from .plan import Plan


class Arranged:
    """A static graph as kernels, and where everything lies."""

    def __init__(
        self, graph: Graph, commits: Sequence[State], target: Target | None = None
    ) -> None:
        self.graph = graph
        self.target = host() if target is None else target
        threads = get_num_threads()
        program, self.sources = lower(graph, commits)
        program = with_prologues(program, self.target, threads)
        program = with_scratch(program, self.target, threads)
        self.program = with_own_memory(program)
        self.layout = Layout(self.program)


class Analysis(Arranged):
    """A static graph on its way to machine code."""

    def __init__(
        self, graph: Graph, commits: Sequence[State], target: Target | None = None
    ) -> None:
        super().__init__(graph, commits, target)
        program = self.program
        self.text = write_program(program.kernels, self.layout.places, self.target)
        self.plan = Plan(
            self.layout,
            Sources((), self.sources.constants, self.sources.states),
            program.outputs,
            program.flag,
            self.text.steps,
            self.text.entries,
            [object_key(text, self.target) for text in self.text.modules.values()],
        )

    def objects(self) -> list[bytes]:
        """Return the machine code."""
        return [object_code(text, self.target) for text in self.text.modules.values()]
