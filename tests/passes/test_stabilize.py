"""Every rule of stabilize fires and is at least as accurate, over random and extreme inputs."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.op import F
from weft.passes import canonicalize, optimize, remove_dead, simplify_finally, stabilize
from weft.passes.stabilize import RULES

from .helpers import ops, run, trace

LONG = np.longdouble
RNG = np.random.default_rng(0)
WIDE = np.concatenate(
    [
        RNG.standard_normal(300),
        RNG.standard_normal(300) * 1e-6,
        RNG.standard_normal(300) * 40,
        RNG.standard_normal(100) * 1e3,
        [0.0, 1e-30, -1e-30, 89.0, -104.0, 700.0, -750.0],
    ]
)
POSITIVE = np.abs(WIDE)
BELOW_ONE = -np.abs(RNG.standard_normal(400)) * 10.0 ** RNG.integers(-9, 3, 400)
ROWS = np.concatenate([RNG.standard_normal((60, 5)) * s for s in (1e-3, 1, 30, 1e3)])


def _long_softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _long_log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def _long_logsumexp(x):
    top = x.max(-1)
    return top + np.log(np.exp(x - top[..., None]).sum(-1))


# name -> the program, its input, the function in long double, the operators that are left
CASES = {
    "log(softmax(x))": (
        lambda x: wf.log(wf.softmax(x)),
        ROWS,
        _long_log_softmax,
        ["max", "sub", "exp", "sum", "log", "sub"],
    ),
    "log(sum(exp(x)))": (
        lambda x: wf.log(wf.sum(wf.exp(x), axis=-1)),
        ROWS,
        _long_logsumexp,
        ["logsumexp"],
    ),
    "log(exp(x))": (lambda x: wf.log(wf.exp(x)), WIDE, lambda x: x, []),
    "1 / (1 + exp(-x))": (
        lambda x: 1 / (1 + wf.exp(-x)),
        WIDE,
        lambda x: 1 / (1 + np.exp(-x)),
        ["sigmoid"],
    ),
    "reciprocal(1 + exp(-x))": (
        lambda x: wf.reciprocal(wf.exp(-x) + 1),
        WIDE,
        lambda x: 1 / (1 + np.exp(-x)),
        ["sigmoid"],
    ),
    "log(sigmoid(x))": (
        lambda x: wf.log(wf.sigmoid(x)),
        WIDE,
        lambda x: -_long_softplus(-x),
        ["log_sigmoid"],
    ),
    "log(1 - sigmoid(x))": (
        lambda x: wf.log(1 - wf.sigmoid(x)),
        WIDE,
        lambda x: -_long_softplus(x),
        ["neg", "log_sigmoid"],
    ),
    "log1p(-sigmoid(x))": (
        lambda x: wf.log1p(-wf.sigmoid(x)),
        WIDE,
        lambda x: -_long_softplus(x),
        ["neg", "log_sigmoid"],
    ),
    "log(1 + exp(x))": (lambda x: wf.log(1 + wf.exp(x)), WIDE, _long_softplus, ["softplus"]),
    "log1p(exp(x))": (lambda x: wf.log1p(wf.exp(x)), WIDE, _long_softplus, ["softplus"]),
    "log(1 + x)": (lambda x: wf.log(x + 1), POSITIVE, np.log1p, ["log1p"]),
    "log(1 - x)": (lambda x: wf.log(1 - x), BELOW_ONE, lambda x: np.log1p(-x), ["neg", "log1p"]),
    "exp(x) - 1": (lambda x: wf.exp(x) - 1, WIDE, np.expm1, ["expm1"]),
    "exp(x) + -1": (lambda x: wf.exp(x) + -1, WIDE, np.expm1, ["expm1"]),
    "1 - exp(x)": (lambda x: 1 - wf.exp(x), WIDE, lambda x: -np.expm1(x), ["expm1", "neg"]),
    "sqrt(x * x)": (lambda x: wf.sqrt(x * x), WIDE * 1e20, np.abs, ["abs"]),
    "sqrt(square(x))": (lambda x: wf.sqrt(wf.square(x)), WIDE * 1e-25, np.abs, ["abs"]),
    "square(sqrt(x))": (
        lambda x: wf.square(wf.sqrt(x)),
        POSITIVE,
        lambda x: x,
        ["greater_equal", "abs", "where"],
    ),
    "sqrt(x) * sqrt(x)": (
        lambda x: wf.sqrt(x) * wf.sqrt(x),
        POSITIVE,
        lambda x: x,
        ["greater_equal", "abs", "where"],
    ),
}


def test_every_rule_has_a_case():
    assert {rule.name for rule in RULES} == set(CASES)


def stable(graph):
    return canonicalize(stabilize(canonicalize(graph, simplify_finally)), simplify_finally)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_rule_fires_and_is_at_least_as_accurate(name, dtype):
    fn, array, exact, left = CASES[name]
    x = array.astype(dtype)
    graph = trace(fn, x)
    made = stable(graph)
    assert ops(made) == left
    with np.errstate(all="ignore"):
        reference = exact(x.astype(LONG))
        # Errors in units of the last place of the result, or of the terms it is the sum of.
        scale = np.maximum(np.abs(reference), np.finfo(dtype).tiny)
        if "sum" in name or "softmax" in name:
            scale = np.maximum(scale, _largest_term(name, x, reference))
        unit = np.spacing(scale.astype(dtype)).astype(LONG)
        before = np.abs(run(graph, x).astype(LONG) - reference) / unit
        after = np.abs(run(made, x).astype(LONG) - reference) / unit
        fits = np.isfinite(reference.astype(dtype))  # the result itself may overflow
    worse = fits & ~(after <= np.maximum(np.nan_to_num(before, nan=np.inf), 4))
    assert not worse.any(), (x[worse][:5], before[worse][:5], after[worse][:5])


def _largest_term(name, x, reference):
    """Return the size of what is added up: of a sum near 1 its logarithm has few digits."""
    return np.abs(x).max(-1) if "sum" in name else np.ones_like(reference)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, -2.0, 1.0, 1e-45])


@pytest.mark.parametrize("name", [n for n in CASES if "sum" not in n and "softmax" not in n])
def test_special_values_stay(name):
    x = SPECIAL.astype(np.float32)
    graph = trace(CASES[name][0], x)
    before, after = run(graph, x), run(stable(graph), x)
    assert np.array_equal(np.isnan(before), np.isnan(after))
    assert np.array_equal(np.isinf(before), np.isinf(after))
    assert np.array_equal(before[np.isinf(before)], after[np.isinf(before)])


@pytest.mark.parametrize("name", ["log(softmax(x))", "log(sum(exp(x)))"])
def test_special_rows_stay(name):
    inf, nan = np.inf, np.nan
    rows = np.array([[inf, 0], [-inf, -inf], [-inf, 1], [nan, 0], [inf, -inf]], np.float32)
    graph = trace(CASES[name][0], rows)
    assert np.allclose(run(graph, rows), run(stable(graph), rows), equal_nan=True)


def test_log_softmax_does_not_underflow():
    x = np.array([[1000.0, 0.0]], np.float32)
    graph = trace(lambda v: wf.log(wf.softmax(v)), x, unknown=True)
    assert run(graph, x)[0, 1] == -np.inf
    assert run(stable(graph), x).tolist() == [[0.0, -1000.0]]


def test_log_softmax_of_a_small_difference_of_large_logits():
    x = np.array([[1e4, 1e4 - 10]], np.float32)
    made = stable(trace(lambda v: wf.log(wf.softmax(v)), x))
    assert run(made, x)[0, 0] == pytest.approx(-4.5398e-05, rel=1e-2)


def test_the_root_of_a_negative_number_stays_nan():
    x = np.array([-4.0, 4.0, -0.0], np.float32)
    found = run(stable(trace(lambda v: wf.sqrt(v) * wf.sqrt(v), x)), x)
    assert np.isnan(found[0])
    assert found[1:].tolist() == [4.0, 0.0]
    assert not np.signbit(found[2])


KEPT = {
    "exp(log(x))": lambda x: wf.exp(wf.log(x)),
    "sqrt(x*x + y*y)": lambda x: wf.sqrt(x * x + wf.flip(x) * wf.flip(x)),
    "log(2 + x)": lambda x: wf.log(2 + x),
    "exp(x) - 2": lambda x: wf.exp(x) - 2,
    "sqrt(x) * sqrt(y)": lambda x: wf.sqrt(x) * wf.sqrt(wf.flip(x)),
    "log(exp(x) / y)": lambda x: wf.log(wf.exp(x) / (1 + x)),
    "broadcast": lambda x: wf.log(wf.ones(4, 1) + x),
}


@pytest.mark.parametrize("name", KEPT)
def test_rule_does_not_fire(name):
    x = np.linspace(0.1, 3, 5).astype(np.float32)
    graph = canonicalize(trace(KEPT[name], x), simplify_finally)
    assert ops(remove_dead(stabilize(graph))) == ops(graph)


def test_log_of_a_softmax_over_another_axis_than_the_sum_stays():
    def fn(x):
        e = F.exp(x - F.max(x, axis=0, keepdims=True))
        return wf.log(e / F.sum(e, axis=1, keepdims=True))

    x = ROWS.astype(np.float32)
    assert "div" in ops(stable(trace(fn, x)))


@pytest.mark.parametrize("seed", range(20))
def test_random_smooth_programs_stay_close(seed):
    rng = np.random.default_rng(seed)
    forms = [fn for name, (fn, *_) in CASES.items() if "sqrt" not in name and "sum" not in name]

    def fn(x):
        for i in rng.integers(0, len(forms), 8):
            x = wf.tanh(forms[i](wf.sigmoid(x) * -0.9) + x)
        return x

    x = rng.standard_normal((4, 3))
    graph = trace(fn, x, unknown=True)
    made = optimize(graph)
    np.testing.assert_allclose(run(made, x), run(graph, x), rtol=1e-9, atol=1e-9)
