"""All that the compiler knows of a program: kernels, memory, text. Machine code follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ....core.threads import get_num_threads
from ....graph.graph import Graph
from ....graph.state import State
from ....lower.fetches import with_own_memory
from ....lower.lowering import Lowered
from ..codegen.gemm.kernel import give_scratch
from ..codegen.gemm.prologue import with_prologues
from ..codegen.program import write_program
from ..codegen.target import Target, host
from .layout import Layout
from .objects import object_code, object_key
from .plan import Plan


class Analysis:
    """A static graph on its way to machine code.

    Its outputs are the fetches, then the new values of states.
    """

    def __init__(
        self, graph: Graph, fetches: int, commits: Sequence[State], target: Target | None = None
    ) -> None:
        self.graph = graph
        self.target = host() if target is None else target
        self.lowered = Lowered(graph)
        threads = get_num_threads()
        self.lowered.rewrite(partial(with_prologues, self.target, threads))
        self.lowered.copies += give_scratch(self.lowered.kernels, self.target, threads)
        outputs = self.lowered.outputs
        changed = outputs[fetches:]
        fetched = with_own_memory(self.lowered, outputs[:fetches], changed)
        written = list(zip(commits, changed, strict=True))
        self.outputs = [*fetched, *changed]
        self.layout = Layout(self.lowered, fetched, written)
        self.text = write_program(self.lowered.kernels, self.layout.places, self.target)
        self.plan = Plan(
            self.layout,
            self.outputs,
            self.lowered.flag,
            self.text.steps,
            self.text.entries,
            [object_key(text, self.target) for text in self.text.modules.values()],
        )

    def objects(self) -> list[bytes]:
        """Return the machine code."""
        return [object_code(text, self.target) for text in self.text.modules.values()]
