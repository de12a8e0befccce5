"""What a function computes on one path, or on several that are joined: a program to be."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.rng import Generator
from ..graph.draws import Draws
from ..graph.graph import Graph
from ..graph.node import Value
from ..graph.run import Program
from ..graph.state import State
from ..passes.dce import remove_dead
from .looks import PathCondition, check
from .outside import Getter

if TYPE_CHECKING:
    from .recorded_call import RecordedCall


class NotJoinedError(Exception):
    """Two paths cannot be one program."""


@dataclass(frozen=True)
class PathFlow:
    """A graph with all that is asked of it.

    keys         what its placeholders stand for, the same in all recordings of a function
    feeds        how to find, in a call, what those are
    fetches      values that are needed outside; of several paths the first is the path's number
    slots        which fetches each path has, by its number
    commits      what states are in the end, by the keys of states; generators too
    conditions   under which it is right, in the order in which Python asked
    """

    graph: Graph
    keys: Mapping[Value, Hashable]
    feeds: Mapping[Hashable, Getter]
    fetches: list[Value]
    slots: Mapping[int, list[int]]
    commits: Mapping[tuple[int, str], tuple[State, Value]]
    conditions: list[PathCondition]

    def program(self) -> tuple[Program, list[Getter]]:
        """Return it as a program, and how to find what that is fed."""
        graph = self.graph
        targets = [
            graph.tracer.commit(state, value)
            for state, value in self.commits.values()
            if not isinstance(state.owner, Generator)
        ]
        checked = [check(graph, self.conditions)] if self.conditions else []
        fetches = [*self.fetches, *checked]
        needed = set(graph.ancestors([*fetches, *targets]))
        fed = [value for value in self.keys if value.node in needed]
        program = Program(graph, fetches, fed, targets)
        program.takes_one_path = bool(self.conditions)
        return program, [self.feeds[self.keys[x]] for x in fed]


def flow_of(recording: RecordedCall, number: int) -> PathFlow:
    """Return what a recording computes, as the path of a number."""
    asked = [condition.value for condition in recording.conditions]
    kept = [*recording.fetches, *recording.targets, *asked]
    graph = remove_dead(recording.final, kept)
    now = {value: graph.aliases.get(value, value) for value in (*kept, *recording.keys)}
    path = graph.tracer.constant(np.array(number)).value
    return PathFlow(
        graph,
        {now[value]: key for value, key in recording.keys.items()},
        {key: recording.given[value] for value, key in recording.keys.items()},
        [path, *(now[value] for value in recording.fetches)],
        {number: list(range(1, 1 + len(recording.fetches)))},
        _commits(graph, [now[value] for value in recording.targets]),
        [one._replace(value=now[one.value]) for one in recording.conditions],
    )


def _commits(graph: Graph, targets: list[Value]) -> dict[tuple[int, str], tuple[State, Value]]:
    """Return what states are in the end: of generators, and those that are written."""
    draws = Draws(graph)
    draws.settle(set(graph.nodes), set())
    written: list[tuple[State, Any]] = [(y.node.attrs[0], y.node.inputs[0]) for y in targets]
    return {state.key: (state, value) for state, value in (*draws.commits, *written)}
