"""The NaN trap: a flag in a program that ends it before it writes a state, if a NaN is among them.

It looks at what is fetched, at gradients, and at what new states follow from. A state that is
updated in place must not be looked at itself, since it would have to be written first. So the trap
goes back from there, as long as finite operands surely give no NaN, to values that lie before:

    w + (-lr) * m / (sqrt(v) + eps)      the gradients in m and v; lr and eps, which are numbers

Old states are taken to be finite and, where every step leaves them so, not negative. A flag that is
set says that there may be a NaN: who made it, if there is one, is found by running the same program
node by node (graph/nan_search.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..core.dim import is_known
from ..core.dtype import float32, int64, is_float
from ..core.op import F, find_op
from ..core.shape import size_of
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.scope import GRADIENTS, outermost_scope
from ..graph.special import CONSTANT, SOURCES, STATE
from ..graph.state import State
from ..graph.symbol import make_symbol
from .cse import exactly as _exactly

MOST_STEPS = 12  # back from a value, to see its sign
ONE_ROW = 1 << 16  # elements that one loop adds up; more are added up by all threads
COLUMNS = 64  # of rows that are worth adding up to one


def with_trap(graph: Graph, fetches: int, states: Sequence[State]) -> Graph:
    """Return a graph that computes the flag too; it stands behind the fetches, its first outputs.

    The outputs behind those are the new values of states. What the flag needs comes before all
    else, so that they can still be written in place.
    """
    watched = Watched(graph, fetches, states)
    needed = set(graph.ancestors(watched.values()))
    made = Graph(graph.name)
    made.counts_every_draw, made.is_function = graph.counts_every_draw, graph.is_function
    for node in graph.nodes:
        if node in needed or node.op in SOURCES:
            made.append(node)
    flag = _flag(made, watched)
    for node in graph.nodes:
        if node not in made:
            made.append(node)
    made.inputs = list(graph.inputs)
    made.outputs = [*graph.outputs[:fetches], flag, *graph.outputs[fetches:]]
    return made


def _flag(graph: Graph, watched: Watched) -> Value:
    """Return a value that cannot be computed if something is wrong: an index is out of range."""
    exactly = {_number_key(x): x for x in watched.exactly}.values()
    least = {(_number_key(x), strict): (x, strict) for x, strict in watched.least.items()}.values()
    with graph, outermost_scope(("trap",)):
        parts = [
            *(_total(F.cast(F.isnan(_in_one_row(graph, x)), float32)) for x in exactly),
            *(_total(F.mul(_few_of(graph, x), 0)) for x in watched.finite),
            *(_total(F.mul(F.mul(_in_one_row(graph, x), huge(x)), 0)) for x in watched.moderate),
            *(_broken(make_symbol(graph, x), strict) for x, strict in least),
        ]
        nothing = graph.tracer.constant(np.zeros(1, float32))
        if not parts:
            return nothing.value
        wrong = F.logical_not(F.equal(reduce(F.add, parts), 0))
        taken: Any = F.take(nothing, F.reshape(F.cast(wrong, int64), (1,)), 0)
        value: Value = taken.value
    return value


def _number_key(value: Value, steps: int = 0) -> Hashable:
    """Return the same for numbers that are computed in the same way, for each parameter anew."""
    node = value.node
    if value.shape or steps == MOST_STEPS or node.op in SOURCES:
        return value
    operands = tuple([None if x is None else _number_key(x, steps + 1) for x in node.inputs])
    return node.op, _exactly(node.attrs), operands, value.index


def huge(value: Value) -> float:
    """Return what numbers overflow with if products of two, and sums of those, might."""
    return float(2.0 ** (np.finfo(value.dtype).maxexp * 5 // 8))


def _total(x: Any) -> Any:
    """Return the sum of all elements: not zero if one is not, NaN if one is."""
    return F.cast(F.sum(x) if x.shape else x, float32)


def _in_one_row(graph: Graph, value: Value) -> Any:
    """Return a value whose elements lie in one row, if they are few: a sum of each takes longer."""
    x = make_symbol(graph, value)
    few = len(x.shape) > 1 and is_known(x.shape) and size_of(x.shape) <= ONE_ROW
    return F.reshape(x, (-1,)) if few else x


def _few_of(graph: Graph, value: Value) -> Any:
    """Return what is finite only if all of a value is: itself, or of many elements their columns.

    What a product makes is added up where it is made. Sums of finite numbers may overflow, which
    sets the flag for nothing; those of half precision, of which that is no wonder, are not made.
    """
    x = _in_one_row(graph, value)
    *rows, columns = x.shape or (1,)
    if not rows or not is_known((columns,)) or columns < COLUMNS or value.dtype.itemsize < 4:
        return x
    return F.sum(x, tuple(range(len(rows))))


def _broken(x: Any, strict: bool) -> Any:
    """Return 1 for a number that is negative, or just not positive."""
    return F.cast(F.logical_not(F.greater(x, 0) if strict else F.greater_equal(x, 0)), float32)


class Watched:
    """What the flag of a program looks at.

    exactly   values that must hold no NaN
    finite    values that must be finite, which is quicker to see
    moderate  factors of gradients that are products: sums of their products must be finite
    least     numbers that must not be negative, and whether they must be positive
    """

    def __init__(self, graph: Graph, fetches: int, states: Sequence[State]) -> None:
        self._new = {s.key: v for s, v in zip(states, graph.outputs[fetches:], strict=True)}
        self._assumed: set[Any] = set()  # states that are not negative, unless that is refuted
        self.exactly: dict[Value, None] = {}
        self.finite: dict[Value, None] = {}
        self.moderate: dict[Value, None] = {}
        self.least: dict[Value, bool] = {}
        for value in graph.outputs[:fetches]:
            self._watch(value)
        self._go_back(list(self._new.values()))

    def values(self) -> list[Value]:
        """Return all of them."""
        return [*self.exactly, *self.finite, *self.moderate, *self.least]

    def _watch(self, value: Value) -> None:
        value = _itself(value)
        if not is_float(value.dtype) or value.node.op is CONSTANT:
            return
        factors = _smaller_factors(value) if _is_gradient(value) else None
        if factors is not None:
            self.moderate.update(dict.fromkeys(factors))
        else:
            (self.finite if _is_gradient(value) else self.exactly)[value] = None

    def _go_back(self, pending: list[Value]) -> None:
        """Watch what values follow from, back to where finite operands might give a NaN."""
        seen: set[Value] = set()
        while pending:
            value = pending.pop()
            if value in seen or not is_float(value.dtype) or value.node.op in (STATE, CONSTANT):
                continue
            seen.add(value)
            if not _is_gradient(value) and value.shape and self._is_total(value.node):
                pending += [x for x in value.node.inputs if x is not None]
            else:
                self._watch(value)

    def _is_total(self, node: Node) -> bool:
        """Tell whether an operation makes no NaN of finite operands."""
        op = node.op
        if op is _SQRT:
            return self._is_least(node.inputs[0])
        if op is _DIV:
            return self._is_least(node.inputs[1], strict=True)
        return bool(op.total or op.identity or op.kind == "movement")

    # -- signs -------------------------------------------------------------------------------------

    def _is_least(self, value: Value | None, *, strict: bool = False, steps: int = 0) -> bool:
        """Tell whether a value is surely not negative, or positive; numbers the flag looks at."""
        assert value is not None
        op = value.node.op
        if op is CONSTANT:
            array = value.node.attrs[0].array
            return bool(np.all(array > 0 if strict else array >= 0))
        if value.shape == () and is_float(value.dtype):
            self.least[value] = strict or self.least.get(value, False)
            return True
        if op.never_negative:
            return not strict  # it may underflow
        moves = op.identity or op.kind == "movement"
        rule = Watched._of_moved if moves else _SIGNS.get(op)
        if rule is None or steps >= MOST_STEPS:
            return False
        return rule(self, value.node, strict, steps + 1)

    def _are_least(self, node: Node, steps: int) -> bool:
        return all(self._is_least(x, steps=steps) for x in node.inputs)

    def _of_state(self, node: Node, strict: bool, steps: int) -> bool:
        """Tell whether a state that is not negative stays so; that it was is taken for granted."""
        key = node.attrs[0].key
        if strict or key not in self._new:
            return False
        if key in self._assumed:
            return True
        before = set(self._assumed)
        self._assumed.add(key)
        holds = self._is_least(self._new[key], steps=steps)
        if not holds:
            self._assumed = before
        return holds

    def _of_sum(self, node: Node, strict: bool, steps: int) -> bool:
        if not self._are_least(node, steps):
            return False
        return not strict or any(self._is_least(x, strict=True, steps=steps) for x in node.inputs)

    def _of_product(self, node: Node, strict: bool, steps: int) -> bool:
        a, b = map(_itself, node.inputs)
        return not strict and (a is b or self._are_least(node, steps))  # it may underflow

    def _of_ratio(self, node: Node, strict: bool, steps: int) -> bool:
        return not strict and self._are_least(node, steps)

    def _of_maximum(self, node: Node, strict: bool, steps: int) -> bool:
        return any(self._is_least(x, strict=strict, steps=steps) for x in node.inputs)

    def _of_moved(self, node: Node, strict: bool, steps: int) -> bool:
        return self._is_least(node.inputs[0], strict=strict, steps=steps)

    def _of_cast(self, node: Node, strict: bool, steps: int) -> bool:
        return not strict and self._is_least(node.inputs[0], steps=steps)


def _itself(value: Any) -> Value:
    """Return a value without operations that pass it on as it is."""
    found: Value = value
    while found.node.op.identity:
        (found, *_) = found.node.inputs  # type: ignore[assignment]  # an operand is not left out
    return found


def _smaller_factors(value: Value) -> list[Value] | None:
    """Return what a product is made of if that has fewer elements; states are taken to be good."""
    value = _unmoved(value)
    node = value.node
    if node.op is not _MATMUL or value.dtype.itemsize < 4:
        return None
    factors = [_unmoved(x) for x in node.inputs if x is not None]
    if not all(is_known(x.shape) for x in (value, *factors)):
        return None
    if sum(size_of(x.shape) for x in factors) >= size_of(value.shape):
        return None
    return [x for x in factors if x.node.op not in (STATE, CONSTANT)]


def _unmoved(value: Any) -> Value:
    """Return a value before its elements were moved."""
    found: Value = _itself(value)
    while found.node.op.kind == "movement" and found.node.inputs[0] is not None:
        found = _itself(found.node.inputs[0])
    return found


def _is_gradient(value: Value) -> bool:
    return value.node.scope[:1] == (GRADIENTS,)


_DIV, _MATMUL, _SQRT = find_op("div"), find_op("matmul"), find_op("sqrt")

_SIGNS: dict[Any, Callable[..., bool]] = {
    STATE: Watched._of_state,
    find_op("add"): Watched._of_sum,
    find_op("mul"): Watched._of_product,
    find_op("div"): Watched._of_ratio,
    find_op("maximum"): Watched._of_maximum,
    find_op("cast"): Watched._of_cast,
}
