"""Elementwise results on the tiles of products: what is fused, and that nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.lower.kernels import GemmKernel, RowKernel

RNG = np.random.default_rng(3)


def array(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def compiled(build, *arrays):
    """Return the kernels of a function of arrays, whose results are equal to interpreted ones."""
    return list(executable_of(build, *arrays).program.kernels)


def executable_of(build, *arrays):
    """Return a compiled function of arrays, whose results are equal to interpreted ones."""
    with wf.Graph() as graph:
        feeds = [wf.placeholder(a.shape, a.dtype) for a in arrays]
        fetches = build(*feeds)
    fetches = list(fetches) if isinstance(fetches, tuple) else [fetches]
    values = dict(zip(feeds, arrays, strict=True))
    session = wf.Session(graph, compiled=True)
    found = session.run(fetches, values)
    expected = wf.Session(graph, compiled=False).run(fetches, values)
    for a, b in zip(found, expected, strict=True):
        scale = float(np.abs(b).max(initial=1))
        tolerance = 1e-4 if arrays[0].dtype == np.float32 else 1e-10
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)
    return session.executable(fetches, values)


def only_products(kernels, count=1):
    return len(kernels) == count and all(isinstance(k, GemmKernel) for k in kernels)


ACTIVATIONS = {
    "relu": wf.relu,
    "tanh": wf.tanh,
    "sigmoid": wf.sigmoid,
    "scale": lambda z: z * 0.125,
    "mask": lambda z: wf.where(z > 0.5, z, -1.0),
    "cast": lambda z: z.astype(wf.float64),
    "truth": lambda z: z > 0,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("size", [(1, 1, 1), (3, 7, 17), (33, 50, 300), (1, 70, 40), (70, 1, 40)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_a_product(activation, size, dtype):
    m, n, k = size
    x, y = array(m, k, dtype=dtype), array(k, n, dtype=dtype)
    assert only_products(compiled(lambda x, y: ACTIVATIONS[activation](x @ y), x, y))


@pytest.mark.parametrize("shape", [(20, 30), (30,), (20, 1), (1, 1), ()])
def test_operands_of_any_broadcast_shape(shape):
    x, y, other = array(20, 40), array(40, 30), array(*shape)
    assert only_products(compiled(lambda x, y, o: wf.relu(x @ y) + o, x, y, other))


@pytest.mark.parametrize("shape", [(2, 5, 30), (5, 30), (2, 1, 30), (2, 5, 1), (30,)])
def test_a_layer_on_three_axes(shape):
    x, w, b, other = array(2, 5, 40), array(30, 40), array(30), array(*shape)
    linear = wf.nn.functional.linear
    assert only_products(compiled(lambda x, w, b, o: linear(x, w, b) * o, x, w, b, other))


def test_a_product_that_others_want_is_stored_too():
    x, y = array(9, 20), array(20, 33)

    def build(x, y):
        z = x @ y
        return wf.tanh(z), z.sum(0), z

    kernels = compiled(build, x, y)
    products = [k for k in kernels if isinstance(k, GemmKernel)]
    assert len(products[0].outputs) == 1
    loops = [k for k in kernels if isinstance(k, RowKernel)]
    assert all(output.way == "sum" for k in loops for output in k.outputs)


def test_several_results_of_one_product():
    x, y = array(12, 20), array(20, 16)

    def build(x, y):
        z = wf.relu(x @ y)
        return z, wf.exp(z)

    kernels = compiled(build, x, y)
    assert only_products(kernels)
    assert len(kernels[0].outputs) == 2


def test_the_sum_of_two_products():
    arrays = array(6, 10), array(10, 18), array(6, 14), array(14, 18)
    kernels = compiled(lambda a, b, c, d: wf.sigmoid(a @ b + c @ d), *arrays)
    assert only_products(kernels, 2)
    assert [len(k.outputs) for k in kernels] == [0, 1]


def test_a_product_wanted_earlier_stays_where_it_is():
    """The first user is another product: elements must be there before the second one."""
    x, y, z = array(8, 8), array(8, 8), array(8, 8)

    def build(x, y, z):
        p = x @ y
        q = p @ z
        return p + q

    kernels = compiled(build, x, y, z)
    assert only_products(kernels, 2)


def test_reductions_keep_their_own_loops():
    kernels = compiled(lambda x, y: wf.softmax(x @ y, -1), array(5, 6), array(6, 7))
    assert [type(k) for k in kernels] == [GemmKernel, RowKernel]


def test_transposed_operands_of_the_epilogue():
    x, y, other = array(20, 40), array(40, 30), array(30, 20)
    compiled(lambda x, y, o: (x @ y) * o.mT, x, y, other)
    compiled(lambda x, y, o: (x @ y).mT * o, x, y, other)


def test_empty_inner_dimension_and_empty_results():
    compiled(lambda x, y: wf.exp(x @ y), array(4, 0), array(0, 5))
    compiled(lambda x, y: wf.exp(x @ y), array(0, 3), array(3, 5))
    compiled(lambda x, y: wf.exp(x @ y), array(4, 3), array(3, 0))


def test_nan_and_infinity_pass_through():
    x, y = array(7, 20), array(20, 24)
    x[1, 2], y[3, 4] = np.nan, np.inf
    with wf.Graph() as graph:
        feeds = [wf.placeholder(a.shape, a.dtype) for a in (x, y)]
        out = wf.relu(feeds[0] @ feeds[1])
    found = wf.Session(graph, compiled=True).run(out, dict(zip(feeds, (x, y), strict=True)))
    with np.errstate(invalid="ignore"):
        expected = np.maximum(x @ y, 0)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))


@pytest.mark.parametrize("size", [(300, 700, 300), (64, 128, 128), (1000, 17, 600), (1, 3000, 300)])
def test_threads_do_not_change_a_bit(size):
    m, n, k = size
    x, y, other = array(m, k), array(k, n), array(m, n)
    before, results = wf.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            wf.set_num_threads(threads)
            with wf.Graph() as graph:
                feeds = [wf.placeholder(a.shape, a.dtype) for a in (x, y, other)]
                out = wf.tanh(feeds[0] @ feeds[1]) + feeds[2]
            session = wf.Session(graph, compiled=True)
            values = dict(zip(feeds, (x, y, other), strict=True))
            session.run(out, values)  # the first run starts the threads
            results.append(session.run(out, values))
    finally:
        wf.set_num_threads(before)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


# -- states ----------------------------------------------------------------------------------------


def updated(build, value):
    """Return a state after one compiled and after one interpreted update."""
    results = []
    for mode in (True, False):
        state = wf.tensor(value.copy())
        with wf.Graph() as graph:
            update = state.assign(build(state))
        wf.Session(graph, compiled=mode).run(update, {})
        results.append(state.numpy())
    return results


UPDATES = {
    "its transposed": lambda w: w + w.mT,
    "its first row": lambda w: w + w[0],
    "its reverse": lambda w: w + wf.flip(w, 0),
    "a product": lambda w: w - 0.1 * (w @ w),
    "a product and itself transposed": lambda w: (w @ w) * w.mT,
    "another's product": lambda w: w * 0.5 + wf.ones(64, 64) @ wf.ones(64, 64),
}


@pytest.mark.parametrize("name", UPDATES)
def test_a_state_is_not_overwritten_while_it_is_read(name):
    found, expected = updated(UPDATES[name], array(64, 64))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_sums_over_rows_of_a_small_product_are_no_epilogue():
    x, y = array(16, 20), array(20, 8)
    compiled(lambda x, y: (x @ y).mean(0), x, y)
    compiled(lambda x, y: ((x @ y) * 2.0).sum(0), x, y)
