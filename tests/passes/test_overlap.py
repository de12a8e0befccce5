"""Exchanges are begun early and waited for late, in the order of the program."""

from __future__ import annotations

import numpy as np

import weft as wf
from weft import distributed as dist
from weft.graph.communication import START, WAIT
from weft.graph.verify import verify
from weft.passes.overlap import overlap_exchanges


def built(fn, *shapes):
    with wf.Graph() as graph:
        xs = [wf.placeholder(shape, "float64") for shape in shapes]
        ys = fn(*xs)
    graph.outputs = [y.value for y in ys]
    graph.inputs = [x.value for x in xs]
    return graph


def names(graph):
    return [node.op.name for node in graph.nodes if node.op.name not in ("placeholder", "state")]


def test_both_halves_stand_apart():
    def step(x):
        late = wf.exp(x)
        total = dist.all_reduce(wf.sin(x))
        return total * 2.0, wf.cos(late)

    graph = overlap_exchanges(built(step, (3,)))
    verify(graph)
    order = names(graph)
    assert order.index("sin") < order.index("exchange_start") < order.index("exp")
    assert order.index("cos") < order.index("exchange_wait") < order.index("mul")


def test_one_that_needs_another_waits_for_it():
    def step(x):
        return (dist.all_reduce(dist.all_reduce(x) * 2.0),)

    graph = overlap_exchanges(built(step, (3,)))
    verify(graph)
    ops = [node.op for node in graph.nodes if node.op in (START, WAIT)]
    assert ops == [START, WAIT, START, WAIT]


def test_independent_ones_all_begin_first():
    def step(x):
        return [dist.all_reduce(x * float(i)) + 1.0 for i in range(3)]

    graph = overlap_exchanges(built(step, (3,)))
    verify(graph)
    ops = [node.op for node in graph.nodes if node.op in (START, WAIT)]
    assert ops == [START] * 3 + [WAIT] * 3


def test_a_graph_without_exchanges_stays_as_it_is():
    graph = built(lambda x: (x + 1.0,), (3,))
    assert overlap_exchanges(graph) is graph


def test_compiled_it_computes_the_same():
    @wf.jit
    def step(x):
        return dist.all_reduce(wf.sin(x)) * 2.0 + wf.exp(x) + dist.all_gather(x)

    x = np.linspace(0, 1, 5)
    for _ in range(2):
        np.testing.assert_allclose(step(wf.tensor(x)).numpy(), np.sin(x) * 2 + np.exp(x) + x)


def test_products_that_are_sent_in_rows_are_computed_in_rows():
    def step(x, y):
        product = x @ y
        return [dist.all_reduce(part) for part in (product[:2], product[2:])]

    graph = overlap_exchanges(built(step, (4, 3), (3, 5)))
    verify(graph)
    order = [n for n in names(graph) if n in ("matmul", "exchange_start")]
    assert order == ["matmul", "exchange_start", "matmul", "exchange_start"]
    shapes = [n.outputs[0].shape for n in graph.nodes if n.op.name == "matmul"]
    assert shapes == [(2, 5), (2, 5)]


def test_products_that_are_needed_whole_stay_whole():
    def step(x, y):
        product = x @ y
        return [dist.all_reduce(product[:2]), product * 2.0]

    graph = overlap_exchanges(built(step, (4, 3), (3, 5)))
    verify(graph)
    assert names(graph).count("matmul") == 1
