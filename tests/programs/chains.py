"""Random programs for the tests of memory plans and rematerialisation, and a run in an arena."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import weft as wf
from weft import nn
from weft.graph import Graph, Node, Value
from weft.graph.special import ASSIGN, CONSTANT, SOURCES, STATE
from weft.passes.memory import MemoryPlan

Unary = Callable[[Any], Any]

# Each takes a (4, 6) value and returns a (4, 6) value; together they cover views of all kinds,
# overwriting, copies, contractions, several results and draws.
UNARY: list[Unary] = [
    wf.tanh,
    wf.sin,
    wf.sigmoid,
    lambda x: x * 2.0 + 1.0,
    lambda x: x.reshape(6, 4).T,
    lambda x: x.T.reshape(4, 6),
    lambda x: wf.flip(x, 1),
    lambda x: wf.concat([x[2:], x[:2]], 0),
    lambda x: x[:, ::-1],
    lambda x: wf.broadcast_to(x[1:2], (4, 6)),
    lambda x: x - x.mean(axis=0),
    lambda x: x.sum(axis=1, keepdims=True) * 0.1 + x,
    lambda x: wf.concat(list(reversed(wf.split(x, 3, 1))), 1),
    lambda x: wf.stop_gradient(x) + x,
    lambda x: x @ (x.T @ x) * 0.1,
    lambda x: wf.softmax(x, 1),
    wf.relu,
    lambda x: nn.functional.dropout(x, 0.5),
    lambda x: wf.unsqueeze(x, 0).squeeze(0),
]
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x * y,
    wf.maximum,
    lambda x, y: x - y[0],
    lambda x, y: x + y.reshape(6, 4).T,
    lambda x, y: wf.where(x > 0, x, y),
    lambda x, y: (x @ y.T).sum() * 0.1 + x,
]
STEPS = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)),
    min_size=8,
    max_size=60,
)


def apply_steps(x: Any, steps: Sequence[tuple[int, int, int]]) -> list[Any]:
    """Return all values that a program makes, the given one first."""
    pool = [x]
    for choice, a, b in steps:
        which = choice % (len(UNARY) + len(BINARY))
        left, right = _recent(pool, a), _recent(pool, b)
        if which < len(UNARY):
            pool.append(UNARY[which](left))
        else:
            pool.append(BINARY[which - len(UNARY)](left, right))
    return pool


def _recent(pool: list[Any], pick: int) -> Any:
    """Return one of the last values, most often the last: deep programs, with some branches."""
    return pool[-1] if pick % 3 else pool[max(0, len(pool) - 1 - pick % 7)]


def run_in_arena(
    graph: Graph, plan: MemoryPlan, wanted: Sequence[Value], feeds: dict[Value, Any]
) -> list[Any]:
    """Run a graph with every value at its place in one block of memory, as the plan says."""
    arena = np.full(plan.arena_bytes, 0xA5, np.uint8)
    outside: dict[Value, Any] = dict(feeds)

    def at(value: Value) -> Any:
        offset = plan.offset(value)
        if offset is None:
            return outside[value]
        if 0 in value.shape:
            return np.empty(value.shape, value.dtype)
        flat = arena[offset : offset + value.dtype.itemsize].view(value.dtype)
        strides = [step * value.dtype.itemsize for step in plan.layout(value).strides]
        return as_strided(flat, value.shape, strides)

    for node in graph.ancestors(wanted):
        if _read_source(node, outside):
            continue
        for value, array in zip(node.outputs, _results(node, at), strict=True):
            if plan.offset(value) is None:
                outside[value] = array
            elif plan.is_view(value):
                np.testing.assert_array_equal(at(value), array)
            else:
                at(value)[...] = array
    return [np.array(at(value)) for value in wanted]


def run_apart(graph: Graph, wanted: Sequence[Value], feeds: dict[Value, Any]) -> list[Any]:
    """Run a graph with memory of its own for every value.

    Kernels get the operands in the same layout as above: a sum may depend on it.
    """
    values = dict(feeds)
    for node in graph.ancestors(wanted):
        if not _read_source(node, values):
            values.update(zip(node.outputs, _results(node, values.__getitem__), strict=True))
    return [values[value] for value in wanted]


def _read_source(node: Node, outside: dict[Value, Any]) -> bool:
    if node.op is CONSTANT:
        outside[node.outputs[0]] = node.attrs[0].array
    elif node.op is STATE:
        outside[node.outputs[0]] = node.attrs[0].read()
    return node.op in SOURCES


def _results(node: Node, at: Callable[[Value], Any]) -> list[Any]:
    operands: list[Any] = [None if x is None else np.array(at(x), order="C") for x in node.inputs]
    if node.op is ASSIGN:
        return operands
    if node.op.variadic:
        fixed = len(node.op.inputs) - 1
        operands = [*operands[:fixed], operands[fixed:]]
    with np.errstate(all="ignore"):
        made = node.op.kernel(*operands, *node.attrs)
    return [np.array(array) for array in ([made] if node.op.outputs == 1 else made)]
