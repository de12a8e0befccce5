"""Splitting scans: what leaves the loop, what stays, and that nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.graph.test_control_gradients import W, X, curvature, scalar
from tests.programs.control_flow import PROGRAMS
from weft.graph.control.ops import SCAN
from weft.graph.run import Program, run_function
from weft.graph.verify import verify
from weft.passes import canonicalize, remove_dead, split_scans
from weft.passes.specialize import NotStaticError, specialize

RNG = np.random.default_rng(0)


def data(*shape):
    return RNG.normal(size=shape)


def static_graph(fn, *arrays):
    """Return a function of arrays as a graph whose sizes are known."""
    with wf.Graph() as graph:
        inputs = [wf.placeholder(a.shape, a.dtype) for a in arrays]
        made = [y.value for y in wf.core.tree.flatten(fn(*inputs))[0]]
    feeds = [x.value for x in inputs]
    shapes = {x: a.shape for x, a in zip(feeds, arrays, strict=True)}
    static = specialize(Program(graph, made, feeds), shapes)
    return canonicalize(remove_dead(static, static.outputs))


def split(fn, *arrays):
    """Return the split graph of a function, checked against the graph it was made of."""
    graph = static_graph(fn, *arrays)
    made = remove_dead(split_scans(graph))
    verify(made)
    with np.errstate(all="ignore"):
        expected, found = run_function(graph, arrays), run_function(made, arrays)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    return made


def scans(graph):
    return [node for node in graph if node.op is SCAN]


def inside(node):
    return [n.op.name for n in node.attrs[0] if n.op.name not in ("placeholder", "constant")]


def outside(graph):
    return [node.op.name for node in graph if node.op.name != "placeholder"]


def test_a_product_of_rows_is_made_once():
    def fn(x, w, b, h):
        return wf.scan(lambda c, row: (wf.tanh(wf.nn.functional.linear(row, w, b) + c), c), h, x)

    made = split(fn, data(5, 3, 4), data(6, 4), data(6), data(3, 6))
    (loop,) = scans(made)
    assert inside(loop) == ["add", "tanh"]
    assert outside(made).index("linear") < outside(made).index("scan")


def test_elementwise_functions_of_rows_go_with_their_product():
    def fn(x, w, s, h):
        return wf.scan(lambda c, row: ((wf.sin(row * 2.0 - s) @ w) * c, None), h, x)[0]

    (loop,) = scans(split(fn, data(5, 3, 4), data(4, 6), data(4), data(3, 6)))
    assert inside(loop) == ["mul"]


@pytest.mark.parametrize("vector", [False, True])
def test_rows_of_any_rank(vector):
    def fn(x, w):
        return wf.scan(
            lambda c, row: (c + (row @ w).sum(), row @ w), wf.tensor(0.0).to("float64"), x
        )

    shape = (4,) if vector else (2, 3, 4)
    (loop,) = scans(split(fn, data(5, *shape), data(4, 6)))
    assert "matmul" not in inside(loop)


def test_a_product_that_only_results_need_is_made_after():
    def fn(x, w, h):
        def step(c, row):
            c = wf.tanh(c + row)
            return c, c @ w

        return wf.scan(step, h, x)

    made = split(fn, data(5, 3, 4), data(4, 6), data(3, 4))
    (loop,) = scans(made)
    assert inside(loop) == ["add", "tanh"]
    assert outside(made).index("scan") < outside(made).index("matmul")


def test_a_product_that_the_state_needs_stays():
    def fn(x, w):
        def step(c, row):
            c = wf.tanh(c @ w + row)
            return c, None

        return wf.scan(step, x[0], x)[0]

    (loop,) = scans(split(fn, data(5, 3, 4), data(4, 4)))
    assert "matmul" in inside(loop)


def test_weight_gradients_are_one_product():
    def fn(x, w):
        def step(c, row):
            c = wf.tanh(c @ w + row)
            return c, c

        return wf.gradients(wf.scan(step, x[0], x)[1].sum(), [x, w])

    made = split(fn, data(5, 3, 4), data(4, 4))
    forward, back = scans(made)
    assert inside(forward).count("matmul") == 1
    assert inside(back).count("matmul") == 1
    assert back.attrs[1] == 1  # the sum is no carry any more


def test_a_weight_used_twice_has_a_sum_of_products():
    def fn(x, w):
        def step(c, row):
            c = wf.tanh(c @ w + wf.sin(row @ w + c))
            return c, c

        return wf.gradients(wf.scan(step, x[0], x, reverse=True)[1].sum(), [x, w])

    _, back = scans(split(fn, data(5, 3, 4), data(4, 4)))
    assert back.attrs[1] == 1


def test_bias_gradients_are_one_sum():
    def fn(x, w, b):
        def step(c, row):
            c = wf.tanh(c @ w + b + row)
            return c, c

        return wf.gradients(wf.scan(step, x[0], x)[1].sum(), [x, w, b])

    made = split(fn, data(5, 3, 4), data(4, 4), data(4))
    _, back = scans(made)
    assert "sum_to" not in inside(back)
    assert back.attrs[1] == 1  # neither sum is a carry any more


def test_sums_of_what_is_not_stacked_stay():
    def fn(x, b):
        def step(total, row):
            return total + wf.sum(wf.sin(row + b), 0), ()

        return wf.scan(step, b, x)[0]

    (loop,) = scans(split(fn, data(5, 3, 4), data(4)))
    assert loop.attrs[1] == 1


def test_sums_that_steps_read_stay():
    def fn(x, w):
        def step(c, row):
            total, h = c
            total = total + row.mT @ h
            return (total, wf.tanh(h @ total)), total

        return wf.scan(step, (w, x[0]), x)

    (loop,) = scans(split(fn, data(5, 3, 4), data(4, 4)))
    assert loop.attrs[1] == 2


def test_invariants_leave_the_loop():
    def fn(x, w):
        def step(c, row):
            table = wf.exp(w) / wf.exp(w).sum()
            return c * table + row, None

        return wf.scan(step, w, x)[0]

    (loop,) = scans(split(fn, data(5, 4), data(4)))
    assert inside(loop) == ["mul", "add"]


def test_results_that_are_rows_of_the_xs_are_not_stacked_again():
    made = split(lambda x: wf.scan(lambda c, row: (c + row, row), x[0], x), data(4, 3))
    (loop,) = scans(made)
    assert len(loop.outputs) == 1


def test_results_that_nobody_needs_are_not_made():
    def fn(x):
        return wf.scan(lambda c, row: (c + row, (wf.exp(row * c), c)), x[0], x)[1][1]

    (loop,) = scans(split(fn, data(4, 3)))
    assert "exp" not in inside(loop)


def test_draws_stay_where_they_are():
    with wf.Graph() as graph:
        x = wf.placeholder((4, 3), wf.float32)
        y = wf.scan(lambda c, row: (c + wf.rand(3), wf.rand(3) * row), x[0], x)[1]
    static = specialize(Program(graph, [y.value], [x.value]), {x.value: (4, 3)})
    made = split_scans(remove_dead(static, static.outputs))
    verify(made)
    (loop,) = scans(made)
    assert inside(loop).count("random_uniform") >= 1
    assert loop.attrs[-1]


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["plus", "minus"])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_programs(fn, sign):
    def derivatives(x, w):
        value = scalar(fn(x, w))
        first = wf.gradients(value, [x, w])
        return [value, first, wf.gradients(curvature(first), [x, w])]

    try:
        split(derivatives, X * sign, W)
    except NotStaticError:
        pytest.skip("a shape depends on values")
