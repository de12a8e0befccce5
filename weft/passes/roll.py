"""Roll loops: repeated nodes of a recorded program become one scan.

A program that is recorded while it runs has every trip of its loops. Nodes that repeat, and whose
operands come from the same places in each trip, become the body of a scan:

    carries    what a step takes of the steps before it, states of random generators too
    xs         rows of a stack: x[t], x[:, n - t], what unbind gives, results of an earlier loop,
               and constants that differ from trip to trip
    captured   what is the same in every trip

What is needed outside is the last carry, or a row of what the loop stacks; a stack or concat of
rows takes the whole. Loops that would have to copy parameters into a stack are left as they are, so
that a walk over layers stays a walk over layers. Bodies are rolled likewise, so that nested loops
become nested scans.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..graph.control.ops import ControlOp
from ..graph.draws import Draws
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import PLACEHOLDER, STATE
from .dce import alive_nodes, remove_dead
from .rewrite import Rebuild, pass_over, same_nodes
from .rolling.alphabet import Alphabet
from .rolling.builder import LoopBuilder, Results
from .rolling.repeats import Repeat, apart_from_one_another, find_repeats
from .rolling.sources import sources_of, with_plain_fills
from .rolling.stacks import JOINS, LoopStack, StackMaker, common_stack, rows_by_index
from .rolling.trips import LOOSE, ROWS, SAME, RecordedLoop, Trips

LEAST_TRIPS = 8  # fewer compile quickly, and without a loop they fuse and overlap
LEAST_NODES = 32  # from here on a loop compiles in less than half the time, and runs as fast
MAX_ROUNDS = 4  # loops of loops: a round more for each level that rolling makes visible
MOST_PHASES = 4  # bodies of how many trips are tried, for cells that take turns


def roll(
    graph: Graph, outputs: Sequence[Value] | None = None, *, apart: Collection[Value] = ()
) -> Graph:
    """Return the graph with repeated nodes as scans.

    apart   values that must stay results of nodes of their own, such as those with respect to which
            gradients will be taken
    """
    inner = _with_rolled_bodies(graph, outputs)
    made = with_plain_fills(inner, outputs if inner is graph else None)
    rolled = None
    for _ in range(MAX_ROUNDS):
        rolling = _Rolling(made, outputs if made is graph else None, apart)
        if not rolling.loops:
            break
        made = rolled = remove_dead(rolling.rolled())  # without rows that stacks stand for
    if rolled is not None:
        return rolled
    return remove_dead(graph, outputs) if inner is graph and outputs is not None else inner


def _with_rolled_bodies(graph: Graph, outputs: Sequence[Value] | None) -> Graph:
    """Return the graph with bodies of control flow rolled; itself if there is nothing to roll."""
    if not any(isinstance(node.op, ControlOp) for node in graph.nodes):
        return graph
    made = pass_over(graph, outputs, lambda rebuild, node: None, roll)
    return graph if same_nodes(made, graph) else made


class _Rolling:
    """A graph whose loops are found, and rolled."""

    def __init__(
        self, graph: Graph, outputs: Sequence[Value] | None, apart: Collection[Value]
    ) -> None:
        draws = Draws(graph)
        kept = graph.results() if outputs is None else list(outputs)
        self.alive = alive_nodes(graph, kept, draws)
        if draws.skipped:  # so that a loop makes all its draws, or none
            graph = remove_dead(graph, kept)
            kept = graph.outputs
            self.alive = alive_nodes(graph, kept, Draws(graph))
        self.rebuild = Rebuild(graph, kept)
        self.sources = sources_of(graph)
        self.sequence = [node for node in graph.nodes if node not in self.sources]
        self.trips = Trips(self.sequence, self.rows_of, LEAST_TRIPS)
        self.loops: list[RecordedLoop] = []
        self._loop_at: list[RecordedLoop | None] = [None] * len(self.sequence)
        fixed = {graph.aliases.get(value, value).node for value in apart}
        letters = Alphabet(fixed).spell(self.sequence)
        found = find_repeats(letters, LEAST_TRIPS)
        self._find([repeat for repeat in found if repeat.length >= LEAST_NODES])
        self.loops.sort(key=lambda loop: loop.start)
        self._revive()
        self.stacks: dict[LoopStack, Value] = {}

    # -- finding loops -----------------------------------------------------------------------------

    def _find(self, repeats: list[Repeat]) -> None:
        """Find loops among repeats: the longest first, then others where those gave none."""
        free = np.ones(len(self.sequence), np.bool_)
        while repeats:
            chosen, repeats = apart_from_one_another(repeats, free, LEAST_TRIPS)
            for repeat in chosen:  # from left to right: a loop may take the results of another
                for loop in self._loops(repeat):
                    free[loop.start : loop.stop] = False

    def _loops(self, repeat: Repeat) -> Iterator[RecordedLoop]:
        """Yield the loops that are worth it; take several trips for one if there are none."""
        for phases in range(1, MOST_PHASES + 1):
            wider = repeat._replace(period=repeat.period * phases)
            found = False
            for loop in self.trips.loops(wider):
                loop.leave_out(self.alive)
                if _pays(loop):
                    self._accept(loop)
                    found = True
                    yield loop
            if found:
                return

    def _accept(self, loop: RecordedLoop) -> None:
        self.loops.append(loop)
        for i in range(loop.start, loop.stop):
            if (i - loop.start) % loop.period in loop.places:
                self._loop_at[i] = loop

    def _loop_of(self, node: Node) -> RecordedLoop | None:
        position = self.trips.position.get(node)
        return None if position is None else self._loop_at[position]

    def rows_of(self, value: Value) -> Mapping[Hashable, int]:
        """Return the stacks of which a value is a row, and which row."""
        found = rows_by_index(value)
        row = self._row_of_loop(value)
        return found if row is None else {**found, row[0]: row[1]}

    def _row_of_loop(self, value: Value) -> tuple[LoopStack, int] | None:
        loop = self._loop_of(value.node)
        if loop is None:
            return None
        trip, place = divmod(self.trips.position[value.node] - loop.start, loop.period)
        return LoopStack(loop, place, value.index), trip

    def _revive(self) -> None:
        """Let everything live that loops take: a trip may compute what only the others need."""
        pending = [value for loop in self.loops for value in self._taken_by(loop)]
        while pending:
            node = pending.pop().node
            if node not in self.alive and self._loop_of(node) is None:
                self.alive.add(node)
                pending += [x for x in node.inputs if x is not None]

    # -- what loops must give ----------------------------------------------------------------------

    def _needed(self) -> dict[RecordedLoop, Results]:
        """Return the results of loops that are needed outside of them, and of which trips."""
        found: dict[RecordedLoop, Results] = {loop: {} for loop in self.loops}
        for value in self._taken_outside():
            row = self._row_of_loop(value)
            if row is not None:
                stack, trip = row
                result = found[stack.loop].setdefault((stack.place, stack.output), set())
                result.add(trip)
        return found

    def _taken_outside(self) -> Iterator[Value]:
        yield from self.rebuild.outputs
        for node in self.sequence:
            if node in self.alive and self._loop_of(node) is None:
                yield from (x for x in node.inputs if x is not None)
        for loop in self.loops:
            yield from self._taken_by(loop)

    def _taken_by(self, loop: RecordedLoop) -> Iterator[Value]:
        """Yield what a loop takes from outside."""
        for operand in (operand for place in loop.body() for operand in loop.operands[place]):
            if operand.link is not None:
                yield from operand.values
            elif operand.kind is SAME:
                yield operand.values[0]
            elif operand.kind is LOOSE:
                yield from operand.values
            elif operand.kind is ROWS:
                rows = [self.rows_of(value) for value in operand.values]
                stack, _ = common_stack(operand.stacks, rows)
                yield from operand.values if isinstance(stack, LoopStack) else (stack.x,)

    # -- the new graph -----------------------------------------------------------------------------

    def rolled(self) -> Graph:
        """Return the graph with its loops rolled."""
        needed = self._needed()
        for node in self.rebuild.old.nodes:
            if node.op in (PLACEHOLDER, STATE):
                self.rebuild.place(node, node)
        starts = {loop.start: loop for loop in self.loops}
        for position, node in enumerate(self.sequence):
            if position in starts:
                self._place_loop(starts[position], needed[starts[position]])
            if node in self.alive and self._loop_at[position] is None:
                self._place(node)
        for value in self.rebuild.outputs:
            self.now(value)
        return self.rebuild.finish()

    def _place_loop(self, loop: RecordedLoop, results: Results) -> None:
        builder = LoopBuilder(self.rebuild, loop, self.now, self.rows_of, self.stacks)
        self.stacks |= builder.build(results, roll)

    def _place(self, node: Node) -> None:
        """Place a node that is in no loop."""
        parts = list(self._parts(node)) if node.op in JOINS else []
        if any(stack is not None for stack, _ in parts):
            self._place_join(node, parts)
            return
        for x in node.inputs:
            if x is not None:
                self.now(x)
        self.rebuild.place(node, self.rebuild.current(node))

    def now(self, value: Value) -> Value:
        """Return what a value is in the new graph: placed, if it is a source or a row of a loop."""
        known = self.rebuild.value(value)
        if known is not value or known in self.rebuild.graph:
            return known
        if value.node in self.sources:
            self._place(value.node)
        else:
            row = self._row_of_loop(value)
            assert row is not None
            stack, trip = row
            maker = StackMaker(self.rebuild.make, value.node)
            self.rebuild.redirect(value, maker.indexed(self.stacks[stack], (trip,)))
        return self.rebuild.value(value)

    # -- joins -------------------------------------------------------------------------------------

    def _parts(self, node: Node) -> Iterator[tuple[LoopStack | None, list[Any]]]:
        """Yield what is joined: rows of a stack in turn, or values that are no rows."""
        stack: LoopStack | None = None
        found: list[Any] = []
        for value in node.inputs:
            assert value is not None
            row = self._row_of_loop(value)
            if row is None or row[0] not in self.stacks or row[0] != stack:
                if found:
                    yield stack, found
                stack, found = None, []
            if row is not None and row[0] in self.stacks:
                stack = row[0]
                found.append(row[1])
            else:
                yield None, [value]
        if found:
            yield stack, found

    def _place_join(self, node: Node, parts: Sequence[tuple[LoopStack | None, list[Any]]]) -> None:
        maker = StackMaker(self.rebuild.make, node)
        made = [
            (self.now(found[0]), False)
            if stack is None
            else (maker.rows(self.stacks[stack], 0, found), True)
            for stack, found in parts
        ]
        self.rebuild.replace(node, [maker.joined(node, made)])


def _pays(loop: RecordedLoop) -> bool:
    """Tell whether a loop should be rolled: it is long enough, copies little, is in one place."""
    enough = loop.trips * len(loop.places) >= LEAST_NODES
    devices = {loop.node(0, place).device for place in loop.places}
    return enough and len(devices) == 1 and loop.copies_little()
