"""What planning gives: a program for a device, and what a run needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ..graph.graph import Graph
from ..lower.memory import MemoryPlan
from ..lower.program import KernelProgram, Sources
from ..lower.storage import View
from .device import Device


@dataclass(frozen=True)
class RunPlan:
    """What a run needs to know.

    memory    where everything lies
    sources   the constants and states that numbers stand for
    fetches   where the results lie
    commits   states by number, and where their new values lie
    flag      where code reports an index out of range, if it checks any
    steps     names of functions, operators that the host calls, control flow around those
    entries   the names of these functions
    objects   the keys of the code that holds them
    """

    memory: MemoryPlan
    sources: Sources
    fetches: tuple[View, ...]
    commits: tuple[tuple[int, View], ...]
    flag: View | None
    steps: tuple[Any, ...]
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


class Planned(NamedTuple):
    """What a program becomes before its code is written.

    graph     what was lowered, for people who look inside
    sources   what the numbers of the program stand for
    device    what it was planned for
    """

    graph: Graph
    program: KernelProgram
    sources: Sources
    device: Device
