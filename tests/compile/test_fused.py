"""Fused kernels of neural networks: odd sizes, layouts, special values, any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from tests.threads import assert_same_bits_on_threads

SIZES = [(1, 1), (3, 7), (17, 3), (5, 1000), (130, 33), (2, 40_001), (700, 70)]
TOLERANCE = {"float32": 3e-5, "float64": 1e-11}


def layer_norm(x, w, b):
    return F.layer_norm(x, x.shape[-1:], w, b)


def batch_statistics(x, w, b):
    mean = x.mean(0)
    return (x - mean) / wf.sqrt(x.var(0) + 1.0) * w + b


FUNCTIONS = {
    "softmax": lambda x, w, b: F.softmax(x * w, -1) + b,
    "log_softmax": lambda x, w, b: F.log_softmax(x + b, -1) * w,
    "layer_norm": layer_norm,
    "rms_norm": lambda x, w, b: F.rms_norm(x + b, x.shape[-1:], w, 1e-6),
    "gelu": lambda x, w, b: F.gelu(x + b) * w,
    "gelu_tanh": lambda x, w, b: F.gelu(x + b, approximate="tanh") * w,
    "statistics": batch_statistics,
    "normalised": lambda x, w, b: x * w / wf.sqrt((x * x).sum() + 1.0) + b,
}


def program(function, shape, dtype):
    """Return a graph of a function with its gradients, fetches, and feeds."""
    rng = np.random.default_rng(0)
    with wf.Graph() as graph:
        xs = [wf.placeholder(s, dtype) for s in (shape, shape[1:], shape[1:])]
        y = function(*xs)
        g = wf.placeholder(shape, dtype)
        fetches = [y, y.sum(), *wf.gradients(y, xs, g)]
    feeds = {x: rng.normal(size=x.shape).astype(dtype) for x in (*xs, g)}
    return graph, fetches, feeds


def assert_close(found, expected, tolerance):
    for a, b in zip(found, expected, strict=True):
        scale = float(np.abs(b[np.isfinite(b)]).max(initial=1))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_and_backward(name, shape, dtype):
    graph, fetches, feeds = program(FUNCTIONS[name], shape, dtype)
    expected = wf.Session(graph, compiled=False).run(fetches, feeds)
    assert_close(wf.Session(graph, compiled=True).run(fetches, feeds), expected, TOLERANCE[dtype])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_threads_do_not_change_a_bit(name):
    graph, fetches, feeds = program(FUNCTIONS[name], (700, 257), "float32")
    assert_same_bits_on_threads(graph, fetches, feeds)


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "statistics"])
def test_layouts(name):
    """Feeds need not lie in C order."""
    graph, fetches, feeds = program(FUNCTIONS[name], (40, 30), "float32")
    strided = {x: np.repeat(a, 2, axis=-1)[..., ::2] for x, a in feeds.items()}
    session = wf.Session(graph, compiled=True)
    for a, b in zip(session.run(fetches, strided), session.run(fetches, feeds), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e30, -1e30])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "gelu", "normalised"])
def test_special_values(name, special):
    graph, (y, *_), feeds = program(FUNCTIONS[name], (9, 21), "float32")
    next(iter(feeds.values()))[4, 5] = special
    expected = wf.Session(graph, compiled=False).run([y], feeds)
    assert_close(wf.Session(graph, compiled=True).run([y], feeds), expected, 3e-5)


def test_a_state_is_not_overwritten_before_it_is_read_elsewhere():
    """A parameter that its update reads in another order too is not updated in place."""
    results = []
    for compiled in (False, True):
        p = wf.nn.Parameter(wf.tensor(np.arange(9, dtype=np.float32).reshape(3, 3)))
        with wf.Graph() as graph:
            x = wf.placeholder((3, 3), wf.float32)
            step = wf.optim.SGD([p], lr=0.1).minimize((p * p.T * x).sum())
        wf.Session(graph, compiled=compiled).run(step, {x: np.ones((3, 3), np.float32)})
        results.append(p.numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-6)


def test_many_updates_share_a_region():
    """A hundred parameters are updated by one call of the thread pool."""
    params = [wf.nn.Parameter(wf.tensor(np.ones(1000 + n, np.float32))) for n in range(100)]
    with wf.Graph() as graph:
        loss = sum((p * p).sum() for p in params)
        step = wf.optim.Adam(params, lr=0.1).minimize(loss)
    session = wf.Session(graph, compiled=True)
    session.run(step, {})
    text = session.executable(step, {}).llvm_ir()
    assert text.count("call void @weft_parallel_for(") <= 2
    for p in params:
        np.testing.assert_allclose(p.numpy(), 0.9, rtol=1e-5)
