"""What the verifier asks of control flow: that bodies fit the node, and one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.dim import Dim, may_equal
from ..core.dtype import bool_
from ..core.shape import TensorType
from .control.ops import COND, SCAN, WHILE
from .graph import Graph
from .node import Node, Value, subgraphs, type_text

_TRUTH = TensorType((), bool_)


class Unsound(Exception):  # noqa: N818  (becomes a GraphError where the node is known)
    """What is wrong with a node."""


def check_control(node: Node) -> None:
    """Raise Unsound unless the bodies of control flow fit its inputs and outputs."""
    bodies, form = subgraphs(node), getattr(node.op, "form", node.op)
    if not bodies and form not in _CHECKS:
        return
    types = [None if value is None else value.type for value in node.inputs]
    if form in _CHECKS:
        _CHECKS[form](node, types)
        _check_threads(node)
    else:
        for body in bodies:
            _check_taken(body, types)


def agree(a: TensorType, b: TensorType) -> bool:
    """Tell whether two types can be the same when all sizes are known; None is any size."""
    if a.dtype != b.dtype or len(a.shape) != len(b.shape):
        return False
    return a.shape == b.shape or all(map(_fits, a.shape, b.shape))


def _fits(a: Any, b: Any) -> bool:
    return a is None or may_equal(a, b)


def _check_cond(node: Node, types: Sequence[Any]) -> None:
    yes, no, _ = node.attrs
    _require(isinstance(yes, Graph) and isinstance(no, Graph), "lacks a branch")
    _require(bool(types) and agree(_TRUTH, types[0]), "has a predicate that is no truth value")
    for body in (yes, no):
        _check_taken(body, types[1:])
    _require(len(yes.outputs) == len(no.outputs), "has branches with different numbers of results")
    _check_given(yes.outputs, [value.type for value in no.outputs], "gives in one branch")


def _check_while(node: Node, types: Sequence[Any]) -> None:
    test, body, carries, _ = node.attrs
    _require(isinstance(test, Graph) and isinstance(body, Graph), "lacks a body")
    _check_count(carries, len(types), "carries")
    _check_taken(test, types)
    _check_taken(body, types)
    _check_given(test.outputs, [_TRUTH], "gives as its condition")
    _require(len(test.outputs) == 1, "has a condition of several values")
    _check_given(body.outputs, types[:carries], "carries on")


def _check_scan(node: Node, types: Sequence[Any]) -> None:
    body, carries, xs, length, reverse, until, _ = node.attrs
    _require(isinstance(body, Graph), "lacks a body")
    _require(isinstance(reverse, bool) and isinstance(until, bool), "has a flag that is no bool")
    _check_count(carries, len(types), "carries")
    _check_count(xs, len(types) - carries, "xs")
    known = isinstance(length, Dim) or (type(length) is int and length >= 0)
    _require(known, "has a length that is no size")
    columns = types[carries : carries + xs]
    for column in columns:
        fits = bool(column.shape) and may_equal(column.shape[0], length)
        _require(fits, f"has {type_text(column)} among its xs, but takes {length} steps")
    rows = [TensorType(t.shape[1:], t.dtype) for t in columns]
    _check_taken(body, [*types[:carries], *rows, *types[carries + xs :]])
    _check_given(body.outputs[:until], [_TRUTH] * until, "gives as its condition")
    _check_given(body.outputs[until:], types[:carries], "carries on")


_CHECKS: dict[Any, Callable[[Node, Sequence[Any]], None]] = {
    COND: _check_cond,
    WHILE: _check_while,
    SCAN: _check_scan,
}


def _check_taken(body: Graph, types: Sequence[Any]) -> None:
    """Raise unless a body takes values of these types."""
    if len(body.inputs) != len(types):
        raise Unsound(f"has a body of {len(body.inputs)} inputs and gives it {len(types)}")
    for value, given in zip(body.inputs, types, strict=True):
        if given is None or not agree(value.type, given):
            shown = "nothing" if given is None else type_text(given)
            raise Unsound(f"has a body that takes {type_text(value.type)} and gives it {shown}")


def _check_given(values: Sequence[Value], types: Sequence[TensorType], what: str) -> None:
    """Raise unless the first values of a body have these types."""
    if len(values) < len(types):
        raise Unsound(f"has a body of {len(values)} results that must give {len(types)}")
    for value, wanted in zip(values, types, strict=False):
        if not agree(value.type, wanted):
            raise Unsound(f"{what} {type_text(value.type)} instead of {type_text(wanted)}")


def _check_count(number: Any, limit: int, what: str) -> None:
    _require(type(number) is int and 0 <= number <= limit, f"cannot have {number!r:.20} {what}")


def _check_threads(node: Node) -> None:
    threads = node.attr("threads")
    _require(isinstance(threads, tuple), "has threads that are no pairs")
    for pair in threads:
        fits = isinstance(pair, tuple) and len(pair) == 2 and all(type(i) is int for i in pair)
        _require(fits, "has threads that are no pairs")
        before, after = pair
        inside = 0 <= before < len(node.inputs) and 0 <= after < len(node.outputs)
        _require(inside, f"threads a state from input {before} to output {after}, which are not")


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise Unsound(problem)
