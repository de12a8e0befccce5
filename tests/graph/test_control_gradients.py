"""Derivatives through control flow: a graph gives what the tape gives, to any order."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.graph.both import assert_close, placeholder_for
from tests.programs.control_flow import PROGRAMS, gradients_inside_a_body
from weft.autodiff.check import check_grads

RNG = np.random.default_rng(1)


def data(*shape):
    return RNG.standard_normal(shape)


def double(value):
    return wf.tensor(np.float64(value))


X, W = np.array([0.9, 0.4, 1.1]), np.array([0.7, -0.3, 0.8])
programs = pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
signs = pytest.mark.parametrize("sign", [1.0, -1.0], ids=["plus", "minus"])
sizes = pytest.mark.parametrize("size", [3, "n"], ids=["known", "unknown"])


def scalar(tree):
    """Return one number that depends on all results of a program."""
    leaves = wf.core.tree.flatten(tree)[0] if not isinstance(tree, wf.Tensor) else [tree]
    return sum((y * y + y).sum() for y in leaves if y.dtype.kind == "f")


def eager_derivatives(fn, sign):
    """Return value, gradients, second-order gradients and tangents by tape and dual numbers."""
    x, w = (wf.tensor(a, requires_grad=True) for a in (X * sign, W))
    loss = scalar(fn(x, w))
    first = wf.gradients(loss, [x, w], create_graph=True)
    second = wf.gradients(curvature(first), [x, w])
    return loss, first, second


def curvature(gs):
    return sum((g * g.sin()).sum() for g in gs)


def arrays(tensors):
    return [t.numpy() for t in tensors]


@sizes
@signs
@programs
def test_reverse_to_second_order(fn, sign, size):
    loss, first, second = eager_derivatives(fn, sign)
    with wf.Graph() as graph:
        x, w = wf.placeholder((size,), wf.float64), wf.placeholder((size,), wf.float64)
        value = scalar(fn(x, w))
        gs = wf.gradients(value, [x, w])
        g2 = wf.gradients(curvature(gs), [x, w])
    found = wf.Session(graph).run([value, gs, g2], {x: X * sign, w: W})
    np.testing.assert_array_equal(found[0], loss.numpy())
    assert_close(found[1], arrays(first))
    assert_close(found[2], arrays(second))


@signs
@programs
def test_forward_and_mixed_modes(fn, sign):
    t = [data(3), data(3)]
    x, w = (wf.tensor(a, requires_grad=True) for a in (X * sign, W))
    tangents = [wf.tensor(a) for a in t]
    loss = scalar(fn(x, w))
    first = wf.gradients(loss, [x, w], create_graph=True)
    slope = sum((g * d).sum() for g, d in zip(first, tangents, strict=True))
    hvp = wf.gradients(slope, [x, w])
    with wf.Graph() as graph:
        x, w, tx, tw = map(placeholder_for, (X, W, *t))
        value = scalar(fn(x, w))
        forward = wf.forward_gradients(value, [x, w], [tx, tw])
        gs = wf.gradients(value, [x, w])
        forward_of_reverse = wf.forward_gradients(gs, [x, w], [tx, tw])
        reverse_of_forward = wf.gradients(forward, [x, w])
        forward_of_forward = wf.forward_gradients(forward, [x, w], [tx, tw])
    fetches = [forward, forward_of_reverse, reverse_of_forward, forward_of_forward]
    found = wf.Session(graph).run(fetches, {x: X * sign, w: W, tx: t[0], tw: t[1]})
    assert_close(found[0], slope.numpy())
    assert_close(found[1], arrays(hvp))
    assert_close(found[2], arrays(hvp))
    along = sum(float((h.numpy() * d).sum()) for h, d in zip(hvp, t, strict=True))
    assert_close(found[3], np.array(along), 1e-10)


@pytest.mark.parametrize(
    "sign", [1.0, pytest.param(-1.0, marks=pytest.mark.long)], ids=["plus", "minus"]
)
@pytest.mark.parametrize(
    "fn", [p for p in PROGRAMS if p is not gradients_inside_a_body], ids=lambda fn: fn.__name__
)
def test_eager_derivatives_agree_with_differences(fn, sign):
    check_grads(lambda x, w: scalar(fn(x, w)), [wf.tensor(X * sign), wf.tensor(W)], order=2)


# -- zero, unconnected, undefined ------------------------------------------------------------------


def test_a_branch_that_is_not_taken_contributes_zero():
    with wf.Graph() as graph:
        x, w = wf.placeholder((), wf.float64), wf.placeholder((2,), wf.float64)
        y = wf.cond(x > 0, lambda: x * 2, (x * w).sum)
        gs = wf.gradients(y, [x, w])
    session = wf.Session(graph)
    assert_close(session.run(gs, {x: 3.0, w: [1.0, 2.0]}), [np.array(2.0), np.zeros(2)])
    assert_close(session.run(gs, {x: -3.0, w: [1.0, 2.0]}), [np.array(3.0), np.full(2, -3.0)])


def test_nan_of_the_other_branch_does_not_leak():
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float64)
        y = wf.cond(x > 0, lambda v: v.log(), lambda v: v * 0, x)
        (d,) = wf.gradients(y, [x])
        (d2,) = wf.gradients(d, [x])
        t = wf.forward_gradients(y, x, double(1))
    assert_close(wf.Session(graph).run([d, d2, t], {x: 0.0}), [np.array(0.0)] * 3)


def test_unconnected_is_none():
    with wf.Graph():
        x, y = wf.placeholder((), wf.float32), wf.placeholder((), wf.float32)
        n = wf.placeholder((), wf.int64)
        loop = wf.while_loop(lambda c: c < 5, lambda c: c + x, wf.zeros(()))
        rows = wf.scan(lambda c, _: (c, x), wf.zeros(()), length=3)
        chosen = wf.cond(x > 0, lambda: x, lambda: x * 2)
        for result in (loop, rows[1], chosen):
            assert wf.gradients(result, [y, n]) == [None, None]
            assert wf.forward_gradients(result, y, wf.ones(())) is None
        assert wf.gradients(rows[0], [x]) == [None]


def test_the_predicate_and_integers_have_no_gradient():
    with wf.Graph() as graph:
        x, limit = wf.placeholder((), wf.float64), wf.placeholder((), wf.float64)
        y = wf.while_loop(lambda c: c < limit, lambda c: c * 2, x)
        gs = wf.gradients(y, [x, limit])
    found = wf.Session(graph).run([y, gs[0]], {x: 1.0, limit: 10.0})
    assert found == [16.0, 16.0]
    if gs[1] is not None:
        assert wf.Session(graph).run(gs[1], {x: 1.0, limit: 10.0}) == 0.0


def test_gradients_of_captured_parameters_are_summed():
    w = wf.nn.Parameter(wf.tensor(data(3, 3)))
    xs = data(5, 3)

    def fn(rows):
        return (wf.scan(lambda h, row: ((h @ w + row).tanh(), h), rows[0], rows)[1] ** 2).sum()

    expected = wf.gradients(fn(wf.tensor(xs)), [w])[0].numpy()
    with wf.Graph() as graph:
        rows = wf.placeholder((None, 3), wf.float64)
        (g,) = wf.gradients(fn(rows), [w])
    assert_close(wf.Session(graph).run(g, {rows: xs}), expected)


def test_rows_that_no_step_has_seen_have_zero_gradient():
    for reverse in (False, True):
        with wf.Graph() as graph:
            x = wf.placeholder((None,), wf.float64)
            total, _ = wf.scan(
                lambda c, v: (c + v * v, c), double(0), x, reverse=reverse, until=lambda c, y: c > 4
            )
            (g,) = wf.gradients(total, [x])
        found = wf.Session(graph).run(g, {x: [1.0, 2.0, 3.0]})
        np.testing.assert_array_equal(found, [0, 0, 6] if reverse else [2, 4, 0])


def test_gradient_of_a_thousand_steps():
    xs = data(1000) * 0.1

    def fn(x):
        return wf.scan(lambda c, v: ((c + v).sin(), c * v), x[0], x)[1].sum()

    x = wf.tensor(xs, requires_grad=True)
    expected = wf.gradients(fn(x), x).numpy()
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.float64)
        (g,) = wf.gradients(fn(x), [x])
    assert_close(wf.Session(graph).run(g, {x: xs}), expected)


def test_gradient_through_random_numbers_in_a_body():
    w = wf.nn.Parameter(wf.tensor(data(4)))

    def fn(x):
        def step(c, row):
            return wf.nn.functional.dropout(c * w + row, 0.5, training=True), None

        return wf.scan(step, x[0], x)[0].sum()

    xs = data(4, 4)
    wf.manual_seed(5)
    expected = wf.gradients(fn(wf.tensor(xs)), [w])[0].numpy()
    with wf.Graph() as graph:
        x = wf.placeholder((4, 4), wf.float64)
        loss = fn(x)
        (g,) = wf.gradients(loss, [w])
    wf.manual_seed(5)
    _, found = wf.Session(graph).run([loss, g], {x: xs})
    assert_close(found, expected)
    after = wf.get_rng_state() if hasattr(wf, "get_rng_state") else None
    wf.manual_seed(5)
    wf.Session(graph).run(g, {x: xs})
    if after is not None:
        np.testing.assert_array_equal(np.asarray(after), np.asarray(wf.get_rng_state()))


def test_gradient_with_respect_to_a_symbol_between():
    """A value computed outside and captured, and a result of a loop, may be xs too."""
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float64)
        between = x * 3
        y = wf.scan(lambda c, _: (c * between, c), double(1), length=3)[0]
        z = y * y
        gs = wf.gradients(z, [between, y, x])
    found = wf.Session(graph).run(gs, {x: 2.0})
    np.testing.assert_allclose(found, [6 * 6.0**5, 2 * 6.0**3, 18 * 6.0**5], rtol=1e-14)


def test_stop_gradient_in_a_body():
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float64)
        y = wf.scan(lambda c, _: (c * x.detach() + x, None), double(1), length=2)[0]
        (g,) = wf.gradients(y, [x])
        with wf.no_grad():
            frozen = wf.scan(lambda c, _: (c * x, None), double(1), length=2)[0]
        assert wf.gradients(frozen + 0, [x]) == [None]
    assert wf.Session(graph).run(g, {x: 5.0}) == 6.0


# -- random numbers --------------------------------------------------------------------------------


def noisy(x):
    """Draw before, inside and behind a loop."""
    first = wf.rand(3, dtype=wf.float64)
    last, _ = wf.scan(
        lambda c, v: ((c * v).sin() + wf.randn(3, dtype=wf.float64) * c, None), x[0], x
    )
    behind = wf.rand(3, dtype=wf.float64)
    return (last * first).sum() + (x[0] * behind).sum()


@pytest.mark.parametrize("fetched", ["value", "gradient", "both", "second"])
def test_what_is_fetched_decides_how_far_the_generator_moves(fetched):
    xs = data(4, 3)
    leaf = wf.tensor(xs, requires_grad=True)
    wf.manual_seed(9)
    y = noisy(leaf)
    end = wf.get_rng_state()
    (g,) = wf.gradients(y, [leaf], create_graph=True)
    h = wf.gradients((g * g).sum(), leaf)
    expected = {"value": [y], "gradient": [g], "both": [y, g], "second": [h]}[fetched]
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float64)
        y = noisy(x)
        (g,) = wf.gradients(y, [x])
        h = wf.gradients((g * g).sum(), x)
    fetches = {"value": [y], "gradient": [g], "both": [y, g], "second": [h]}[fetched]
    wf.manual_seed(9)
    found = wf.Session(graph).run(fetches, {x: xs})
    assert_close(found, arrays(expected))
    np.testing.assert_array_equal(np.asarray(wf.get_rng_state()), np.asarray(end))


def test_training_through_a_loop_with_state():
    """Microbatches in a scan: dropout and batch normalisation inside, one step of SGD."""

    def build():
        wf.manual_seed(4)
        net = wf.nn.Sequential(
            wf.nn.Linear(3, 4),
            wf.nn.BatchNorm1d(4),
            wf.nn.Tanh(),
            wf.nn.Dropout(0.3),
            wf.nn.Linear(4, 1),
        )
        return net, wf.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def loss_of(net, batches):
        def step(total, x):
            return (total + (net(x) ** 2).mean(), None)

        return wf.scan(step, wf.zeros(()), batches)[0]

    batches = RNG.standard_normal((10, 3, 5, 3)).astype(np.float32)
    net, optimizer = build()
    for batch in batches:
        optimizer.minimize(loss_of(net, wf.tensor(batch)))
    expected = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    end = wf.get_rng_state()
    net, optimizer = build()
    with wf.Graph() as graph:
        x = wf.placeholder((None, 5, 3), wf.float32)
        train = optimizer.minimize(loss_of(net, x))
    for batch in batches:
        wf.Session(graph).run(train, {x: batch})
    for key, value in net.state_dict().items():
        np.testing.assert_allclose(value.numpy(), expected[key], rtol=1e-4, atol=1e-6, err_msg=key)
    np.testing.assert_array_equal(np.asarray(wf.get_rng_state()), np.asarray(end))
