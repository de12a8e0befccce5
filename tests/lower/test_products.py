"""Which operations become matrix products of compiled code, and what they compute."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import weft as wf
from tests.lower.test_epilogues import array, compiled
from tests.threads import assert_same_bits_on_threads
from weft.backends.cpu.codegen import avx2
from weft.backends.cpu.codegen.gemm.plan import plan_for
from weft.lower.kernels import CallKernel, ColumnKernel, GemmKernel, RowKernel


def the_product(kernels):
    assert not any(isinstance(k, CallKernel) for k in kernels)
    (product,) = (k for k in kernels if isinstance(k, GemmKernel))
    return product


MATMULS = [
    ((7,), (7,)),
    ((5, 7), (7,)),
    ((7,), (7, 9)),
    ((3, 5, 7), (7,)),
    ((7,), (3, 7, 9)),
    ((2, 3, 5, 7), (3, 7, 9)),
    ((3, 1, 5, 7), (4, 7, 9)),
    ((1, 1), (1, 1)),
    ((5, 0), (0, 4)),
    ((0, 5), (5, 4)),
    ((1000,), (1000,)),
    ((1000, 3), (3,)),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", MATMULS, ids=str)
def test_matmul_of_any_ranks(shapes, dtype):
    x, y = (array(*shape, dtype=dtype) for shape in shapes)
    the_product(compiled(lambda x, y: x @ y, x, y))


LAYOUTS = {
    "permuted batch": lambda x: x.permute((1, 0, 2)),
    "a slice of rows": lambda x: x[:, 1:],
    "a slice of columns": lambda x: x[..., 3:10],
    "every other row": lambda x: x[:, ::2],
    "columns first": lambda x: x.permute((0, 2, 1)),
    "one row": lambda x: x[1],
    "a vector": lambda x: x[1, 1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layer_takes_inputs_of_any_layout(layout):
    x = array(4, 6, 20)
    size = LAYOUTS[layout](x if hasattr(x, "permute") else wf.tensor(x)).shape[-1]
    w, b = array(11, size), array(11)
    linear = wf.nn.functional.linear
    the_product(compiled(lambda x, w, b: linear(LAYOUTS[layout](x), w, b), x, w, b))


CONTRACTIONS = {
    "bmm": (wf.bmm, (3, 4, 5), (3, 5, 6)),
    "dot": (wf.dot, (50,), (50,)),
    "mv": (wf.mv, (8, 5), (5,)),
    "inner": (wf.inner, (8, 5), (3, 5)),
    "tensordot": (lambda x, y: wf.tensordot(x, y, 2), (4, 5, 6), (5, 6, 7)),
    "einsum": (lambda x, y: wf.einsum("bik,bjk->bij", x, y), (3, 4, 5), (3, 6, 5)),
    "attention": (lambda x, y: wf.einsum("bthd,bshd->bhts", x, y), (2, 4, 3, 8), (2, 5, 3, 8)),
    "addmm": (lambda x, y: wf.addmm(x[0], x, y), (4, 4), (4, 4)),
    "baddbmm": (lambda x, y: wf.baddbmm(x, x, y, beta=2, alpha=3), (2, 4, 4), (2, 4, 4)),
}


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_contractions_reach_the_kernel(name):
    build, first, second = CONTRACTIONS[name]
    the_product(compiled(build, array(*first), array(*second)))


def test_batches_with_one_matrix_are_taken_as_rows():
    x, y = array(4, 5, 6, 7), array(7, 8)
    kernel = the_product(compiled(lambda x, y: wf.relu(x @ y), x, y))
    product = plan_for(kernel, avx2()).product
    assert product.batch == ()
    assert {product.m, product.n} == {120, 8}


def test_batch_axes_of_size_one_vanish():
    kernel = the_product(compiled(lambda x, y: x @ y, array(1, 5, 7), array(1, 7, 8)))
    assert plan_for(kernel, avx2()).product.batch == ()


def test_half_precision_runs_by_the_library():
    x = np.ones((3, 3), np.float16)
    kernels = compiled(lambda x: x @ x, x)
    assert [type(k) for k in kernels] == [CallKernel]


# -- layouts of results ----------------------------------------------------------------------------


def attention(q, k, v):
    """Return attention on (batch, time, heads x size), which takes heads apart and joins them."""

    def heads(x):
        return x.reshape((2, 6, 3, 4)).permute((0, 2, 1, 3))

    weights = wf.softmax(heads(q) @ heads(k).mT, -1)
    return (weights @ heads(v)).permute((0, 2, 1, 3)).reshape((2, 6, 12))


def test_joined_heads_need_no_copy():
    kernels = compiled(attention, *(array(2, 6, 12) for _ in range(3)))
    assert [type(k) for k in kernels] == [GemmKernel, RowKernel, GemmKernel]


def test_gradients_of_attention_need_no_library():
    def build(*inputs):
        out = attention(*inputs)
        return tuple(wf.gradients((out * out).sum(), list(inputs)))

    kernels = compiled(build, *(array(2, 6, 12) for _ in range(3)))
    assert not any(isinstance(k, CallKernel) for k in kernels)


@pytest.mark.parametrize("axes", [(1, 0, 2), (0, 2, 1), (2, 0, 1), (1, 2, 0)])
def test_results_in_any_order_of_axes(axes):
    x, y, other = array(3, 4, 5), array(3, 5, 6), array(*(np.array([3, 4, 6])[list(axes)]))
    compiled(lambda x, y, o: (x @ y).permute(axes) * o, x, y, other)
    compiled(lambda x, y: ((x @ y).permute(axes), (x @ y).permute(axes).sum()), x, y)
    compiled(lambda x, y: ((x @ y).permute(axes), x @ y), x, y)


def test_a_transposed_result_and_its_sum():
    x, y = array(7, 9), array(9, 11)
    compiled(lambda x, y: (wf.tanh((x @ y).mT), (x @ y).mT.reshape((77,))), x, y)
    compiled(lambda x: (x @ x.mT).mT.reshape((-1,)), array(5, 65536))


def test_large_products_run_on_small_stacks():
    x = array(700, 700)
    with wf.Graph() as graph:
        feed = wf.placeholder(x.shape, x.dtype)
        out = feed @ feed
    session = wf.Session(graph, compiled=True)
    expected = session.run(out, {feed: x})
    results, before = [], threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: results.append(session.run(out, {feed: x})))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    np.testing.assert_array_equal(results[0], expected)


# -- long inner dimensions -------------------------------------------------------------------------

LONG = [((1 << 20,), (1 << 20,)), ((3, 70001), (70001, 5)), ((16, 65536), (65536, 16))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", LONG, ids=str)
def test_long_sums_are_divided(shapes, dtype):
    x, y = (array(*shape, dtype=dtype) for shape in shapes)
    kernels = compiled(lambda x, y: x @ y, x, y)
    parts = [k for k in kernels if isinstance(k, GemmKernel)]
    assert sum(k.k * (k.batch[0] if k.batch else 1) for k in parts) == x.shape[-1]
    assert isinstance(kernels[-1], ColumnKernel)


def test_the_sum_of_parts_of_a_batch_and_of_transposed_operands():
    x, y = array(2, 65536, 5), array(2, 7, 65536)
    kernels = compiled(lambda x, y: x.mT @ y.mT, x, y)
    assert isinstance(kernels[-1], ColumnKernel)


def test_dividing_does_not_depend_on_threads():
    x, y = array(70001, 6), array(70001, 9)
    with wf.Graph() as graph:
        feeds = [wf.placeholder(a.shape, a.dtype) for a in (x, y)]
        out = feeds[0].mT @ feeds[1]
    assert_same_bits_on_threads(graph, [out], dict(zip(feeds, (x, y), strict=True)))
