"""Number what lowering made, so that a program refers to nothing outside of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..graph.graph import Graph
from ..graph.node import Node
from ..graph.state import State, by_keeper
from .kernels import Kernel, all_within
from .program import KernelProgram, Sources, StateSlot
from .storage import Buffer, View


class Numbering:
    """Numbers buffers in a given order; `given` are the values, arrays and states behind them."""

    def __init__(
        self, graph: Graph, buffers: Sequence[Buffer], given: Mapping[Buffer, Any]
    ) -> None:
        self.graph = graph
        self.given = given
        self.constants: list[Any] = []
        self.states: dict[State, int] = {}
        self._feeds = {value: i for i, value in enumerate(graph.inputs)}
        self._places = {buffer: i for i, buffer in enumerate(buffers)}
        self.made: dict[Buffer, Buffer] = {}
        for buffer in buffers:
            self._add(buffer)

    def _add(self, buffer: Buffer) -> Buffer:
        if buffer not in self.made:
            window = buffer.window
            if window is not None:
                moved, word = self._add(window.buffer), self._add(window.word)
                window = replace(window, buffer=moved, word=word)
            # A window in a window is part of no view.
            number, slot = self._places.setdefault(buffer, len(self._places)), self._slot(buffer)
            type = (buffer.kind, buffer.shape, buffer.dtype, buffer.name)
            self.made[buffer] = Buffer(*type, slot, number, window)
        return self.made[buffer]

    def _slot(self, buffer: Buffer) -> int:
        if buffer.kind == "feed":
            return self._feeds[self.given[buffer]]
        if buffer.kind == "state":
            return self.states.setdefault(self.given[buffer], len(self.states))
        if buffer.kind != "constant":
            return -1
        self.constants.append(self.given[buffer])
        return len(self.constants) - 1

    def program(
        self,
        kernels: Sequence[Kernel],
        outputs: Sequence[View],
        commits: Sequence[State],
        flag: View | None,
        nodes: Sequence[Node],
    ) -> tuple[KernelProgram, Sources]:
        """Return kernels as a program; the last of the outputs are new values of states."""
        views = [view.within(self.made) for view in outputs]
        fetches = len(views) - len(commits)
        written = [self.states.setdefault(state, len(self.states)) for state in commits]
        last = dict(zip(written, views[fetches:], strict=True))  # a later commit wins
        program = KernelProgram(
            all_within(kernels, self.made),
            tuple(self.made[buffer] for buffer in self._places),
            len(self.graph.inputs),
            _slots(list(self.states)),
            tuple(views[:fetches]),
            tuple(last.items()),
            None if flag is None else flag.within(self.made),
        )
        given = (tuple(self.graph.inputs), tuple(self.constants), tuple(self.states))
        return program, Sources(*given, tuple(nodes))


def _slots(states: Sequence[State]) -> tuple[StateSlot, ...]:
    keepers = by_keeper(states)
    return tuple(
        StateSlot(s.name, s.type.shape, s.type.dtype, s.number, s.held, keepers[s]) for s in states
    )
