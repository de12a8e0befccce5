"""States that the host keeps, of a program on a device: their new values are computed by the host.

The count of steps, the position of a random generator: numbers that a step advances by what it
knows already. A device would compute them as well, but to hand them back the host would have to
wait for it in every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..backends.protocol import Array, Runnable
from ..backends.states import STATES
from ..core.dispatch import group
from ..core.shape import size_of
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import CONSTANT, STATE
from ..graph.state import State

SMALL = 16  # elements of a value that the host computes


class HostCommits(NamedTuple):
    """New values of states that the host computes.

    nodes    what is run for them, in order
    commits  states, and their new values
    """

    nodes: list[Node]
    commits: list[tuple[State, Value]]

    def computed(self) -> list[tuple[State, Array]]:
        """Return the states with their new values, from what states are now."""
        known: dict[Value | None, Any] = {None: None}
        with np.errstate(all="ignore"):
            for node in self.nodes:
                known.update(zip(node.outputs, _results(node, known), strict=True))
        return [(state, known[value]) for state, value in self.commits]


def host_commits(graph: Graph, commits: Sequence[tuple[State, Value]]) -> HostCommits:
    """Return those commits of a graph, whose sizes are known, that the host computes."""
    ours, needed = list[tuple[State, Value]](), set[Node]()
    for state, value in commits:
        behind = set(graph.ancestors([value]))
        if not state.held and all(map(_is_hosts, behind)):
            ours.append((state, value))
            needed |= behind
    return HostCommits([node for node in graph.nodes if node in needed], ours)


def _is_hosts(node: Node) -> bool:
    """Tell whether the host can compute a node: from its own states and constants, and soon."""
    if node.op is STATE:
        return not node.attrs[0].held
    small = all(size_of(value.shape) <= SMALL for value in node.outputs)
    return small and (node.op is CONSTANT or (bool(node.inputs) and hasattr(node.op, "samples")))


def _results(node: Node, known: dict[Value | None, Any]) -> Sequence[Any]:
    if node.op is STATE:
        return [node.attrs[0].read()]
    if node.op is CONSTANT:
        return [node.attrs[0].array]
    operands = [known[x] for x in node.inputs]
    made = node.op.kernel(*group(node.op, operands), *node.attrs)
    return [np.asarray(made)] if node.op.outputs == 1 else [np.asarray(y) for y in made]


class WithHostStates:
    """A program on a device, and the states that the host advances when it has run."""

    checks_feeds = False

    def __init__(self, inner: Runnable, host: HostCommits) -> None:
        self.inner, self.host = inner, host

    def run(self, feeds: Sequence[Any]) -> list[Any]:
        """Run, write the states, return the fetches."""
        with STATES:
            changed = self.host.computed()
            fetched = self.inner.run(feeds)
            for state, value in changed:
                state.write(value)
        return fetched

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __repr__(self) -> str:
        return repr(self.inner)
