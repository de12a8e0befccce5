"""Derivatives where there is none in the textbook: one answer, the same in every mode.

The table in docs/transforms.md says what is tested here.
"""

import numpy as np
import pytest

import weft as wf

F = wf.nn.functional
INF, NAN = np.inf, np.nan


def one(value):
    return wf.tensor(np.array([value]))


KINKS = {
    "abs at 0": (wf.abs, [0.0, -0.0], [0, 0]),
    "relu at 0": (wf.relu, [0.0], [0]),
    "leaky relu at 0": (lambda x: F.leaky_relu(x, 0.1), [0.0], [0.1]),
    "relu6 at its ends": (F.relu6, [0.0, 6.0], [0, 0]),
    "hardtanh at its ends": (F.hardtanh, [-1.0, 1.0], [0, 0]),
    "clip at its ends": (lambda x: wf.clip(x, -1.0, 1.0), [-1.0, 1.0, 2.0], [1, 1, 0]),
    "maximum of equals": (lambda x: wf.maximum(x, one(1.0)), [1.0], [0.5]),
    "minimum of equals": (lambda x: wf.minimum(x, one(1.0)), [1.0], [0.5]),
    "maximum with itself": (lambda x: wf.maximum(x, x), [1.0], [1]),
    "max with ties": (
        lambda x: wf.max(x, axis=0),
        [2.0, 1.0, 2.0, 2.0, 2.0],
        [0.25, 0, *[0.25] * 3],
    ),
    "min with ties": (lambda x: wf.min(x, axis=0), [2.0, 1.0, 1.0], [0, 0.5, 0.5]),
    "max with a NaN": (wf.max, [NAN, 1.0], [1, 0]),
    "median with ties": (wf.median, [1.0, 1.0, 2.0], [0, 1, 0]),
    "sort with ties": (lambda x: wf.sort(x) * one(2.0), [1.0, 1.0, 0.0], [2, 2, 2]),
    "sign, floor and round": (lambda x: wf.sign(x) + wf.floor(x) + wf.round(x), [0.0, 1.0], [0, 0]),
    "remainder where it jumps": (lambda x: x % 1.0, [0.0, 1.0], [1, 1]),
    "sqrt at 0": (wf.sqrt, [0.0], [INF]),
    "log at 0": (wf.log, [0.0], [INF]),
    "norm of zeros": (wf.linalg.norm, [0.0, 0.0], [0, 0]),
    "hypot of zeros": (lambda x: wf.hypot(x, x), [0.0], [0]),
    "atan2 of zeros": (lambda x: wf.atan2(x, x), [0.0], [0]),
    "std of equals": (wf.std, [1.0, 1.0], [0, 0]),
    "sinc at 0": (wf.sinc, [0.0], [0]),
    "x**0 at 0": (lambda x: x**0, [0.0], [0]),
    "x**1 at 0": (lambda x: x**1, [0.0], [1]),
    "x**2 at 0": (lambda x: x**2, [0.0], [0]),
    "x**0.5 at 0": (lambda x: x**0.5, [0.0], [INF]),
    "0**y": (lambda y: wf.pow(one(0.0), y), [0.0, 1.0], [0, 0]),
    "a negative number to the y": (lambda y: wf.pow(one(-2.0), y), [2.0], [NAN]),
    "prod with one zero": (lambda x: wf.prod(x, axis=0), [0.0, 2.0, 3.0], [6, 0, 0]),
    "prod with two zeros": (lambda x: wf.prod(x, axis=0), [0.0, 0.0, 3.0], [0, 0, 0]),
    "cumprod with a zero": (lambda x: wf.cumprod(x, axis=0), [0.0, 2.0, 3.0], [9, 0, 0]),
    "logsumexp of -inf": (lambda x: wf.logsumexp(x, axis=0), [-INF, -INF], [0, 0]),
    "softmax with -inf": (lambda x: wf.softmax(x, axis=0), [-INF, 0.0], [0, 0]),
    "where over a safe argument": (
        lambda x: wf.where(x > 0, wf.log(wf.where(x > 0, x, 1.0)), 0.0),
        [-1.0, 0.0, 1.0],
        [0, 0, 1],
    ),
    "where over an infinite slope": (
        lambda x: wf.where(x > 0, wf.log(x), 0.0),
        [-1.0, 0.0, 1.0],
        [0, 0, 1],
    ),
    "where over a chain without values": (
        lambda x: wf.where(x > 0, wf.log(wf.sqrt(x)), x),
        [-1.0, 0.0, 1.0],
        [1, 1, 0.5],
    ),
    "where, the other way round": (
        lambda x: wf.where(x <= 0, 1.0, 1 / wf.sqrt(x)),
        [-1.0, 0.0, 1.0],
        [0, 0, -0.5],
    ),
    "where inside a where": (
        lambda x: wf.where(x > 0, wf.where(x > 1, wf.log(x - 1), wf.sqrt(x)), 0.0),
        [0.0, 1.0, 2.0],
        [0, 0.5, 1],
    ),
    "where with a smaller operand": (
        lambda x: wf.where(wf.tensor([[True, False], [False, False]]), wf.log(x), 0.0),
        [1.0, 0.0],
        [1, 0],
    ),
    "where behind moves": (
        lambda x: wf.where(x[:, None] > 0, wf.flip(wf.log(x), 0)[::-1].reshape(-1, 1), 0.0),
        [0.0, 1.0],
        [0, 1],
    ),
    "where over parts": (
        lambda x: sum(wf.where(part > 0, part * part, 0.0) for part in wf.split(wf.exp(x), 2)),
        [0.0, 0.0],
        [2, 2],
    ),
    "where over joined parts": (
        lambda x: wf.where(
            wf.tensor([False, True, False, True]), wf.concat([wf.log(x), wf.sqrt(x)]), 0.0
        ),
        [0.0, 1.0],
        [0, 1.5],
    ),
    "a zero that was computed": (lambda x: x * 0.0 * wf.sqrt(x), [0.0], [NAN]),
    "sum of nothing": (wf.sum, [], []),
    "mean of nothing": (wf.mean, [], []),
    "prod of nothing": (wf.prod, [], []),
    "logsumexp of nothing": (lambda x: wf.logsumexp(x, axis=0), [], []),
}


