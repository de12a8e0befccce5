"""What a run needs to know of a program, apart from its machine code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ....lower.memory import MemoryPlan
from ....lower.program import Sources
from ....lower.storage import View


@dataclass(frozen=True)
class RunPlan:
    """What a run needs to know.

    memory    where everything lies
    sources   the constants and states that numbers stand for
    fetches   where the results lie
    commits   states by number, and where their new values lie
    flag      where code reports an index out of range, if it checks any
    steps     names of native functions, reference kernels to call, control flow around those
    entries   the names of these functions
    objects   the keys of the machine code that holds them
    """

    memory: MemoryPlan
    sources: Sources
    fetches: tuple[View, ...]
    commits: tuple[tuple[int, View], ...]
    flag: View | None
    steps: list[Any]
    entries: list[str]
    objects: list[bytes]

    @property
    def outputs(self) -> list[View]:
        """Return where the fetches lie, then the new values of states."""
        return [*self.fetches, *(view for _, view in self.commits)]

    @property
    def writes(self) -> bool:
        """Tell whether it writes states."""
        return bool(self.commits)

    @property
    def calls_library(self) -> bool:
        """Tell whether Python takes a step itself."""
        return any(not isinstance(step, str) for step in self.steps)


class Code(NamedTuple):
    """A program ready to be loaded."""

    plan: RunPlan
    objects: list[bytes]
