"""The classic programs of define-and-run, with known derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf

RNG = np.random.default_rng(2)


def data(*shape):
    return RNG.standard_normal(shape)


def double(value):
    return wf.tensor(np.float64(value))


# -- Newton's iteration ----------------------------------------------------------------------------


@pytest.mark.parametrize("a", [0.3, 2.0, 9.0, 1e4])
def test_newton_for_the_square_root(a):
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float64, name="a")
        start = wf.ones((), dtype=wf.float64)
        trips, root = wf.while_loop(
            lambda c: (c[1] * c[1] - x).abs() > 1e-13 * x,
            lambda c: (c[0] + 1, 0.5 * (c[1] + x / c[1])),
            (0, start),
        )
        (d,) = wf.gradients(root, [x])
        (d2,) = wf.gradients(d, [x])
        (d3,) = wf.gradients(d2, [x])
        f = wf.forward_gradients(root, x, start)
    trips, *found = wf.Session(graph).run([trips, root, d, f, d2, d3], {x: a})
    assert trips > 2
    slope = 0.5 * a**-0.5
    analytic = [a**0.5, slope, slope, -0.25 * a**-1.5, 0.375 * a**-2.5]
    np.testing.assert_allclose(found, analytic, rtol=1e-6)
    np.testing.assert_allclose(found[:4], analytic[:4], rtol=1e-9)


def test_newton_makes_more_trips_for_larger_numbers():
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float64)
        trips, _ = wf.while_loop(
            lambda c: (c[1] * c[1] - x).abs() > 1e-12 * x,
            lambda c: (c[0] + 1, 0.5 * (c[1] + x / c[1])),
            (0, double(1)),
        )
    session = wf.Session(graph)
    counts = [int(session.run(trips, {x: v})) for v in (1.0, 2.0, 100.0, 1e6)]
    assert counts == sorted(counts)
    assert counts[0] == 0


def test_vector_fixed_point():
    """The solution of x = tanh(A x + b) has dx/db = (I - D A)^-1 D with D = diag(1 - x^2)."""
    a = data(4, 4) * 0.2
    b = data(4)
    with wf.Graph() as graph:
        bias = wf.placeholder((4,), wf.float64)

        def body(c):
            return (wf.tensor(a) @ c[0] + bias).tanh(), c[0]

        def moving(c):
            return (c[0] - c[1]).abs().max() > 1e-15

        start = wf.zeros(4, dtype=wf.float64)
        point, _ = wf.while_loop(moving, body, (start, start + 1))
        (g,) = wf.gradients((point * point).sum(), [bias])
        (h,) = wf.gradients(g.sum(), [bias])
    found, gradient, second = wf.Session(graph).run([point, g, h], {bias: b})
    np.testing.assert_allclose(found, np.tanh(a @ found + b), rtol=1e-13)

    def analytic(v):
        x = np.zeros(4)
        for _ in range(300):
            x = np.tanh(a @ x + v)
        d = np.diag(1 - x * x)
        return np.linalg.solve(np.eye(4) - d @ a, d).T @ (2 * x)

    np.testing.assert_allclose(gradient, analytic(b), rtol=1e-11)
    eps = 1e-6
    numeric = [
        (analytic(b + eps * e).sum() - analytic(b - eps * e).sum()) / (2 * eps) for e in np.eye(4)
    ]
    np.testing.assert_allclose(second, numeric, rtol=1e-7, atol=1e-8)


# -- the classic programs --------------------------------------------------------------------------


def test_gradients_of_placeholders_in_one_run():
    with wf.Graph() as graph:
        x, y, z = (wf.placeholder((3, 4), wf.float32, name=n) for n in "xyz")
        a = x * y
        b = a + z
        c = b.sum()
        gs = wf.gradients(c, [x, y, z])
    values = [RNG.standard_normal((3, 4)).astype(np.float32) for _ in range(3)]
    feeds = dict(zip("xyz", values, strict=True))
    total, grads = wf.Session(graph).run([c, gs], feeds)
    np.testing.assert_allclose(total, (values[0] * values[1] + values[2]).sum(), rtol=1e-5)
    np.testing.assert_array_equal(grads[0], values[1])
    np.testing.assert_array_equal(grads[1], values[0])
    np.testing.assert_array_equal(grads[2], np.ones((3, 4), np.float32))


def test_counting_loop_is_differentiable_when_it_carries_floats():
    with wf.Graph() as graph:
        w = wf.placeholder((), wf.float64)
        i, p = wf.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] * w), (0, double(1)))
        (d,) = wf.gradients(p, [w])
        (d2,) = wf.gradients(d, [w])
    found = wf.Session(graph).run([i, p, d, d2], {w: 1.1})
    np.testing.assert_allclose(found, [10, 1.1**10, 10 * 1.1**9, 90 * 1.1**8], rtol=1e-14)
