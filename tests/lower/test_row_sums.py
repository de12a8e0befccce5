"""Rows of products that are combined where they are computed: what is fused, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.lower.test_epilogues import array, compiled, only_products
from tests.threads import assert_same_bits_on_threads
from weft.lower.kernels import ColumnKernel, GemmKernel, RowKernel

linear = wf.nn.functional.linear


def combining(kernels):
    """Return the products that combine rows."""
    return [k for k in kernels if isinstance(k, GemmKernel) and k.row_sums]


def no_rows(kernels):
    return not any(isinstance(k, RowKernel) for k in kernels)


WAYS = {
    "sum": lambda z: z.sum(0),
    "mean": lambda z: z.mean(0),
    "max": lambda z: wf.max(z, 0),
    "min": lambda z: wf.min(z, 0),
    "sum of squares": lambda z: (z * z).sum(0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("rows", "columns"), [(16, 70), (47, 64), (96, 70), (97, 70), (300, 65), (64, 1500), (900, 100)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_are_combined_with_their_product(way, rows, columns, dtype):
    x, y = array(rows, 20, dtype=dtype), array(20, columns, dtype=dtype)
    kernels = compiled(lambda x, y: WAYS[way](x @ y), x, y)
    (product,) = combining(kernels)
    assert no_rows(kernels)
    assert product.block == min(rows, 96)


def test_what_an_epilogue_stores_is_what_is_combined():
    x, y, h = array(128, 40), array(40, 96), array(128, 96)

    def build(x, y, h):
        z = wf.where(h > 0, x @ y, 0.0)
        return z, z.sum(0)

    kernels = compiled(build, x, y, h)
    assert [type(k) for k in kernels] == [GemmKernel, ColumnKernel]
    assert [o.way for o in kernels[0].outputs] == [None, "sum"]


def test_one_block_needs_no_kernel_behind_it():
    x, y = array(64, 40), array(40, 96)
    assert only_products(compiled(lambda x, y: wf.relu(x @ y).sum(0), x, y))


def test_other_operands_of_the_sum():
    x, y, other, scale = array(64, 40), array(40, 96), array(64, 96), array(64, 1)

    def build(x, y, other, scale):
        z = wf.tanh(x @ y)
        return z, (z * other * scale).sum(0)

    assert only_products(compiled(build, x, y, other, scale))


@pytest.mark.parametrize(("m", "n"), [(64, 96), (300, 65), (900, 100)])
def test_several_totals_of_one_product(m, n):
    x, y, w = array(m, 40), array(40, n), array(n, 64)

    def build(x, y, w):
        z = x @ y
        return z @ w, z.sum(0), wf.max(z, 0)

    kernels = compiled(build, x, y, w)
    (product,) = combining(kernels)
    assert no_rows(kernels)
    assert [o.way for o in product.outputs] == ["sum", "max"]


def test_the_gradients_of_a_layer():
    """The sum is the bias gradient; another product reads the same elements before it."""
    x, h, w, g = array(128, 40), array(128, 80), array(96, 80), array(128, 96)

    def build(x, h, w, g):
        dz = (g @ w) * (h > 0)
        return x.mT @ dz, dz.sum(0)

    kernels = compiled(build, x, h, w, g)
    assert len(combining(kernels)) == 1
    assert no_rows(kernels)


@pytest.mark.parametrize("shape", [(4, 30, 70), (2, 3, 20, 70), (1, 70, 70)])
def test_axes_of_a_batch_are_rows(shape):
    *batch, n = shape
    x, w, other = array(*batch, 24), array(n, 24), array(*shape)
    axes = tuple(range(len(batch)))
    kernels = compiled(lambda x, w, o: (linear(x, w) * o).sum(axes), x, w, other)
    (product,) = combining(kernels)
    assert product.batch == ()
    assert no_rows(kernels)


def test_matrices_of_a_batch_stay_apart():
    """Each has another right operand, or a mask that repeats: its rows are no rows of one."""
    x, y, mask = array(3, 20, 30), array(3, 30, 70), array(20, 70)
    assert not combining(compiled(lambda x, y: (x @ y).sum((0, 1)), x, y))
    assert not combining(compiled(lambda x, y: (x @ y).sum(0), x, y))
    compiled(lambda x, y, m: ((x @ y[0]) * m).sum((0, 1)), x, y, mask)


@pytest.mark.parametrize("size", [(8, 40), (200, 40), (1, 70), (70, 1)])
def test_small_products_keep_their_own_loops(size):
    m, n = size
    kernels = compiled(lambda x, y: wf.relu(x @ y).sum(0), array(m, 20), array(20, n))
    assert not combining(kernels)


def test_a_sum_that_needs_something_later_stays_behind_it():
    x, y, w = array(64, 64), array(64, 64), array(64, 64)

    def build(x, y, w):
        z = wf.relu(x @ y)
        return (z * wf.exp(wf.softmax(z @ w, -1))).sum(0)

    kernels = compiled(build, x, y, w)
    assert not combining(kernels)


@pytest.mark.parametrize("m", [64, 300])
def test_a_total_that_needs_another_total(m):
    def build(x, y):
        z = x @ y
        return (z * z.sum(0)).sum(0)

    assert len(combining(compiled(build, array(m, 20), array(20, 70)))) == 1


def test_sums_along_rows_are_no_totals():
    kernels = compiled(lambda x, y: (x @ y).sum(-1).sum(0), array(64, 20), array(20, 64))
    assert not combining(kernels)


def test_a_total_that_is_written_to_a_state_waits_for_checks():
    """It could not be written in place of the old value before."""
    x, y, table, index = array(64, 20), array(20, 70), array(9, 5), np.array([3, 8])
    state = wf.tensor(array(70))
    with wf.Graph() as graph:
        feeds = [wf.placeholder(a.shape, a.dtype) for a in (x, y, table, index)]
        update = state.assign((feeds[0] @ feeds[1]).sum(0))
        looked_up = feeds[2][feeds[3]]
    session = wf.Session(graph)
    given = dict(zip(feeds, (x, y, table, index), strict=True))
    kernels = session.executable([looked_up, update], given).program.kernels
    checks = [i for i, k in enumerate(kernels) if getattr(k, "flag", None) is not None]
    assert checks
    assert all(i > max(checks) for i, k in enumerate(kernels) if combining([k]))
    before = np.array(state)
    with pytest.raises(IndexError):
        session.run([looked_up, update], {**given, feeds[3]: np.array([3, 9])})
    np.testing.assert_array_equal(np.array(state), before)


def test_a_total_that_is_fetched_waits_for_nothing():
    x, y, table, index = array(64, 20), array(20, 70), array(9, 5), np.array([3, 8])

    def build(x, y, table, index):
        return (x @ y).sum(0), table[index]

    assert len(combining(compiled(build, x, y, table, index))) == 1


def test_empty_products():
    compiled(lambda x, y: (x @ y).sum(0), array(64, 0), array(0, 70))
    compiled(lambda x, y: (x @ y).sum(0), array(0, 20), array(20, 70))
    compiled(lambda x, y: (x @ y).sum(0), array(64, 20), array(20, 0))


def test_in_the_body_of_a_loop():
    x, w = array(5, 32, 64), array(64, 64)

    def build(x, w):
        def step(total, row):
            z = wf.tanh(row @ w)
            return total + z.sum(0), wf.max(z, 0)

        return wf.scan(step, wf.zeros(64), x)

    compiled(build, x, w)


def test_sums_are_as_exact_as_those_of_loops():
    """Of numbers near one, where errors add up; against sums in float64."""
    m, n = 4000, 64
    x, y = (1 + a * np.float32(1e-3) for a in (array(m, 1), array(1, n)))
    with wf.Graph() as graph:
        feeds = [wf.placeholder(a.shape, a.dtype) for a in (x, y)]
        total = (feeds[0] @ feeds[1]).sum(0)
    found = wf.Session(graph, compiled=True).run(total, dict(zip(feeds, (x, y), strict=True)))
    expected = (x.astype(np.float64) @ y.astype(np.float64)).sum(0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("size", [(64, 128, 128), (1000, 200, 300), (97, 70, 20)])
def test_threads_do_not_change_a_bit(size):
    m, n, k = size
    arrays = array(m, k), array(k, n), array(m, n)
    with wf.Graph() as graph:
        x, y, h = feeds = [wf.placeholder(a.shape, a.dtype) for a in arrays]
        z = (x @ y) * (h > 0)
        out = [z, z.sum(0)]
    assert_same_bits_on_threads(graph, out, dict(zip(feeds, arrays, strict=True)))
