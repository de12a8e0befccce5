"""Random numbers in compiled code are the same bits as the interpreter's and as eager ones."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.threads import num_threads

SHAPES = [(), (1,), (3,), (7, 5), (17, 3), (100003,), (2, 0)]
DRAWS = {
    "rand": lambda s: wf.rand(*s),
    "rand in float64": lambda s: wf.rand(*s, dtype=wf.float64),
    "rand in float16": lambda s: wf.rand(*s, dtype=wf.float16),
    "uniform": lambda s: wf.uniform(-3.0, 0.1, s),
    "randn": lambda s: wf.randn(*s),
    "randn in float64": lambda s: wf.randn(*s, dtype=wf.float64),
    "normal": lambda s: wf.normal(0.3, 1.7, s),
    "truncated": lambda s: wf.truncated_normal(shape=s),
    "exponential": lambda s: wf.exponential(shape=s),
    "integers": lambda s: wf.randint(-5, 1000, s),
    "bytes": lambda s: wf.randint(0, 256, s, dtype=wf.uint8),
    "bernoulli": lambda s: wf.bernoulli(0.3, s),
}


def drawn(draw, shape, compiled, threads=1):
    with num_threads(threads):
        wf.manual_seed(7)
        with wf.Graph() as graph:
            first, second = draw(shape), draw(shape)
        session = wf.Session(graph, compiled=compiled)
        if compiled:
            assert session.executable([first, second]).stats()["library"] == []
        return [*session.run([first, second]), *session.run([first, second])]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_the_same_bits(draw, shape):
    wf.manual_seed(7)
    eager = [draw(shape).numpy() for _ in range(4)]
    for found in (drawn(draw, shape, True), drawn(draw, shape, True, threads=2)):
        for a, b in zip(found, eager, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("shape", [(5,), (6, 33), (64, 1000)])
def test_dropout_and_its_gradient(shape):
    """The mask is drawn in the loop that uses it; the gradient sees the same one."""
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    results = []
    for compiled in (False, True):
        wf.manual_seed(3)
        with wf.Graph() as graph:
            symbol = wf.placeholder(shape, wf.float32)
            y = wf.nn.functional.dropout(wf.tanh(symbol), 0.3, training=True)
            slope = wf.gradients((y * y).sum(), symbol)
        session = wf.Session(graph, compiled=compiled)
        results.append(session.run([y, slope], {symbol: x}))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(a == 0, b == 0)


def test_a_probability_that_is_none():
    with wf.Graph() as graph:
        p = wf.placeholder((3,), wf.float32)
        y = wf.bernoulli(p)
    with pytest.raises(ValueError, match="p must lie in"):
        wf.Session(graph).run(y, {p: np.array([0.5, 1.5, 0.0], np.float32)})
    assert wf.Session(graph).run(y, {p: np.ones(3, np.float32)}).tolist() == [1, 1, 1]
