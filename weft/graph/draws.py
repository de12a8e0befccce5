"""Which random numbers a run draws, and where the generator stands afterwards.

In a graph the state of a generator is threaded through the draws in the order in which the program
made them: each takes the state at its place, and `advance_state` moves on behind it. A run that
needs only some of the draws counts only those, as if the program had made no others. One that is
the beginning of another run makes the draws up to the last that it needs, as that one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..core.rng import Generator
from .graph import Graph
from .node import Node, Value
from .special import STATE
from .state import State


class Draws:
    """The threads of generator states through a graph, and what a run makes of them.

    states    all states behind draws: what they depend on is no reason to run anything
    alias     states behind draws that are not made, and the states before them
    steps     nodes that only move a generator on, or read where it stands
    skipped   those that belong to draws that are not made
    commits   where each generator stands afterwards
    """

    def __init__(self, graph: Graph, *, begins: bool = False) -> None:
        """Find the threads of a graph; `begins` says that a run is only the beginning of one."""
        self._begins = begins
        self.alias: dict[Value, Value] = {}
        self.steps: list[Node] = []
        self.skipped: set[Node] = set()
        self.commits: list[tuple[State, Value]] = []
        self._counts_every = graph.counts_every_draw
        starts = [
            n for n in graph.nodes if n.op is STATE and isinstance(n.attrs[0].owner, Generator)
        ]
        self._users = graph.users() if starts else {}
        self._threads = [(start, list(self._walk(start.outputs[0]))) for start in starts]
        self.states = {after for _, thread in self._threads for _, _, after in thread}

    def _walk(self, here: Value) -> Iterator[tuple[Value, list[tuple[Node, Value]], Value]]:
        """Yield each state, the nodes that move the generator on from it, and the next state."""
        while movers := _movers(self._users[here], here):
            after = movers[0][1]
            yield here, movers, after
            here = after

    def ends(self) -> list[tuple[State, Value]]:
        """Return where each generator stands behind all draws of the graph."""
        return [(start.attrs[0], thread[-1][2]) for start, thread in self._threads if thread]

    def settle(self, needed: set[Node], fed: set[Value]) -> None:
        """Find out which draws a run makes that needs these nodes."""
        for start, thread in self._threads:
            first = start.outputs[0]
            if first not in fed:
                self._follow(start, thread, needed)

    def _follow(self, start: Node, thread: list[Any], needed: set[Node]) -> None:
        state = start.outputs[0]
        drawn = False
        if self._begins:
            made = [i for i, (here, by, _) in enumerate(thread) if self._needs(by, here, needed)]
            thread = thread[: max(made, default=-1) + 1]
        for here, movers, after in thread:
            move = next((pair for pair in movers if self._is_made(pair[0], here, needed)), None)
            if move is not None:
                drawn, state = True, move[1]
                self.steps.append(move[0])
            else:
                self.skipped.add(movers[0][0])
            if state is not after:  # not drawn, or by the same loop extended for its gradient
                self.alias[after] = state
        if drawn:
            self.steps.append(start)
            self.commits.append((start.attrs[0], state))

    def _is_made(self, mover: Node, here: Value, needed: set[Node]) -> bool:
        """Tell whether a run makes, or counts, the draw behind which a node moves the generator."""
        return self._counts_every or self._is_needed(mover, here, needed)

    def _needs(self, movers: list[tuple[Node, Value]], here: Value, needed: set[Node]) -> bool:
        """Tell whether a run needs the draw at a state."""
        return any(self._is_needed(mover, here, needed) for mover, _ in movers)

    def _is_needed(self, mover: Node, here: Value, needed: set[Node]) -> bool:
        """Tell whether a run needs the draw behind which a node moves the generator."""
        if not mover.op.advances:
            return mover in needed
        return any(user in needed for user in self._users[here] if not user.op.advances)


def alive_nodes(graph: Graph, outputs: Sequence[Value], draws: Draws) -> set[Node]:
    """Return the nodes that a run which fetches all outputs takes."""
    alive = set(graph.ancestors(outputs, draws.states))
    draws.settle(set(alive), set())
    states = (value for value in outputs if value in draws.states)
    return alive | {*draws.steps, *(draws.alias.get(value, value).node for value in states)}


def _movers(users: Sequence[Node], here: Value) -> list[tuple[Node, Value]]:
    """Return the nodes that move a generator on from a state, and the states behind them."""
    found = []
    for user in users:
        if user.op.advances:
            found.append((user, user.outputs[0]))
        for position, output in getattr(user.op, "threads", _no_threads)(user):
            if user.inputs[position] is here:
                found.append((user, user.outputs[output]))
    return found


def _no_threads(node: Node) -> tuple[tuple[int, int], ...]:
    return ()
