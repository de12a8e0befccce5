"""Values that are rows of something larger: what a loop takes as `x[t]`, and what it leaves.

A stack is a value some axis of which runs over rows: one that the program indexes with an integer,
one that it takes apart, or what a loop makes in each step.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.op import Op
from ...core.shape import size_of
from ...graph.node import Node, Value
from ...graph.special import CONSTANT, Literal
from ...ops.index.getitem import getitem
from ...ops.index.take import take
from ...ops.movement.axes import permute
from ...ops.movement.join import concat, stack
from ...ops.movement.reshape import reshape, unsqueeze
from ...ops.movement.split import unbind
from .row_index import ALL, axes_at, from_front, is_everything, linear, without
from .trips import RecordedLoop

JOINS = (concat, stack)


class IndexedStack(NamedTuple):
    """Rows by an integer of a basic index, `x[:, t]`, and the rest of the index, for a row."""

    x: Value
    axis: int
    rest: tuple[Any, ...]


class UnboundStack(NamedTuple):
    """Rows that `unbind` gives."""

    x: Value
    axis: int


class LoopStack(NamedTuple):
    """What a place of a loop's body makes, trip by trip."""

    loop: RecordedLoop
    place: int
    output: int


Stack = IndexedStack | UnboundStack | LoopStack


def rows_by_index(value: Value) -> dict[Hashable, int]:
    """Return the stacks that a value is taken out of by an index, and which row of each it is."""
    node = value.node
    (x, *_) = node.inputs or (None,)
    if x is None:
        return {}
    if node.op is unbind:
        return {UnboundStack(x, node.attrs[0]): value.index}
    return indexed_stacks(node, x) if node.op is getitem else {}


def indexed_stacks(node: Node, x: Value) -> dict[Hashable, int]:
    """Return the stacks out of which `x[...]` is taken, one for each integer in the index."""
    (spec,) = node.attrs
    found: dict[Hashable, int] = {}
    for entry, item in enumerate(spec):
        if item.__class__ is int:
            axis = axes_at(spec, entry, len(x.shape)).taken
            found[IndexedStack(x, axis, without(spec, [entry]))] = from_front(item, x.shape[axis])
    return found


def common_stack(
    stacks: set[Hashable], rows: Sequence[Mapping[Hashable, int]]
) -> tuple[Any, list[int]]:
    """Return the stack to take rows from, and their numbers: rather what is there than a loop's."""
    best = min(
        (s for s in rows[0] if s in stacks), key=lambda s: isinstance(s, LoopStack), default=None
    )
    assert best is not None
    return best, [row[best] for row in rows]


class StackMaker:
    """Builds stacks, rows and joins in a graph; `make` adds a node and returns its result."""

    def __init__(self, make: Any, like: Node) -> None:
        self._make, self._like = make, like

    def make(self, op: Op, *inputs: Value, attrs: tuple[Any, ...] = ()) -> Value:
        """Return the result of a new node."""
        made: Value = self._make(self._like, op, *inputs, attrs=attrs)
        return made

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """Return a new constant."""
        literal = Literal(array)
        made: Value = self._make(self._like, CONSTANT, attrs=(literal,))
        return made

    def indexed(self, x: Value, spec: tuple[Any, ...]) -> Value:
        """Return `x[spec]`."""
        return x if is_everything(spec) else self.make(getitem, x, attrs=(spec,))

    def rows(self, x: Value, axis: int, indices: Sequence[int]) -> Value:
        """Return rows of x along an axis, by their numbers, as a stack along the first axis."""
        return self.moved(self._selected(x, axis, indices), axis, 0)

    def _selected(self, x: Value, axis: int, indices: Sequence[int]) -> Value:
        taken, size = linear(indices), x.shape[axis]
        if taken is None or not isinstance(size, int):
            chosen = self.constant(np.array(indices, np.int64))
            return self.make(take, x, chosen, attrs=(axis, False))
        if taken == range(size):
            return x
        stop = taken.stop if taken.stop >= 0 else None
        part = (taken.start, stop, taken.step if taken.step != 1 else None)
        return self.make(getitem, x, attrs=((*(ALL,) * axis, part),))

    def grid_rows(self, x: Value, axes: Sequence[int], indices: Sequence[Sequence[int]]) -> Value:
        """Return rows of x by an index for each of several axes, stacked along the first axis."""
        if len(axes) == 1:
            return self.rows(x, axes[0], indices[0])
        others = [axis for axis in range(len(x.shape)) if axis not in axes]
        turned = (*axes, *others)
        if turned != tuple(range(len(turned))):
            x = self.make(permute, x, attrs=(turned,))
        count = len(axes)
        flat = np.ravel_multi_index([np.array(i) for i in indices], x.shape[:count])
        merged = self.reshaped(x, (size_of(x.shape[:count]), *x.shape[count:]))
        return self.rows(merged, 0, flat.tolist())

    def windows(self, x: Value, axis: int, indices: Sequence[Sequence[int]]) -> Value:
        """Return parts of x along an axis, of equal lengths, as a stack along the first axis."""
        count, width = len(indices), len(indices[0])
        whole = linear([i for part in indices for i in part])
        if whole is not None and whole.step == 1:  # they lie one after another
            part = self._selected(x, axis, whole)
            shape = (*x.shape[:axis], count, width, *x.shape[axis + 1 :])
            return self.moved(self.reshaped(part, shape), axis, 0)
        found = self.make(take, x, self.constant(np.array(indices, np.int64)), attrs=(axis, False))
        return self.moved(found, axis, 0)

    def moved(self, x: Value, source: int, target: int) -> Value:
        """Return x with one axis moved."""
        order = [axis for axis in range(len(x.shape)) if axis != source]
        order.insert(target, source)
        return x if source == target else self.make(permute, x, attrs=(tuple(order),))

    def reshaped(self, x: Value, shape: tuple[Any, ...]) -> Value:
        """Return x in another shape."""
        return x if x.shape == shape else self.make(reshape, x, attrs=(shape,))

    def joined(self, node: Node, parts: Sequence[tuple[Value, bool]]) -> Value:
        """Return a join of values, and of stacks of values, each said to be one or not."""
        (axis,) = node.attrs
        found = [self._part(node.op, axis, value, is_stack) for value, is_stack in parts]
        return found[0] if len(found) == 1 else self.make(concat, *found, attrs=(axis or 0,))

    def _part(self, op: Op, axis: int | None, value: Value, is_stack: bool) -> Value:
        """Return what a value, or a stack of values, adds to a join."""
        if op is stack:
            assert axis is not None
            return (
                self.moved(value, 0, axis)
                if is_stack
                else self.make(unsqueeze, value, attrs=((axis,),))
            )
        if axis is None:
            return self.reshaped(value, (size_of(value.shape),))
        if not is_stack:
            return value
        count, *sizes = value.shape
        sizes[axis] = count * sizes[axis]
        return self.reshaped(self.moved(value, 0, axis), tuple(sizes))
