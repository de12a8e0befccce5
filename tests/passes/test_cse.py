"""Common-subexpression elimination."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.op import F
from weft.passes import remove_dead, share_common

from .helpers import ops, trace

X = np.ones((3, 3), np.float32)


def shared(fn, *arrays):
    return ops(remove_dead(share_common(trace(fn, *arrays))))


def test_equal_nodes_become_one():
    assert shared(lambda x: wf.exp(x * 2) + wf.exp(x * 2), X) == ["mul", "exp", "add"]


def test_constants_are_compared_by_content():
    a, b = (np.arange(9.0, dtype=np.float32).reshape(3, 3) for _ in range(2))
    graph = trace(lambda x: x * a + x * b, X)
    made = remove_dead(share_common(graph))
    assert ops(made) == ["mul", "add"]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: F.fill_like(x, 0.0) + F.fill_like(x, -0.0),
        lambda x: F.fill_like(x, 1) + F.fill_like(x, True),
        lambda x: wf.sum(x, axis=0) + wf.sum(x, axis=1),
        lambda x: F.cast(x, "float64") + F.cast(x, "float16"),
        lambda x: (x + 0.0) * (x + -0.0),
        lambda x: (x - x.T) * (x.T - x),
    ],
)
def test_nodes_that_differ_stay(fn):
    assert shared(fn, X).count("add") + shared(fn, X).count("mul") >= 1
    graph = trace(fn, X)
    transposes = ops(graph).count("permute")
    assert len(shared(fn, X)) >= len(ops(graph)) - max(0, transposes - 1)


def test_draws_are_not_merged():
    with wf.Graph() as graph:
        y = wf.rand(3) + wf.rand(3)
    assert ops(share_common(graph, [y.value])).count("random_uniform") == 2


def test_even_draws_of_one_state_are_not_merged():
    state = np.array([1, 0, 0], np.uint64)

    def draw():
        return F.random_uniform(wf.tensor(state), (3,), 0.0, 1.0, np.dtype("f4"))

    assert shared(lambda x: x + draw() + draw(), X).count("random_uniform") == 2


def test_updates_are_not_merged():
    total = wf.tensor(0.0)
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float32, name="x")
        first, second = total.assign(x), total.assign(x)
    assert ops(share_common(graph, [first.value, second.value])) == ["assign", "assign"]


def test_nodes_with_sizes_of_their_own_stay():
    def fn(x):
        return F.nonzero(x)[0].sum() + F.nonzero(x)[0].sum()

    assert shared(fn, X).count("nonzero") == 2


def test_devices_are_told_apart():
    graph = trace(lambda x: wf.exp(x) + wf.exp(x), X)
    other, now = wf.Graph(), {}
    for i, node in enumerate(graph):
        device = "gpu:0" if i == 1 else "cpu"
        made = node.rebuilt([now[v] for v in node.inputs], device=device)
        now[node.outputs[0]] = other.append(made).outputs[0]
    assert ops(share_common(other)).count("exp") == 2


def test_symbols_of_merged_nodes_can_be_fetched():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        first, second = wf.exp(x), wf.exp(x)
    made = share_common(graph)
    a, b = wf.Session(made).run([first, second], {x: np.zeros(3, np.float32)})
    assert a.tolist() == b.tolist() == [1.0] * 3
    assert len(made) == 2


def test_bodies_share_too():
    def fn(x):
        return wf.cond(wf.any(x > 0), lambda v: wf.exp(v) + wf.exp(v), wf.neg, x)

    made = share_common(trace(fn, X))
    (node,) = (n for n in made if n.op.name == "cond")
    assert ops(node.attrs[0]) == ["exp", "add"]
