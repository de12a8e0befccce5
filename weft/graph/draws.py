"""Which random numbers a run draws, what it shows, and where the generators stand afterwards.

In a graph the state of a generator is threaded through the draws in the order in which the program
made them: each takes the state at its place, and `advance_state` moves on behind it. A run that
needs only some of the draws counts only those, as if the program had made no others. One that is
the beginning of another run makes the draws up to the last that it needs, as that one does.

Effects (wf.debug) are threaded in the same way. A run has those that look at what it computes, or
at what is made of that for effects alone; and all if it is asked for the end of their chain, as
functions are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..core.effects import CHAIN
from ..core.rng import Generator
from .graph import Graph
from .node import Node, Value
from .special import ASSIGN, PLACEHOLDER, SOURCES, STATE
from .state import State


class Draws:
    """The threads of generators and of effects through a graph, and what a run makes of them.

    states    all states behind draws: what they depend on is no reason to run anything
    links     those of them that are links of the chain of effects
    alias     states behind draws that are not made, and the states before them
    steps     nodes that only move a generator on, or read where it stands
    skipped   those that belong to draws that are not made
    commits   where each generator stands afterwards
    """

    def __init__(self, graph: Graph, *, begins: bool = False) -> None:
        """Find the threads of a graph; `begins` says that a run is only the beginning of one."""
        self._begins, self._graph = begins, graph
        self.alias: dict[Value, Value] = {}
        self.steps: list[Node] = []
        self.skipped: set[Node] = set()
        self.commits: list[tuple[State, Value]] = []
        self._asked: set[Value] = set()
        self._counts_every = graph.counts_every_draw
        starts = [n for n in graph.nodes if n.op is STATE and is_threaded(n.attrs[0])]
        self._users = graph.users() if starts else {}
        self._threads = [(start, list(self._walk(start.outputs[0]))) for start in starts]
        self.states = {after for _, thread in self._threads for _, _, after in thread}
        self.links = {
            after
            for start, thread in self._threads
            if start.attrs[0].owner is CHAIN
            for _, _, after in thread
        }
        self._alone = self._for_effects() if self.links else set()

    def _walk(self, here: Value) -> Iterator[tuple[Value, list[tuple[Node, Value]], Value]]:
        """Yield each state, the nodes that move the generator on from it, and the next state."""
        while movers := _movers(self._users[here], here):
            after = movers[0][1]
            yield here, movers, after
            here = after

    def ends(self) -> list[tuple[State, Value]]:
        """Return where each generator stands behind all draws of the graph."""
        return [(start.attrs[0], thread[-1][2]) for start, thread in self._threads if thread]

    def stops(self, outputs: Sequence[Value]) -> set[Value]:
        """Return the states that a search for what outputs need goes no further than."""
        self._asked = set(outputs)
        if not self.links:
            return self.states
        written = [x for y in outputs if y.node.op is ASSIGN for x in y.node.inputs]
        asked = not self.links.isdisjoint((*outputs, *written))
        return self.states - self.links if asked else self.states

    def settle(self, needed: set[Node], fed: set[Value]) -> None:
        """Find out which draws and effects a run has that needs these nodes."""
        for start, thread in sorted(self._threads, key=_effects_first):  # which may draw
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
        if mover.op.effect:
            return mover in needed or (not self._begins and self._is_seen(mover, needed))
        counts = self._counts_every and here not in self.links
        return counts or self._is_needed(mover, here, needed)

    def _is_seen(self, effect: Node, needed: set[Node]) -> bool:
        """Tell whether a run computes what an effect looks at; let it compute what is for that."""
        seen = [x for x in effect.inputs[1:] if x is not None]
        near = (y for node in needed for y in (*node.outputs, *node.inputs))
        known = {y for y in near if y is not None} | self._asked | self.states
        further = self._graph.ancestors(seen, known)
        if not all(node in self._alone or _is_there(node) for node in further):
            return False
        self.steps += further
        needed.update(further)
        return True

    def _for_effects(self) -> set[Node]:
        """Return the nodes whose results effects alone look at, in the end.

        What has a name or a gradient is a result of the user's own.
        """
        graph, found = self._graph, set[Node]()
        own = {*graph.given_names, *graph.differentiated, *graph.outputs}
        for node in reversed(graph.nodes):
            users = [user for y in node.outputs for user in self._users[y]]
            alone = users and all(user.op.effect or user in found for user in users)
            if alone and own.isdisjoint(node.outputs):
                found.add(node)
        return {node for node in found if not (node.op.effect or node.op in SOURCES)}

    def _needs(self, movers: list[tuple[Node, Value]], here: Value, needed: set[Node]) -> bool:
        """Tell whether a run needs the draw at a state."""
        return any(self._is_needed(mover, here, needed) for mover, _ in movers)

    def _is_needed(self, mover: Node, here: Value, needed: set[Node]) -> bool:
        """Tell whether a run needs the draw behind which a node moves the generator."""
        if mover.op.effect or mover.op.communicates or not mover.op.advances:
            return mover in needed
        return any(user in needed for user in self._users[here] if not user.op.advances)


def alive_nodes(graph: Graph, outputs: Sequence[Value], draws: Draws) -> set[Node]:
    """Return the nodes that a run which fetches all outputs takes."""
    alive = set(graph.ancestors(outputs, draws.stops(outputs)))
    draws.settle(set(alive), set())
    states = (value for value in outputs if value in draws.states)
    return alive | {*draws.steps, *(draws.alias.get(value, value).node for value in states)}


def is_threaded(state: State) -> bool:
    """Tell whether a state is threaded through what uses it: that of a generator, or the chain."""
    return isinstance(state.owner, Generator) or state.owner is CHAIN


def _is_there(node: Node) -> bool:
    """Tell whether the value of a node is there in every run."""
    return node.op in SOURCES and node.op is not PLACEHOLDER


def _effects_first(thread: tuple[Node, Any]) -> bool:
    return thread[0].attrs[0].owner is not CHAIN


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
