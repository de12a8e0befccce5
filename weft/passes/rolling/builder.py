"""Build the scan that a loop of recorded trips becomes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.shape import TensorType
from ...graph.control.ops import SCAN
from ...graph.graph import Graph
from ...graph.node import Node, Value
from ...graph.special import PLACEHOLDER, Literal
from ...ops.index.getitem import getitem
from ...ops.index.setitem import setitem, setitem_arrays
from ...ops.index.take import take
from ...ops.movement.broadcast import broadcast_to
from ...ops.movement.join import stack
from ..rewrite import Rebuild, add_like
from .row_index import ARRAY, axes_at, positions, varying_entries, widened, without
from .sources import is_fixed
from .stacks import IndexedStack, LoopStack, StackMaker, UnboundStack, common_stack
from .trips import CONSTANTS, LOOSE, SAME, RecordedLoop, StepOperand

MOST_OVERLAP = 4  # times a part of an axis may be copied so that each trip has a row of its own

Results = dict[tuple[int, int], set[int]]  # by place and output: in which trips they are needed
History = tuple[Value, ...]  # what a result was before the first trip, the oldest first


class CarriedResult(NamedTuple):
    """A value that passes from step to step: as it enters, where it starts, what it becomes."""

    entering: Value
    start: Value
    result: tuple[int, int]
    history: History


class LoopBuilder:
    """Builds one scan.

    outside   what a value of the old graph is in the new one
    stacks    what loops built before have stacked
    """

    def __init__(
        self,
        rebuild: Rebuild,
        loop: RecordedLoop,
        outside: Callable[[Value], Value],
        rows_of: Callable[[Value], Any],
        stacks: dict[LoopStack, Value],
    ) -> None:
        self.rebuild, self.loop, self.outside = rebuild, loop, outside
        self.rows_of, self.stacks = rows_of, stacks
        self.like = loop.node(0, min(loop.places))
        self.body = Graph("step")
        self.made: dict[tuple[int, int], Value] = {}
        self.carries: dict[Hashable, CarriedResult] = {}
        self.xs: dict[Hashable, tuple[Value, Value]] = {}  # inside, and the stack outside
        self.captured: dict[Value, Value] = {}  # outside, and inside
        self.constants: dict[Value, Value] = {}
        self.around = StackMaker(rebuild.make, self.like)
        self.inside = StackMaker(self._make, self.like)

    # -- the body ----------------------------------------------------------------------------------

    def build(self, results: Results, nested: Callable[[Graph], Graph]) -> dict[LoopStack, Value]:
        """Place the scan; return what it stacks. Results that are carried are redirected.

        results   what is needed outside of the loop, and of which trips
        nested    what is done with the body
        """
        for place in self.loop.body():
            self._step(place)
        stacked = [result for result, trips in results.items() if not self._is_last(trips)]
        for result, trips in results.items():
            if self._is_last(trips) and not any(self._newest(result)):
                self._keep_last(result)
        made = self._place(stacked, nested)
        self._redirect_carries(made)
        rows = made.outputs[len(self.carries) :]
        pairs = zip(stacked, rows, strict=True)
        return {LoopStack(self.loop, *result): value for result, value in pairs}

    def _is_last(self, trips: set[int]) -> bool:
        return trips == {self.loop.trips - 1}

    def _newest(self, result: tuple[int, int]) -> Iterator[CarriedResult]:
        """Yield the carries that leave the loop with a result of the last trip."""
        return (c for c in self.carries.values() if c.result == result and len(c.history) == 1)

    def _redirect_carries(self, made: Node) -> None:
        """Let results of the last trip be what the scan has carried."""
        for carry, value in zip(self.carries.values(), made.outputs, strict=False):
            if len(carry.history) == 1:
                place, output = carry.result
                last = self.loop.node(self.loop.trips - 1, place)
                self.rebuild.redirect(last.outputs[output], value)

    def _step(self, place: int) -> None:
        """Add what stands at a place of the body."""
        node, operands = self.loop.node(0, place), self.loop.operands[place]
        entries: list[int] = []
        if node.op in (getitem, setitem):
            entries = varying_entries([n.attrs[0] for n in self.loop.column(place)])
        if not entries:
            self._append(place, node.rebuilt([self._operand(operand) for operand in operands]))
        elif node.op is setitem:
            self.made[place, 0] = self._written(place, entries)
        elif operands[0].kind is SAME and (made := self._indexed_row(place, entries)) is not None:
            self.made[place, 0] = made
        else:
            self.made[place, 0] = self._chosen(place, entries)

    def _append(self, place: int, node: Node) -> None:
        made = self.body.append(node.rebuilt(node.inputs, name=self.body.unique_name(node.name)))
        for output, value in enumerate(made.outputs):
            self.made[place, output] = value

    def _make(self, like: Node, op: Any, *inputs: Value, attrs: tuple[Any, ...] = ()) -> Value:
        """Return the result of a new node of the body."""
        return add_like(self.body, like, op, inputs, attrs)

    # -- operands of steps -------------------------------------------------------------------------

    def _operand(self, operand: StepOperand) -> Value | None:
        """Return what a step takes, as a value of the body."""
        if operand.link is not None:
            lag, result = operand.link.lag, operand.link[1:]
            early = tuple(operand.values)
            return self._carried(result, early) if lag else self.made[result]
        if not operand.values:
            return None
        if operand.kind is SAME:
            return self._invariant(operand.values[0])
        if operand.kind is CONSTANTS:
            return self._constant_row(operand.values)
        if operand.kind is LOOSE:
            return self._loose_row(operand.values)
        rows, numbers = common_stack(
            operand.stacks, [self.rows_of(value) for value in operand.values]
        )
        if isinstance(rows, IndexedStack):
            return self._part_of_row(rows.x, [rows.axis], [numbers], rows.rest)
        return self._row((rows, tuple(numbers)), lambda: self._rows(rows, numbers))

    def _carried(self, result: tuple[int, int], history: History) -> Value:
        """Return a result of an earlier trip: of as many trips ago as the history is long."""
        key = result, history
        if key not in self.carries:
            place, output = result
            kind = self.loop.node(0, place).outputs[output].type
            entering = self._entering(kind, "carry")
            self.carries[key] = CarriedResult(entering, self.outside(history[0]), result, history)
            if len(history) > 1:
                self._carried(result, history[1:])
        return self.carries[key].entering

    def _keep_last(self, result: tuple[int, int]) -> None:
        """CarriedResult a result out of the loop that no step takes."""
        place, output = result
        kind = self.loop.node(0, place).outputs[output].type
        zero = self.around.constant(np.zeros((), kind.dtype))
        start = self.around.make(broadcast_to, zero, attrs=(kind.shape,)) if kind.shape else zero
        self.carries[result] = CarriedResult(self._entering(kind, "last"), start, result, (start,))

    def _invariant(self, value: Value) -> Value:
        if is_fixed(value):
            return self._constant(value)
        if value not in self.captured:
            self.captured[value] = self._entering(value.type, "captured")
        return self.captured[value]

    def _constant(self, value: Value) -> Value:
        """Return a constant of the body: literals, and what is filled with them, are not read."""
        if value not in self.constants:
            node = value.node
            inputs = [None if x is None else self._constant(x) for x in node.inputs]
            name = self.body.unique_name(node.name)
            self.constants[value] = self.body.append(node.rebuilt(inputs, name=name)).outputs[0]
        return self.constants[value]

    def _constant_row(self, values: Sequence[Value]) -> Value:
        """Return a constant that is another one in each trip."""
        literals: list[Literal] = [value.node.attrs[0] for value in values]
        first = literals[0]
        if all(x == first and x.array.strides == first.array.strides for x in literals):
            return self._constant(values[0])
        arrays = [literal.array for literal in literals]
        return self._row(tuple(literals), lambda: self.around.constant(np.stack(arrays)))

    def _loose_row(self, values: Sequence[Value]) -> Value:
        """Return one of several values in each trip: they are copied into a stack."""

        def stacked() -> Value:
            return self.around.make(stack, *map(self.outside, values), attrs=(0,))

        return self._row(tuple(values), stacked)

    def _row(self, key: Hashable, stack: Callable[[], Value]) -> Value:
        """Return the row that a step takes of a stack, which is built if there is none yet."""
        if key not in self.xs:
            outside = stack()
            kind = TensorType(outside.shape[1:], outside.dtype)
            self.xs[key] = self._entering(kind, "row"), outside
        return self.xs[key][0]

    def _entering(self, kind: TensorType, name: str) -> Value:
        node = Node(PLACEHOLDER, (), (kind,), (kind,), name=self.body.unique_name(name))
        return self.body.append(node).outputs[0]

    def _rows(self, rows: LoopStack | UnboundStack, numbers: Sequence[int]) -> Value:
        """Return rows of a stack in the new graph."""
        if isinstance(rows, LoopStack):
            return self.around.rows(self.stacks[rows], 0, numbers)
        return self.around.rows(self.outside(rows.x), rows.axis, numbers)

    # -- indices that advance ----------------------------------------------------------------------

    def _positions(self, place: int, entry: int) -> list[Any]:
        """Return what an entry of an index selects, trip by trip."""
        x = self.loop.node(0, place).inputs[0]
        assert x is not None
        specs = [node.attrs[0] for node in self.loop.column(place)]
        size = x.shape[axes_at(specs[0], entry, len(x.shape)).taken]
        return [positions(spec[entry], size) for spec in specs]

    def _indexed_row(self, place: int, entries: Sequence[int]) -> Value | None:
        """Return what a step selects of an invariant value as a row; None if it should not be."""
        (spec,) = self.loop.node(0, place).attrs
        x = self.loop.operands[place][0].values[0]
        axes = [axes_at(spec, entry, len(x.shape)).taken for entry in entries]
        sizes = [x.shape[axis] for axis in axes]
        found = [self._positions(place, entry) for entry in entries]
        if all(isinstance(numbers[0], int) for numbers in found):
            known = len(axes) == 1 or all(isinstance(size, int) for size in sizes)
            return self._part_of_row(x, axes, found, without(spec, entries)) if known else None
        (windows,), (axis,) = (found, axes) if len(entries) == 1 else ([[]], [0])
        if not windows or len(windows) * len(windows[0]) > MOST_OVERLAP * sizes[0]:
            return None
        key = x, axis, tuple(map(tuple, windows))
        row = self._row(key, lambda: self.around.windows(self.outside(x), axis, windows))
        return self.inside.indexed(row, widened(spec, entries))

    def _part_of_row(
        self, x: Value, axes: Sequence[int], numbers: Sequence[Sequence[int]], rest: tuple[Any, ...]
    ) -> Value:
        """Return what an index selects of a row of x."""
        key = x, tuple(axes), tuple(map(tuple, numbers))
        row = self._row(key, lambda: self.around.grid_rows(self.outside(x), axes, numbers))
        return self.inside.indexed(row, rest)

    def _chosen(self, place: int, entries: Sequence[int]) -> Value:
        """Return what a step selects of a value of its own, by indices that are operands."""
        node = self.loop.node(0, place)
        spec = widened(node.attrs[0], entries)
        x = self._operand(self.loop.operands[place][0])
        assert x is not None
        ndim, x = len(x.shape), self.inside.indexed(x, spec)
        for entry in reversed(entries):
            axis = axes_at(spec, entry, ndim).made
            x = self.inside.make(take, x, self._index(place, entry), attrs=(axis, False))
        return x

    def _written(self, place: int, entries: Sequence[int]) -> Value:
        """Return a value in which a step writes at indices that are operands."""
        node = self.loop.node(0, place)
        x, value = (self._operand(operand) for operand in self.loop.operands[place])
        arrays = [self._index(place, entry) for entry in entries]
        (old,) = node.attrs
        spec = tuple(ARRAY if i in entries else item for i, item in enumerate(old))
        return self._make(node, setitem_arrays, x, value, *arrays, attrs=(spec,))  # type: ignore[arg-type]  # never left out

    def _index(self, place: int, entry: int) -> Value:
        found = np.array(self._positions(place, entry), np.int64)
        return self._row(("index", found.tobytes()), lambda: self.around.constant(found))

    # -- the node ----------------------------------------------------------------------------------

    def _place(self, stacked: Sequence[tuple[int, int]], nested: Callable[[Graph], Graph]) -> Node:
        """Place the scan in the new graph."""
        carries = list(self.carries.values())
        body, trips = self.body, self.loop.trips
        rows = [self.made[result] for result in stacked]
        body.inputs = [
            *(carry.entering for carry in carries),
            *(inside for inside, _ in self.xs.values()),
            *self.captured.values(),
        ]
        body.outputs = [*map(self._leaving, carries), *rows]
        body.is_function = True
        body.extended = self._extended()
        inputs = [
            *(carry.start for carry in carries),
            *(outside for _, outside in self.xs.values()),
            *map(self.outside, self.captured),
        ]
        types = [carry.start.type for carry in carries]
        types += [TensorType((trips, *value.shape), value.dtype) for value in rows]
        threads = tuple((i, i) for i, carry in enumerate(carries) if self._moves_on(carry.entering))
        attrs = (nested(body), len(carries), len(self.xs), trips, False, False, threads)
        like = self.like
        return self.rebuild.graph.add(
            SCAN, inputs, attrs, types, scope=like.scope, site=like.site, device=like.device
        )

    def _extended(self) -> dict[Node, Node]:
        """Return which loops of the body are others of it, extended for a gradient."""
        known, found = self.rebuild.old.extended, {}
        places = {self.loop.node(0, place): place for place in self.loop.body()}
        for node, place in places.items():
            longer = places.get(known[node]) if node in known else None
            if longer is not None:
                found[self.made[place, 0].node] = self.made[longer, 0].node
        return found

    def _leaving(self, carry: CarriedResult) -> Value:
        """Return what a carry is for the next step."""
        older = carry.history[1:]
        return self.carries[carry.result, older].entering if older else self.made[carry.result]

    def _moves_on(self, state: Value) -> bool:
        """Tell whether a value is the state of a generator from which the body draws."""
        for node in self.body.nodes:
            if state in node.inputs:
                threads = getattr(node.op, "threads", None)
                through = [] if threads is None else [node.inputs[i] for i, _ in threads(node)]
                if node.op.advances or state in through:
                    return True
        return False
