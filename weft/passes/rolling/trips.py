"""Compare the trips of a repeat: which of them are steps of one loop, and what a step takes.

Trip by trip, every operand of every node must come from where it came in the trip before: from the
same place of this trip or of one a few trips ago, from one value outside, or from outside values
that are rows of one stack, constants, or at least no states, whose copies would cost memory. Where
that ends, the loop ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...core.dim import typical
from ...core.shape import size_of
from ...graph.node import Node, Value
from ...graph.special import CONSTANT, STATE
from .phases import best_phase
from .repeats import Repeat

MAX_LAG = 4  # trips back that a step may look: each is a value more to carry
SAME, CONSTANTS, ROWS, LOOSE = "the same value", "constants", "rows of a stack", "loose values"

RowsOf = Callable[[Value], Mapping[Hashable, int]]


class StepResult(NamedTuple):
    """A result of a step: how many trips ago, at which place of the body, and which result."""

    lag: int
    place: int
    output: int


class StepOperand:
    """An operand of a step: a link to a result of a step, or values from outside, trip by trip.

    values   what comes from outside; with a link, only in the first trips
    stacks   the stacks of which all values are rows, once there are too many for a link
    """

    __slots__ = ("kind", "link", "stacks", "values")

    def __init__(self) -> None:
        self.link: StepResult | None = None
        self.values: list[Value] = []
        self.kind: str | None = None
        self.stacks: set[Hashable] = set()

    def takes_step(self, link: StepResult, result: Value) -> bool:
        """Tell whether this trip may take a result of a step."""
        if self.link is None:
            early = self.values
            fits = link.lag == len(early) <= MAX_LAG and self.kind is None
            if not fits or any(value.type != result.type for value in early):
                return False
            self.link = link
        return self.link == link

    def takes_value(self, value: Value, rows_of: RowsOf) -> bool:
        """Tell whether this trip may take a value from outside."""
        if self.link is not None:
            return False
        self.values.append(value)
        if self.kind is None and len(self.values) <= MAX_LAG:
            return True  # it may be what a carry starts from
        if self.kind is None:
            return self._settle(rows_of)
        return self._continues(value, rows_of)

    def _settle(self, rows_of: RowsOf) -> bool:
        """Find out what the values have in common."""
        first, *others = self.values
        if all(value is first for value in others):
            self.kind = SAME
        elif all(value.type == first.type for value in others):
            if all(value.node.op is CONSTANT for value in self.values):
                self.kind = CONSTANTS
            else:
                self.stacks = set.intersection(*(set(rows_of(value)) for value in self.values))
                loose = not any(map(is_state, self.values))
                self.kind = ROWS if self.stacks else LOOSE if loose else None
        return self.kind is not None

    def _continues(self, value: Value, rows_of: RowsOf) -> bool:
        if self.kind is SAME:
            return value is self.values[0]
        if value.type != self.values[0].type:
            return False
        if self.kind is CONSTANTS:
            return value.node.op is CONSTANT
        if self.kind is LOOSE:
            return not is_state(value)
        left = self.stacks & set(rows_of(value))
        self.stacks = left or self.stacks  # those of the trips so far
        return bool(left)


def is_state(value: Value) -> bool:
    """Tell whether a value is a state, a view of one, or what processes have gathered of one."""
    while value.node.op is not STATE:
        op, inputs = value.node.op, value.node.inputs or (None,)
        source = inputs[1] if op.communicates else inputs[0]
        if source is None or not (op.communicates or op.is_view):
            return False
        value = source
    return True


class RecordedLoop:
    """Trips of a repeat that are steps of one loop.

    start      where in the sequence of nodes the first trip begins
    period     how many nodes a trip has
    trips      how many there are
    operands   what each node of a trip takes
    places     the places of the body that become steps; the others are left where they are,
               because hardly any trip needs what they make
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        start: int,
        period: int,
        trips: int,
        operands: list[list[StepOperand]],
    ) -> None:
        self.nodes = nodes
        self.start, self.period, self.trips = start, period, trips
        self.operands = operands
        self.places: set[int] = set(range(period))
        for operand in (operand for taken in operands for operand in taken):
            del operand.values[trips:]  # of a trip that did not fit

    @property
    def stop(self) -> int:
        """Return where in the sequence of nodes it ends."""
        return self.start + self.period * self.trips

    def node(self, trip: int, place: int) -> Node:
        """Return a node of a trip."""
        return self.nodes[self.start + trip * self.period + place]

    def column(self, place: int) -> list[Node]:
        """Return what stands at a place of the body, trip by trip."""
        return list(self.nodes[self.start + place : self.stop : self.period])

    def body(self) -> Iterator[int]:
        """Yield the places that become steps, in order."""
        return (place for place in range(self.period) if place in self.places)

    def copies_little(self) -> bool:
        """Tell whether what must be copied to be rows is no larger than what a step computes."""
        nodes = [self.node(0, place) for place in self.places]
        made = [_elements(y) for node in nodes if not node.op.is_view for y in node.outputs]
        taken = [o for place in self.places for o in self.operands[place] if o.kind is LOOSE]
        return all(_elements(o.values[0]) <= max(made, default=0) for o in taken)

    def leave_out(self, alive: Collection[Node]) -> None:
        """Make steps only of what most trips need, and of what that takes."""
        wanted = [
            place
            for place in range(self.period)
            if 2 * sum(node in alive for node in self.column(place)) > self.trips
        ]
        self.places = set()
        while wanted:
            place = wanted.pop()
            if place not in self.places:
                self.places.add(place)
                links = (operand.link for operand in self.operands[place])
                wanted += [link.place for link in links if link is not None]


