"""Implicit differentiation of fixed points and roots."""

import numpy as np
import pytest

import weft as wf
from weft.autodiff import implicit
from weft.autodiff.check import check_grads
from weft.core.errors import ArgumentError, ArgumentTypeError, ShapeError


def scalar(value):
    return wf.tensor(np.float64(value))


def array(*shape, seed=0):
    return wf.tensor(np.random.default_rng(seed).normal(size=shape))


def forward(fn):
    return lambda x: wf.jvp(fn, (x,), (scalar(1.0),))[1]


root_of = implicit(lambda x, a: 0.5 * (x + a / x))


def sqrt(a):
    return root_of(scalar(1.0), a)


@pytest.mark.parametrize("outer", [wf.grad, forward])
@pytest.mark.parametrize("inner", [wf.grad, forward])
def test_every_order_and_mode(inner, outer):
    x = scalar(4.0)
    assert sqrt(x).item() == pytest.approx(2.0)
    assert inner(sqrt)(x).item() == pytest.approx(0.25)
    assert outer(inner(sqrt))(x).item() == pytest.approx(-1 / 32)
    assert wf.grad(outer(inner(sqrt)))(x).item() == pytest.approx(3 / 256)


def test_in_graphs_and_batches():
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float64, name="x")
        made = [sqrt(x), wf.grad(sqrt)(x), forward(sqrt)(x), wf.grad(wf.grad(sqrt))(x)]
    np.testing.assert_allclose(wf.Session(graph).run(made, {x: 4.0}), [2, 0.25, 0.25, -1 / 32])
    xs = np.array([1.0, 4.0, 9.0])
    np.testing.assert_allclose(wf.vmap(wf.grad(sqrt))(wf.tensor(xs)).numpy(), 0.5 / np.sqrt(xs))


@pytest.mark.parametrize("solve", ["gmres", "neumann"])
def test_a_layer_at_equilibrium(solve):
    layer = implicit(lambda z, p: wf.tanh(p["w"] @ z + p["x"]), solve=solve)
    w, x = 0.15 * array(5, 5).numpy(), array(5, seed=1).numpy()
    zeros = wf.tensor(np.zeros(5))
    check_grads(lambda w, x: layer(zeros, {"w": w, "x": x}), [w, x], order=2)


def test_a_root_by_newton_with_trees():
    def equations(v, a):
        return {"p": v["p"] ** 2 + v["q"] - a, "q": v["q"] ** 3 - v["p"]}

    solution = implicit(equations, root=True)
    init = {"p": wf.tensor(np.ones(2)), "q": wf.tensor(np.ones(2))}
    a = wf.tensor(np.array([2.0, 3.0]))
    found = solution(init, a)
    residual = equations(found, a)
    np.testing.assert_allclose([residual["p"].numpy(), residual["q"].numpy()], 0, atol=1e-9)
    check_grads(lambda a: solution(init, a)["p"], [a.numpy()], order=1)


def test_linear_equations_as_in_solve():
    a, b = array(6, 6) + 4 * wf.tensor(np.eye(6)), array(6, seed=1)
    zeros = wf.tensor(np.zeros(6))
    solution = implicit(lambda x, a, b: a @ x - b, lambda _, a, b: wf.linalg.solve(a, b), root=True)
    found = wf.grad(lambda a, b: (solution(zeros, a, b) ** 2).sum(), argnums=(0, 1))(a, b)
    expected = wf.grad(lambda a, b: (wf.linalg.solve(a, b) ** 2).sum(), argnums=(0, 1))(a, b)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), atol=1e-12)


def test_a_solver_that_is_no_weft_program():
    def solver(init, a):
        x = 1.0
        for _ in range(50):
            x = 0.5 * (x + float(a) / x)
        return wf.tensor(np.float64(x))

    solution = implicit(lambda x, a: x * x - a, solver, root=True, solve="cg")
    assert wf.grad(lambda a: solution(scalar(1.0), a))(scalar(9.0)).item() == pytest.approx(1 / 6)


def test_init_has_no_derivative():
    assert wf.grad(lambda x: root_of(x, scalar(4.0)))(scalar(1.0)).item() == 0.0


def test_integers_among_the_arguments():
    power = implicit(lambda x, a, n: x - (x**n - a) / (2 * n * x ** (n - 1)))
    found = wf.grad(lambda a: power(scalar(1.5), a, wf.tensor(3)))(scalar(8.0))
    assert found.item() == pytest.approx(1 / 12)


# -- mistakes -------------------------------------------------------------------------------------


def test_mistakes_are_explained():
    with pytest.raises(ArgumentTypeError, match="takes a function"):
        implicit(3)
    with pytest.raises(ArgumentError, match="one of cg, gmres, neumann"):
        implicit(wf.cos, solve="lu")
    with pytest.raises(ArgumentTypeError, match="a name or a function"):
        implicit(wf.cos, solve=3)
    with pytest.raises(ShapeError, match="like init"):
        implicit(wf.cos, lambda init: wf.zeros(3, dtype=wf.float64))(scalar(1.0))
    with pytest.raises(ArgumentTypeError, match="must hold tensors"):
        implicit(wf.cos, lambda init: 0.7)(scalar(1.0))
