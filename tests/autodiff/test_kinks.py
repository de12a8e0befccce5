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


@pytest.mark.parametrize("mode", [on_the_tape, by_grad, in_a_graph, in_a_batch, checkpointed])
def test_where_over_an_infinite_slope_is_nan_in_reverse(mode):
    # 0 * inf: the gradient 0 of the branch that was not taken meets the slope 1/x at x = 0.
    found = mode(lambda x: wf.where(x > 0, wf.log(x), 0.0), np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(found, [0, NAN, 1])


def test_where_over_an_infinite_slope_is_zero_forward():
    found = by_jvp(lambda x: wf.where(x > 0, wf.log(x), 0.0), np.array([-1.0, 2.0, 1.0]))
    np.testing.assert_array_equal(found, [0, 0.5, 1])


@pytest.mark.parametrize("mode", [on_the_tape, by_grad, in_a_graph, in_a_batch])
def test_the_extremum_of_nothing_is_refused(mode):
    with pytest.raises(wf.WeftError, match="no elements"):
        mode(wf.max, np.array([]))