def on_the_tape(fn, x):
    leaf = wf.tensor(x, requires_grad=True)
    y = fn(leaf).sum()
    found = wf.gradients(y, leaf) if y.requires_grad else None
    return np.zeros_like(x) if found is None else found.numpy()


def by_grad(fn, x):
    return wf.grad(lambda x: fn(x).sum())(wf.tensor(x)).numpy()


def by_jvp(fn, x):
    units = np.eye(x.size)
    return np.array(
        [wf.jvp(lambda x: fn(x).sum(), (wf.tensor(x),), (wf.tensor(u),))[1].item() for u in units]
    )


def in_a_graph(fn, x):
    with wf.Graph() as graph:
        symbol = wf.placeholder(x.shape, wf.float64, name="x")
        made = wf.grad(lambda x: fn(x).sum())(symbol)
    return wf.Session(graph).run(made, {symbol: x})


def in_a_batch(fn, x):
    return wf.vmap(wf.grad(lambda x: fn(x).sum()))(wf.tensor(x[None])).numpy()[0]


def checkpointed(fn, x):
    return wf.grad(wf.checkpoint(lambda x: fn(x).sum()))(wf.tensor(x)).numpy()


MODES = [on_the_tape, by_grad, by_jvp, in_a_graph, in_a_batch, checkpointed]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.__name__)
@pytest.mark.parametrize("kink", KINKS)
def test_one_answer_in_every_mode(kink, mode):
    fn, x, expected = KINKS[kink]
    found = mode(fn, np.array(x))
    np.testing.assert_array_equal(found, np.array(expected, float))


def twice_on_the_tape(fn, x):
    leaf = wf.tensor(x, requires_grad=True)
    slope = wf.gradients(fn(leaf).sum(), leaf, create_graph=True)
    return wf.gradients(slope.sum(), leaf).numpy()


def twice_by_grad(fn, x):
    slope = wf.grad(lambda x: fn(x).sum())
    return wf.grad(lambda x: slope(x).sum())(wf.tensor(x)).numpy()


def twice_in_a_graph(fn, x):
    with wf.Graph() as graph:
        symbol = wf.placeholder(x.shape, wf.float64, name="x")
        slope = wf.gradients(fn(symbol).sum(), symbol)
        made = wf.gradients(slope.sum(), symbol)
    return wf.Session(graph).run(made, {symbol: x})


def by_hessian(fn, x):
    return wf.hessian(lambda x: fn(x).sum())(wf.tensor(x)).numpy().sum(axis=0)


@pytest.mark.parametrize("mode", [twice_on_the_tape, twice_by_grad, twice_in_a_graph, by_hessian])
def test_the_side_not_taken_has_no_second_derivative(mode):
    def fn(x):
        return wf.where(x > 0, wf.log(wf.sqrt(x)) * x, 0.0)

    np.testing.assert_allclose(mode(fn, np.array([-1.0, 0.0, 2.0])), [0, 0, 0.25])


def test_the_side_not_taken_is_no_anomaly():
    with wf.detect_anomaly():
        found = on_the_tape(lambda x: wf.where(x > 0, wf.log(x), 0.0), np.array([0.0, 2.0]))
    np.testing.assert_array_equal(found, [0, 0.5])


def test_operands_that_broadcast_are_summed_without_the_side_not_taken():
    x = np.array([0.0, 1.0, np.e])
    w = wf.tensor(2.0, dtype=wf.float64, requires_grad=True)
    leaf = wf.tensor(x, requires_grad=True)
    wf.where(leaf > 0, wf.log(leaf) * w, 0.0).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 1.0)
    np.testing.assert_allclose(leaf.grad.numpy(), [0, 2, 2 / np.e])


@pytest.mark.parametrize("mode", [on_the_tape, by_grad, in_a_graph, in_a_batch])
def test_the_extremum_of_nothing_is_refused(mode):
    with pytest.raises(wf.WeftError, match="no elements"):
        mode(wf.max, np.array([]))
