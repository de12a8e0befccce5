"""Which operations become one kernel."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from weft.lower.groups import Grouping
from weft.lower.kernels import ColumnKernel, RowKernel


def kernels_of(build, *shapes):
    """Return the kernels of a function of placeholders, which returns what to fetch."""
    return list(with_operators(build, *shapes))


def with_operators(build, *shapes):
    """Return the kernels of a function, and the operators of the nodes that each computes."""
    with wf.Graph() as graph:
        xs = [wf.placeholder(shape, wf.float32) for shape in shapes]
        fetches = build(*xs)
    feeds = {x: np.ones(x.shape, np.float32) for x in xs}
    executable = wf.Session(graph, compiled=True).executable(fetches, feeds)
    found = executable.program.kernels
    return {k: [n.op.name for n in executable.analysis.sources.origins(k)] for k in found}


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_forward_and_backward_are_one_kernel(function):
    def build(x, g):
        y = function(x, -1)
        return [y, wf.gradients(y, x, g)]

    (kernel,) = kernels_of(build, (30, 40), (30, 40))
    assert isinstance(kernel, RowKernel)


def test_layer_norm_with_all_gradients_is_one_pass():
    """Gradients of weight and bias are reduced down the columns while rows go by."""

    def build(x, w, b, g):
        y = F.layer_norm(x, (64,), w, b)
        return [y, *wf.gradients(y, [x, w, b], g)]

    rows, *rest = kernels_of(build, (1024, 64), (64,), (64,), (1024, 64))
    assert isinstance(rows, RowKernel)
    assert sum(output.way == "sum" for output in rows.outputs) == 2
    assert [type(kernel) for kernel in rest] == [ColumnKernel, ColumnKernel]
    assert all(kernel.loops[0] <= 64 for kernel in rest)  # they only combine blocks


def test_nothing_is_merged_across_a_product():
    """What follows a product cannot run with what it was made of."""

    def build(x, w):
        a = wf.tanh(x)
        b = a @ w
        return [a * b]

    kernels = with_operators(build, (8, 8), (8, 8))
    assert ["tanh", "mul"] not in [ops for k, ops in kernels.items() if isinstance(k, RowKernel)]


def test_masks_are_computed_where_they_are_needed():
    def build(x, w):
        h = F.relu(x * 2.0)
        loss = (h @ w).sum()
        return [loss, wf.gradients(loss, x)]

    forward, *_, backward = with_operators(build, (64, 32), (32, 16)).values()
    assert "greater" not in forward
    assert "greater" in backward


def test_long_rows_are_cut_in_blocks_and_nothing_waits_in_the_same_kernel():
    def build(x):
        return [x / wf.sqrt((x * x).sum())]

    made = with_operators(build, (100_001,))
    blocks, rest, combine, divide = made
    assert blocks.loops[-1] == 16384
    assert rest.loops[-1] == 100_001 % 16384
    assert combine.columns == 7
    assert "div" in made[divide]


def test_small_rows_do_not_wait_for_large_ones():
    """The count of kept targets is ready before the kernel that divides by it."""
    with wf.Graph() as graph:
        x = wf.placeholder((16, 10), wf.float32)
        y = wf.placeholder((16,), wf.int64)
        loss = F.cross_entropy(x, y)
        dx = wf.gradients(loss, x)
    feeds = {x: np.ones((16, 10), np.float32), y: np.zeros(16, np.int64)}
    executable = wf.Session(graph, compiled=True).executable([loss, dx], feeds)
    (wide,) = [k for k in executable.program.kernels if k.loops == (16, 10)]
    found = {node.op.name for node in executable.analysis.sources.origins(wide)}
    assert {"logsumexp", "pick_class", "place_class", "exp"} <= found


def test_what_tells_a_size_of_the_run_comes_before_who_needs_it():
    """A loop's number of trips, which its adjoint needs though it takes no values of the loop."""
    w = wf.tensor(0.5)
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)

        def fn(carry, row):
            inner = carry * w + row
            return wf.cond(inner > 0, lambda: inner * 2, lambda: inner * 3), inner

        total, rows = wf.scan(fn, wf.tensor(1.0), wf.tanh(x * w))
        _, last = wf.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * 2.0), (0, total))
        loss = last + (rows * rows).sum()
        (g,) = wf.gradients(loss, [w])
    feeds = {x: [1.0, 2.0, -1.0]}
    expected = wf.Session(graph, compiled=False).run([loss, g], feeds)
    found = wf.Session(graph, compiled=True).run([loss, g], feeds)  # a warning would be an error
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_runs_first_is_merged_with_nothing_else():
    with wf.Graph() as graph:
        x, y = (wf.placeholder((64,), wf.float32) for _ in "xy")
        a = wf.tanh(x)
        b, c = a * y, (a * 2).sum()
    graph.outputs = [b.value, c.value]
    together, apart = Grouping(graph), Grouping(graph, graph.ancestors([c.value]))
    computed = [[node.op.name for node in g.nodes] for g in together.groups if g.frame is not None]
    assert computed == [["tanh", "mul", "mul", "sum"]]
    computed = [[node.op.name for node in g.nodes] for g in apart.groups if g.frame is not None]
    assert computed == [["tanh", "mul", "sum"], ["mul"]]
