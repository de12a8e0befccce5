"""Exchanges are begun early and waited for late, in the order of the program."""

from __future__ import annotations

from itertools import pairwise

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


def halves(graph):
    """Return what begins (>) and ends (<) in which order, and products, by numbers."""
    known, found = {}, []
    for node in graph.nodes:
        if node.op is START:
            known[node.outputs[1]] = len(known)
            found.append(f">{len(known) - 1}")
        elif node.op is WAIT:
            found.append(f"<{known[node.inputs[0]]}")
        elif node.op.name == "matmul":
            found.append("@")
    return " ".join(found)


def test_what_is_there_from_the_start_is_gathered_one_ahead():
    def layers(x, *parts):
        for part in parts:
            x = x @ dist.all_gather(part)
        return (x,)

    graph = overlap_exchanges(built(layers, (3, 3), (3, 3), (3, 3), (3, 3)))
    verify(graph)
    assert halves(graph) == ">0 <0 >1 @ <1 >2 @ <2 @"


def test_what_is_computed_is_gathered_as_soon_as_it_is_there():
    def step(x, y):
        return dist.all_gather(x @ y), dist.all_gather(y @ x), x @ x

    graph = overlap_exchanges(built(step, (3, 3), (3, 3)))
    verify(graph)
    assert halves(graph) == "@ >0 @ >1 @ <0 <1"


def test_two_scattered_sums_are_on_their_way():
    def step(x, y):
        return [dist.reduce_scatter(x @ y * float(i)) for i in range(1, 5)]

    graph = overlap_exchanges(built(step, (3, 3), (3, 3)))
    verify(graph)
    assert halves(graph).replace("@ ", "") == ">0 >1 <0 >2 <1 >3 <2 <3"


def test_exchanges_are_linked_in_the_order_in_which_they_begin():
    def step(x, y):
        return dist.all_reduce(x @ y), dist.all_gather(x), dist.all_reduce(y)

    graph = overlap_exchanges(built(step, (3, 3), (3, 3)))
    starts = [node for node in graph.nodes if node.op is START]
    assert [b.inputs[0] is a.outputs[0] for a, b in pairwise(starts)] == [True, True]


def test_states_are_computed_when_no_exchange_is_left():
    def step(x, y):
        first, second = dist.all_reduce(x), dist.all_reduce(y)
        return first + 1.0, wf.exp(first), wf.sin(second)

    graph = overlap_exchanges(built(step, (3,), (3,)), committed=2)
    verify(graph)
    order = names(graph)
    last = len(order) - order[::-1].index("exchange_wait")
    assert order.index("add") < last <= min(order.index("exp"), order.index("sin"))
