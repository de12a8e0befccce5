"""The kernel program: all that a back end sees of a graph.

It is made of numbers and names. What it came from (nodes of the graph) and what it runs on (values
that are fed, constant arrays, states) stands in a table beside it, by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.dim import is_known
from ..core.dtype import DType
from ..core.shape import Shape
from ..graph.node import Node, Value
from ..graph.state import State
from .kernels import Kernel, buffers_of
from .memory import MemoryPlan
from .schedule import RunSchedule
from .storage import Buffer, View, contiguous
from .text import program_text


@dataclass(frozen=True, slots=True)
class StateSlot:
    """A state that a program reads or writes; the counters of random generators are such.

    number   whether it is a Python number
    held     whether its memory is the program's to change in place
    keeper   states with the same one are read and written at once
    """

    name: str
    shape: Shape
    dtype: DType
    number: bool
    held: bool
    keeper: int


@dataclass(frozen=True, repr=False, slots=True)
class KernelProgram:
    """Kernels in the order in which they run, over numbered buffers.

    feeds     how many values each run is given
    states    what it reads and writes between runs
    fetches   where the results lie when the last kernel has run
    commits   numbers of states, and where their new values lie
    flag      where code reports an index out of range, if any is checked
    memory    where the buffers lie, once that is planned
    schedule  how the kernels are called, once that is planned
    donated   which of the feeds are the program's to write over
    """

    kernels: tuple[Kernel, ...]
    buffers: tuple[Buffer, ...]
    feeds: int
    states: tuple[StateSlot, ...]
    fetches: tuple[View, ...]
    commits: tuple[tuple[int, View], ...]
    flag: View | None = None
    memory: MemoryPlan | None = None
    schedule: RunSchedule | None = None
    donated: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return program_text(self)

    @property
    def outputs(self) -> list[View]:
        """Return what is read after the last kernel: fetches, then new values of states."""
        return [*self.fetches, *(view for _, view in self.commits)]

    @property
    def used_buffers(self) -> list[Buffer]:
        """Return the buffers without those of the arena that nothing reads or writes."""
        used = {view.buffer for view in self.outputs}
        used.update(buffer for kernel in self.kernels for buffer in buffers_of(kernel))
        return [b for b in self.buffers if b in used or b.kind not in ("arena", "window")]

    @property
    def is_sized(self) -> bool:
        """Tell whether some of its sizes are those that every run is told."""
        return not all(is_known(buffer.shape) for buffer in self.buffers if buffer.kind != "object")

    def with_kernels(self, kernels: Sequence[Kernel], more: Sequence[Buffer] = ()) -> KernelProgram:
        """Return the program with other kernels and more buffers; itself if nothing differs."""
        same = not more and len(kernels) == len(self.kernels)
        if same and all(a is b for a, b in zip(kernels, self.kernels, strict=True)):
            return self
        return replace(self, kernels=tuple(kernels), buffers=(*self.buffers, *more))


class NewBuffers(list[Buffer]):
    """Buffers to be added to a program, numbered behind its own."""

    def __init__(self, program: KernelProgram) -> None:
        super().__init__()
        self._first = len(program.buffers)

    def arena(self, shape: Shape, dtype: DType, name: str) -> View:
        """Return new memory of the arena."""
        number = self._first + len(self)
        self.append(Buffer("arena", shape, dtype, name, number=number))
        return contiguous(self[-1], shape)


@dataclass(frozen=True, slots=True)
class Sources:
    """What a program's numbers stand for: a table beside it that no kernel needs.

    feeds, constants, states   by the slots of buffers and of the program
    nodes                      by the origins of kernels
    """

    feeds: tuple[Value, ...]
    constants: tuple[np.ndarray[Any, Any], ...]
    states: tuple[State, ...]
    nodes: tuple[Node, ...] = ()

    def origins(self, kernel: Kernel) -> list[Node]:
        """Return the nodes that a kernel computes."""
        return [self.nodes[number] for number in kernel.origins]
