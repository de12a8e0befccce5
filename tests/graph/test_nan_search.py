"""The NaN trap names the operation that made a NaN of what a program returns or writes."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import weft as wf
from weft.core.errors import AnomalyError

GOOD, BAD = wf.tensor([1.0, 4.0]), wf.tensor([1.0, -4.0])


@pytest.fixture(autouse=True)
def trap(_way, monkeypatch):
    monkeypatch.setattr(wf.config, "debug_interpret", False)  # each test says what runs its graphs
    monkeypatch.setattr(wf.config, "nan_trap", True)


def by_session(function, compiled):
    """Return a function that runs what another computes by a session."""

    def run(x):
        with wf.Graph() as graph:
            fed = wf.placeholder(x.shape, wf.float32, name="x")
            fetched = function(fed)
        return wf.tensor(wf.Session(graph, compiled=compiled).run(fetched, {fed: x.numpy()}))

    return run


WAYS = {
    "jit": wf.jit,
    "compile": lambda function: wf.compile(function, GOOD),
    "session": lambda function: by_session(function, True),
    "interpreted": lambda function: by_session(function, False),
}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


def raised_line(run, x, match):
    """Return the line that the error names."""
    with pytest.raises(AnomalyError, match=match) as caught:
        run(x)
    assert str(caught.value).count("[node") == 1
    return int(str(caught.value).partition("test_nan_search.py:")[2].split(",")[0])


def line():
    return sys._getframe(1).f_lineno


def test_a_forward_operation(way):
    def f(x):
        return wf.log(x * 2) + 1

    run = way(f)
    np.testing.assert_allclose(run(GOOD).numpy(), np.log([2, 8]) + 1, rtol=1e-6)
    assert raised_line(run, BAD, r"^log, built at") == line() - 4
    np.testing.assert_allclose(run(GOOD).numpy(), np.log([2, 8]) + 1, rtol=1e-6)


def test_a_nan_that_is_lost_on_the_way_is_not_named(way):
    def f(x):
        safe = wf.where(x > 0, wf.sqrt(x), 0.0)
        return safe + wf.log(x + 2)

    run = way(f)
    assert raised_line(run, BAD, r"^log, built at") == line() - 3
    np.testing.assert_allclose(run(wf.tensor([1.0, -1.0])).numpy(), [1 + np.log(3), 0], rtol=1e-6)


def test_a_backward_operation(way):
    def f(x):
        return wf.gradients((wf.sqrt(x) * 0).sum(), x)

    def g(x):
        x = x.detach().requires_grad_()
        (wf.sqrt(x) * 0).sum().backward()
        return x.grad

    run = way(g if way is wf.jit else f)
    first = f if way is not wf.jit else g
    expected = first.__code__.co_firstlineno + (2 if way is wf.jit else 1)
    assert raised_line(run, wf.zeros(2), "in the backward of what was built at") == expected


def test_inside_a_scan(way):
    def f(x):
        def body(state, row):
            state = wf.sqrt(state - row)
            return state, wf.where(state > 0, wf.log(state - 1), 0.0)

        return wf.scan(body, x.sum(), wf.stack([x[0], x[1], x[0]]))[0]

    assert raised_line(way(f), wf.tensor([4.0, 3.0]), r"^sqrt, built at") == line() - 5


def test_inside_a_branch_and_a_loop(way):
    def f(x):
        y = wf.cond(x[1] > 0, lambda: x, lambda: wf.log(x))
        return wf.while_loop(lambda s: s.sum() < 30, lambda s: wf.sqrt(s - 3) + s, y)

    run = way(f)
    assert raised_line(run, BAD, r"^log, built at") == line() - 4
    assert raised_line(run, GOOD, r"^sqrt, built at") == line() - 4


@pytest.mark.parametrize("name", ["jit", "compile", "session"])
def test_a_nan_that_came_from_outside_is_nobodys_fault(name):
    given = wf.tensor([1.0, np.nan])
    with pytest.warns(RuntimeWarning, match="a NaN came in with (x|input|argument_0)"):
        found = WAYS[name](wf.exp)(given)
    np.testing.assert_allclose(found.numpy(), [np.e, np.nan], rtol=1e-6)


@pytest.mark.parametrize("way", [WAYS["jit"], WAYS["compile"]])
def test_states_are_those_of_before(way):
    weight, count = wf.nn.Parameter(wf.tensor([4.0, 1.0])), wf.tensor(0.0)
    optimizer = wf.optim.Adam([weight], lr=0.1)

    def step(x):
        count.assign(count + 1)
        loss = wf.sqrt(weight * x).sum()
        if way is wf.jit:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            optimizer.minimize(loss)
        return loss

    run = way(step)
    for _ in range(3):
        run(GOOD)
    kept, grad = weight.numpy().copy(), weight.grad
    with pytest.raises(AnomalyError, match="sqrt, built at"):
        run(BAD)
    np.testing.assert_array_equal(weight.numpy(), kept)
    assert weight.grad is grad
    assert (float(count), optimizer.t) == (3.0, 3)
    run(GOOD)
    assert (float(count), optimizer.t) == (4.0, 4)


def test_a_first_call_that_makes_a_nan_leaves_nothing():
    seen = []

    @wf.jit
    def f(x):
        seen.append(1)
        return wf.log(x)

    with pytest.raises(AnomalyError, match="log, built at"):
        f(BAD)
    assert seen == []
    f(GOOD)
    assert seen == [1]


def test_a_path_that_does_not_hold_is_no_nan():
    @wf.jit
    def f(x):
        if x.sum() > 0:
            return wf.log(x)
        return x

    f(GOOD)
    assert f(BAD).tolist() == [1.0, -4.0]
    with pytest.raises(AnomalyError, match="log, built at"):
        f(wf.tensor([4.0, -1.0]))


def test_the_gradient_of_a_jitted_call():
    f = wf.jit(lambda x: wf.sqrt(x) * 0)
    x = wf.zeros(2).requires_grad_()
    y = f(x).sum()
    with pytest.raises(AnomalyError, match="in the backward of"):
        y.backward()


def test_the_quick_way_into_a_jitted_function_traps_too(monkeypatch):
    w = wf.tensor([1.0, 1.0], requires_grad=True)
    optimizer = wf.optim.SGD([w], lr=0.5)

    @wf.jit
    def step(x):
        optimizer.zero_grad()
        loss = (w * wf.sqrt(x)).sum()
        loss.backward()
        optimizer.step()
        return loss, w * 2

    good, bad = wf.tensor([1.0, 4.0]), wf.tensor([1.0, -4.0])
    for _ in range(6):  # the way is written on the way
        _, doubled = step(good)
    assert len(step._entries.quick) == 1
    np.testing.assert_allclose(doubled.numpy(), 2 * w.numpy())
    before = w.numpy().copy()
    with pytest.raises(AnomalyError, match="sqrt, built at"):
        step(bad)
    np.testing.assert_array_equal(w.numpy(), before)
    assert np.isfinite(step(good)[0].item())
    monkeypatch.setattr(wf.config, "nan_trap", False)
    for _ in range(6):
        assert np.isfinite(step(good)[0].item())
    assert np.isnan(step(bad)[0].item())
    assert step.stats()["eager_calls"] == 0
