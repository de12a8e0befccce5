"""LBFGS and its line search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from weft import optim
from weft.optim.line_search import LinePoint, Wolfe, minimum_of_cubic, strong_wolfe


def closure_of(optimizer, function, *params):
    def closure():
        optimizer.zero_grad()
        loss = function(*params)
        loss.backward()
        return loss

    return closure


def test_rosenbrock():
    w = wf.tensor(np.array([-1.2, 1.0]), requires_grad=True)
    optimizer = optim.LBFGS(
        [w], max_iter=100, tolerance_change=1e-15, line_search_fn="strong_wolfe"
    )

    def rosenbrock(x):
        return (1.0 - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2

    optimizer.step(closure_of(optimizer, rosenbrock, w))
    np.testing.assert_allclose(w.detach().numpy(), [1.0, 1.0], atol=1e-6)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@given(st.integers(1, 6), st.integers(0, 1000))
def test_quadratics_are_solved(search, size, seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size))
    A, b = root @ root.T + np.eye(size), rng.normal(size=size)
    w = wf.tensor(np.zeros(size), requires_grad=True)
    optimizer = optim.LBFGS([w], max_iter=200, line_search_fn=search)

    def energy(x):
        return 0.5 * (x @ (wf.tensor(A) @ x)) - wf.tensor(b) @ x

    optimizer.step(closure_of(optimizer, energy, w))
    np.testing.assert_allclose(w.detach().numpy(), np.linalg.solve(A, b), atol=1e-4)


def test_several_parameters_of_different_shapes():
    w = wf.tensor(np.ones((2, 2)), requires_grad=True)
    v = wf.tensor(np.array(3.0), requires_grad=True)
    unused = wf.tensor(np.ones(2), requires_grad=True)
    optimizer = optim.LBFGS([w, v, unused], line_search_fn="strong_wolfe")
    loss = optimizer.step(closure_of(optimizer, lambda w, v: (w**2).sum() + (v - 1.0) ** 2, w, v))
    assert loss.item() == 8.0
    np.testing.assert_allclose(w.detach().numpy(), np.zeros((2, 2)), atol=1e-7)
    np.testing.assert_allclose(v.item(), 1.0)
    assert unused.detach().tolist() == [1.0, 1.0]
    assert v.shape == ()


def test_evaluations_are_limited():
    w = wf.tensor(np.array([-1.2, 1.0]), requires_grad=True)
    optimizer = optim.LBFGS([w], max_eval=4, line_search_fn="strong_wolfe")
    count = []

    def function(x):
        count.append(1)
        return ((x**4).sum() + (x[0] * x[1]) ** 2).sum()

    optimizer.step(closure_of(optimizer, function, w))
    assert len(count) <= 5


def test_history_is_limited():
    w = wf.tensor(np.linspace(-1.0, 1.0, 8), requires_grad=True)
    optimizer = optim.LBFGS([w], history_size=2, line_search_fn="strong_wolfe")
    for _ in range(3):
        optimizer.step(closure_of(optimizer, lambda x: ((x - 0.5) ** 4 + x**2).sum(), w))
    assert 0 < len(optimizer.history.steps) <= 2


def test_at_a_minimum_nothing_moves():
    w = wf.tensor(np.zeros(3), requires_grad=True)
    optimizer = optim.LBFGS([w])
    optimizer.step(closure_of(optimizer, lambda x: (x * x).sum(), w))
    assert w.detach().tolist() == [0.0, 0.0, 0.0]


def test_an_infinite_loss_ahead_is_avoided():
    w = wf.tensor(np.array([1.0]), requires_grad=True)
    optimizer = optim.LBFGS([w], lr=10.0, line_search_fn="strong_wolfe", max_iter=50)
    optimizer.step(closure_of(optimizer, lambda x: (x - 2.0 * wf.log(x)).sum(), w))
    np.testing.assert_allclose(w.item(), 2.0, rtol=1e-4)


def test_what_it_refuses():
    w = wf.tensor([1.0], requires_grad=True)
    optimizer = optim.LBFGS([w])
    with pytest.raises(TypeError, match="pass a function"):
        optimizer.step()
    with pytest.raises(TypeError, match="needs a closure"):
        optimizer.minimize((w * w).sum())
    with pytest.raises(ValueError, match="one group only"):
        optimizer.add_param_group({"params": [wf.tensor([1.0], requires_grad=True)]})
    optim.LossScaler(optimizer)
    with pytest.raises(ValueError, match="cannot scale"):
        optimizer.step(lambda: None)


@given(st.floats(0.01, 10.0), st.floats(-3.0, 3.0), st.floats(0.1, 3.0))
def test_found_points_satisfy_the_conditions(first, center, steepness):
    x0, d = np.array([center - 1.0]), np.array([1.0])

    def objective(t):
        x = x0 + t * d
        value = steepness * (x - center) ** 2 + 0.1 * (x - center) ** 4
        slope = 2 * steepness * (x - center) + 0.4 * (x - center) ** 3
        return float(value[0]), slope

    f, g = objective(0.0)
    start = LinePoint(0.0, f, g, float(g @ d))
    point, evaluations = strong_wolfe(objective, first, d, start)
    assert evaluations >= 1
    assert not Wolfe(start).too_high(point)
    assert Wolfe(start).flat_enough(point)


def test_minimum_of_a_cubic():
    def point(t):
        return LinePoint(t, t**3 - 3 * t, np.zeros(1), 3 * t**2 - 3)

    assert minimum_of_cubic(point(0.0), point(3.0)) == pytest.approx(1.0)
    assert minimum_of_cubic(point(3.0), point(0.0)) == pytest.approx(1.0)
    assert minimum_of_cubic(point(0.0), point(3.0), (2.0, 5.0)) == 2.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_cubic_through_bad_points_gives_the_middle(bad):
    a, b = LinePoint(0.0, 1.0, np.zeros(1), -1.0), LinePoint(2.0, bad, np.zeros(1), bad)
    assert minimum_of_cubic(a, b) == 1.0
    assert minimum_of_cubic(a, a) == 0.0