def _elements(value: Value) -> int:
    elements: int = typical(size_of(value.shape))
    return elements


class Trips:
    """Finds the loops among the trips of repeats.

    sequence   all nodes that are computed, in order
    position   where each stands
    rows_of    the stacks of which a value is a row, and which
    """

    def __init__(self, sequence: Sequence[Node], rows_of: RowsOf, least: int) -> None:
        self.sequence = sequence
        self.position = {node: i for i, node in enumerate(sequence)}
        self.rows_of = rows_of
        self._least = least  # trips that a loop must have

    def loops(self, repeat: Repeat) -> Iterator[RecordedLoop]:
        """Yield the loops that the trips of a repeat are, each with enough trips."""
        start = repeat.start + best_phase(self.sequence, self.position, repeat)
        while repeat.stop - start >= self._least * repeat.period:
            loop = self._loop(start, repeat)
            if loop.trips >= self._least:
                yield loop
                start = loop.stop
            else:
                start += repeat.period

    def _loop(self, start: int, repeat: Repeat) -> RecordedLoop:
        """Return the loop that begins with a trip, as far as trips go on alike."""
        nodes, period = self.sequence, repeat.period
        operands = [[StepOperand() for _ in nodes[i].inputs] for i in range(start, start + period)]
        trip = 0
        while start + (trip + 1) * period <= repeat.stop and self._fits(start, trip, operands):
            trip += 1
        return RecordedLoop(nodes, start, period, trip, operands)

    def _fits(self, start: int, trip: int, operands: list[list[StepOperand]]) -> bool:
        """Tell whether a trip goes on as those before it."""
        first = start + trip * len(operands)
        for place, taken in enumerate(operands):
            node = self.sequence[first + place]
            for operand, value in zip(taken, node.inputs, strict=True):
                if value is not None and not self._takes(
                    operand, value, start, trip, len(operands)
                ):
                    return False
        return True

    def _takes(
        self, operand: StepOperand, value: Value, start: int, trip: int, period: int
    ) -> bool:
        position = self.position.get(value.node, -1)
        if position < start:
            return operand.takes_value(value, self.rows_of)
        before, place = divmod(position - start, period)
        return operand.takes_step(StepResult(trip - before, place, value.index), value)
