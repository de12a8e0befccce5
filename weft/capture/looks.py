"""What Python read of values, as truth values of the graph: a recording holds where they are alike.

A program computes all of them, and from them an index: 0 if they are as they were, else 1, into an
array of one element. An index out of range ends a program before it writes a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ..core.modes import interpret_with
from ..core.op import F
from ..graph.graph import Graph
from ..graph.node import Value
from ..graph.symbol import Symbol, make_symbol
from ..graph.tracer import Tracer
from .evaluation import Array
from .python_state import PythonState


class ValueRead(NamedTuple):
    """What Python read of a value: all of it, or only its truth.

    value   what it read
    seen    what that was
    truth   whether it asked for the truth alone
    where   the line that did
    holds   the truth value that decides whether Python reads the same
    nodes   how many nodes there were by then
    state   where Python stood, for a truth, if all of that was seen
    """

    value: Value
    seen: Any
    truth: bool
    where: str | None
    holds: Value
    nodes: int
    state: PythonState | None

    @property
    def condition(self) -> PathCondition:
        """Return the condition under which Python reads the same."""
        return PathCondition(self.holds, self.seen if self.truth else True, self.truth)


class PathCondition(NamedTuple):
    """A truth value that Python's path depended on.

    value    the truth value
    seen     what it was
    branch   whether Python asked for this very truth, so that the other one is another path
    """

    value: Value
    seen: bool
    branch: bool


def truth_of(tracer: Tracer, value: Value) -> Value:
    """Return whether the only element of a value is not zero."""
    symbol = make_symbol(tracer.graph, value)
    scalar = F.reshape(symbol, ()) if value.shape else symbol
    return tracer.value_of(scalar if value.dtype.kind == "b" else F.not_equal(scalar, 0))


def same_as(tracer: Tracer, value: Value, seen: Array) -> Value:
    """Return whether a value is the array that was read, bit by bit."""
    symbol, known = make_symbol(tracer.graph, value), tracer.constant(seen)
    same = F.equal(symbol, known)
    if seen.dtype.kind == "f" and not seen.all():  # zeros of either sign are equal
        same = F.logical_and(same, F.equal(F.signbit(symbol), F.signbit(known)))
    if seen.dtype.kind == "f" and np.isnan(seen).any():
        same = F.logical_or(same, F.logical_and(F.isnan(symbol), F.isnan(known)))
    return tracer.value_of(F.all(same))


def wrong(graph: Graph, conditions: Sequence[PathCondition]) -> Value:
    """Return the truth value that one of some conditions is not as it was."""
    with interpret_with(graph.tracer):
        found: Symbol = reduce(F.logical_or, [_differs(graph, one) for one in conditions])
    return found.value


def _differs(graph: Graph, condition: PathCondition) -> Any:
    symbol = make_symbol(graph, condition.value)
    return F.logical_not(symbol) if condition.seen else symbol


def check(graph: Graph, conditions: Sequence[PathCondition]) -> Value:
    """Return a value that cannot be computed unless all conditions are as they were."""
    with interpret_with(graph.tracer):
        index = F.cast(make_symbol(graph, wrong(graph, conditions)), np.dtype(np.int64))
        nothing = graph.tracer.constant(np.zeros(1, np.float32))
        checked: Symbol = F.take(nothing, F.reshape(index, (1,)), 0)
    return checked.value
