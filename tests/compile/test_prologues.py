"""Programs whose products compute their operands: as interpreted, and the same on any threads."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.lower.test_epilogues import array
from tests.threads import assert_same_bits_on_threads, num_threads

SIZES = [(17, 33, 65), (64, 64, 64), (130, 257, 300)]
OPERANDS = {
    "activation": lambda x, w: wf.relu(x) @ w,
    "function": lambda x, w: wf.tanh(x) @ wf.sigmoid(w),
    "shifted": lambda x, w: (x + x[:1]) @ (w * w[:, :1]),
    "transposed": lambda x, w: (wf.abs(w).mT @ (x * 0.5).mT).mT,
    "selected": lambda x, w: wf.where(x > 0, x, -1.0) @ w,
    "doubles": lambda x, w: x.astype(wf.float64) @ w.astype(wf.float64),
    "through halves": lambda x, w: x @ w.astype(wf.float16).astype(w.dtype),
    "with an epilogue": lambda x, w: wf.relu((x - 1.0) @ w) + 1.0,
}


def program(build, arrays):
    """Return a graph with its result and its feeds."""
    with wf.Graph() as graph:
        feeds = [wf.placeholder(a.shape, a.dtype) for a in arrays]
        result = build(*feeds)
    return graph, result, dict(zip(feeds, arrays, strict=True))


def assert_agrees(build, arrays, tolerance):
    graph, result, feeds = program(build, arrays)
    expected = wf.Session(graph, compiled=False).run(result, feeds)
    scale = tolerance * float(np.abs(expected).max(initial=1))
    for threads in (1, 2):
        with num_threads(threads):
            found = wf.Session(graph, compiled=True).run(result, feeds)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=scale)
    assert_same_bits_on_threads(graph, [result], feeds)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", OPERANDS)
def test_computed_operands(name, size, dtype):
    m, n, k = size
    arrays = array(m, k, dtype=dtype), array(k, n, dtype=dtype)
    assert_agrees(OPERANDS[name], arrays, 1e-4 if dtype == "float32" else 1e-10)


@pytest.mark.parametrize("source", ["float16", "int8", "uint8", "bool"])
def test_weights_of_few_bytes(source):
    weights = (np.abs(array(300, 200)) * 40).astype(source)
    assert_agrees(lambda x, w: x @ w.astype(wf.float32), (array(33, 300), weights), 1e-4)


def test_scaled_and_masked_attention():
    q, k, v = array(2, 3, 40, 16), array(2, 3, 40, 16), array(2, 3, 40, 24)
    mask = np.tril(np.ones((40, 40), bool))

    def build(q, k, v, mask):
        scores = wf.where(mask, (q * 0.25) @ k.mT, -1e9)
        return (wf.softmax(scores, -1) * 2.0) @ v

    assert_agrees(build, (q, k, v, mask), 1e-4)


def test_functions_that_every_thread_would_compute():
    """One thread computes them while it packs, two do not: the bits are the same."""
    graph, result, feeds = program(lambda x, w: wf.tanh(x) @ w, (array(300, 400), array(400, 512)))
    kernels = []
    for threads in (1, 2):
        with num_threads(threads):
            session = wf.Session(graph, compiled=True)
            session.run([result], feeds)
            kernels.append(len(session.executable([result], feeds).kernels))
    assert kernels[0] <= kernels[1]
    assert_same_bits_on_threads(graph, [result], feeds)


def test_listings_name_what_is_computed_on_the_way():
    graph, result, feeds = program(
        lambda x, w: wf.relu(x * 2.0) @ w, (array(64, 96), array(96, 64))
    )
    session = wf.Session(graph, compiled=True)
    session.run([result], feeds)
    (kernel,) = session.executable([result], feeds).kernels
    assert kernel.kind == "gemm"
    assert kernel.ops == ("mul", "relu", "matmul")
    assert kernel.flops == 2 * 64 * 96 * 64 + 2 * 64 * 96


def test_nan_and_infinity_of_operands_pass_through():
    x, w = array(40, 48), array(48, 40)
    x[1, 2], x[3, 4] = np.nan, np.inf
    graph, result, feeds = program(lambda x, w: wf.relu(x) @ w, (x, w))
    found = wf.Session(graph, compiled=True).run(result, feeds)
    with np.errstate(invalid="ignore"):
        expected = np.maximum(x, 0) @ w
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))
