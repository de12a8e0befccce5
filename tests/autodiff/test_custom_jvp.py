"""custom_jvp, jvp of Function, and custom_vjp as in JAX: trees, fixed arguments, higher orders."""

import numpy as np
import pytest

import weft as wf
from weft.autodiff.check import check_grads
from weft.core.errors import ArgumentTypeError, GradientError


def scalar(value):
    return wf.tensor(np.float64(value))


def array(*shape, seed=0):
    return wf.tensor(np.random.default_rng(seed).normal(size=shape))


@wf.custom_jvp
def stable(x):
    return wf.log(1 + wf.exp(x))


@stable.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return stable(x), t * (1 - 1 / (1 + wf.exp(x)))


@wf.custom_jvp
def product(tree, n):
    return {"xy": tree["x"] * tree["y"] ** n, "n": n}


@product.defjvp
def _(primals, tangents):
    (tree, n), (t, _) = primals, tangents
    x, y = tree["x"], tree["y"]
    out = product(tree, n)
    return out, {"xy": t["x"] * y**n + t["y"] * n * x * y ** (n - 1), "n": None}


def test_every_mode_and_order():
    check_grads(stable, [np.array([0.3, -1.0])], order=3)
    check_grads(lambda x, y: product({"x": x, "y": y}, 3)["xy"], [np.ones(2), np.full(2, 1.5)])


def test_the_rule_is_used_where_the_plain_derivative_fails():
    for derivative in (wf.grad, lambda f: lambda x: wf.jvp(f, (x,), (wf.ones_like(x),))[1]):
        assert derivative(stable)(scalar(1000.0)).item() == 1.0
    assert np.isnan(wf.grad(stable.fn)(scalar(1000.0)).item())


def test_in_graphs():
    def both(x):
        return wf.grad(stable)(x), wf.jvp(stable, (x,), (2 * wf.ones_like(x),))[1]

    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float64, name="x")
        made = both(x)
        second = wf.grad(wf.grad(stable))(x)
    assert wf.Session(graph).run(made, {x: 1000.0}) == (1.0, 2.0)
    assert wf.Session(graph).run(second, {x: 0.0}) == 0.25


def test_nondiff_arguments_come_first():
    @wf.custom_jvp
    def unused(f, x):
        return f(x)

    applied = wf.custom_jvp(lambda f, x: f(x), nondiff_argnums=(0,))
    applied.defjvp(lambda f, primals, tangents: (f(*primals), 10 * tangents[0]))
    assert wf.grad(lambda x: applied(wf.sin, x))(scalar(1.0)).item() == 10.0
    with pytest.raises(GradientError, match="no derivative is defined yet"):
        unused(wf.sin, scalar(1.0))


def test_zeros_may_be_symbolic():
    seen = []
    fn = wf.custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        seen.append([t is None for t in tangents])
        (x, y), (tx, ty) = primals, tangents
        parts = [t * other for t, other in ((tx, y), (ty, x)) if t is not None]
        return fn(x, y), sum(parts[1:], start=parts[0])

    fn.defjvp(rule, symbolic_zeros=True)
    assert wf.jvp(lambda x: fn(x, scalar(3.0)), (scalar(2.0),), (scalar(1.0),))[1].item() == 3.0
    assert seen[-1] == [False, True]
    fn.defjvp(rule)
    wf.jvp(lambda x: fn(x, scalar(3.0)), (scalar(2.0),), (scalar(1.0),))
    assert seen[-1] == [False, False]


def test_defjvps_by_argument():
    fn = wf.custom_jvp(lambda x, y: wf.sin(x) * y)
    fn.defjvps(lambda t, out, x, y: t * wf.cos(x) * y, lambda t, out, x, y: t * wf.sin(x))
    check_grads(fn, [np.array([0.3]), np.array([2.0])])
    fn.defjvps(None, None)
    assert wf.grad(lambda x: fn(x, scalar(1.0)))(scalar(1.0)).item() == 0.0


def test_without_need_the_plain_function_runs():
    fn = wf.custom_jvp(lambda x: x * 2)
    fn.defjvp(lambda primals, tangents: pytest.fail("not needed"))
    assert fn(scalar(2.0)).item() == 4.0


def test_mistakes_are_explained():
    with pytest.raises(ArgumentTypeError, match="expects a function"):
        wf.custom_jvp(3)
    fn = wf.custom_jvp(lambda x: (x, x))
    fn.defjvp(lambda primals, tangents: tangents[0])
    with pytest.raises(GradientError, match="a pair"):
        wf.jvp(fn, (scalar(1.0),), (scalar(1.0),))
    fn.defjvp(lambda primals, tangents: (fn(*primals), tangents[0]))
    with pytest.raises(GradientError, match="the tangent must be"):
        wf.jvp(fn, (scalar(1.0),), (scalar(1.0),))
    wrong = wf.custom_jvp(lambda x: x.sum())
    wrong.defjvp(lambda primals, tangents: (wrong(*primals), tangents[0]))
    with pytest.raises(GradientError, match=r"a tangent of shape \(\) for output 0"):
        wf.jvp(wrong, (array(2),), (array(2),))


# -- Function.jvp ---------------------------------------------------------------------------------


class Cube(wf.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x**3 * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g * ctx.scale, None

    @staticmethod
    def jvp(ctx, t, _):
        Cube.calls += 1
        (x,) = ctx.saved_tensors
        return 3 * x * x * t * ctx.scale


def test_a_function_may_have_a_rule_for_forward_mode():
    check_grads(lambda x: Cube.apply(x, 2.0), [np.array([0.5, 2.0])], order=3)
    before = Cube.calls
    assert wf.jvp(lambda x: Cube.apply(x, 2.0), (scalar(2.0),), (scalar(1.0),))[1].item() == 24.0
    assert Cube.calls == before + 1
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float64, name="x")
        t = wf.jvp(lambda x: Cube.apply(x, 2.0), (x,), (wf.ones_like(x),))[1]
    assert wf.Session(graph).run(t, {x: 2.0}) == 24.0


# -- custom_vjp as in JAX -------------------------------------------------------------------------


@wf.custom_vjp
def sine(x):
    return wf.sin(x)


sine.defvjp(lambda x: (wf.sin(x), wf.cos(x)), lambda cos, g: (g * cos,))


class SavesComputed(wf.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(wf.cos(x))
        return wf.sin(x)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


@pytest.mark.parametrize("fn", [sine, SavesComputed.apply])
def test_computed_residuals_have_derivatives_themselves(fn):
    check_grads(fn, [np.array([0.3, -1.0])], order=3)

    def forward(f):
        return lambda x: wf.jvp(f, (x,), (scalar(1.0),))[1]

    x = scalar(0.7)
    for outer in (wf.grad, forward):
        for inner in (wf.grad, forward):
            assert outer(inner(fn))(x).item() == pytest.approx(-np.sin(0.7), rel=1e-12)
            third = wf.grad(outer(inner(fn)))(x).item()
            assert third == pytest.approx(-np.cos(0.7), rel=1e-12)


def test_computed_residuals_in_graphs():
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float64, name="x")
        y = wf.grad(wf.grad(sine))(x)
    assert wf.Session(graph).run(y, {x: 0.7}) == pytest.approx(-np.sin(0.7), rel=1e-12)
