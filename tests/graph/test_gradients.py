"""wf.gradients, wf.forward_gradients and wf.jvp on symbols."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import weft as wf
from tests.graph.both import assert_close, placeholder_for

X = np.array([0.5, -1.0, 2.0])


def run(build, *arrays):
    """Return what a function of placeholders gives when fed with arrays."""
    with wf.Graph() as graph:
        symbols = [placeholder_for(a) for a in arrays]
        fetches = build(*symbols)
    return wf.Session(graph).run(fetches, dict(zip(symbols, arrays, strict=True)))


def test_gradients_sum_over_ys():
    found = run(lambda x: wf.gradients([x * 2, (x * x).sum(), x * 2], [x]), X)
    assert_close(found, [4 + 2 * X])


def test_ys_with_given_gradients():
    def build(x):
        weights = wf.tensor([1.0, 2.0, 3.0], dtype=wf.float64)
        return wf.gradients([x * x, x.sum()], [x], [weights, None])

    assert_close(run(build, X), [2 * X * [1, 2, 3] + 1])


def test_given_gradients_may_be_symbols_and_are_differentiable():
    def build(x, g):
        (first,) = wf.gradients(x * x * x, [x], [g])
        return wf.gradients(first, [g, x])

    g = np.array([1.0, 2.0, 3.0])
    assert_close(run(build, X, g), [3 * X**2, 6 * X * g])


def test_one_x_gives_one_symbol():
    with wf.Graph():
        x = wf.placeholder((), wf.float32)
        assert isinstance(wf.gradients(x * x, x), wf.Symbol)
        assert isinstance(wf.gradients(x * x, [x]), list)


def test_x_itself_and_values_between():
    def build(x):
        y = x * 2
        z = y * y
        return wf.gradients(z, [z, y, x, y])

    assert_close(run(build, X), [np.ones(3), 4 * X, 8 * X, 4 * X])


def test_a_y_between_another_y_and_x():
    def build(x):
        y = x * 3
        return wf.gradients([y, y * y], [x, y])

    assert_close(run(build, X), [3 + 18 * X, 1 + 6 * X])


def test_unconnected_is_none_also_for_integers_and_constants():
    w = wf.nn.Parameter(wf.tensor(1.0))
    with wf.Graph():
        x, y = wf.placeholder((), wf.float32), wf.placeholder((), wf.float32)
        n = wf.placeholder((), wf.int64)
        constant = wf.tensor(2.0)
        assert wf.gradients(x * n * constant, [y, n, w]) == [None, None, None]
        assert wf.gradients(x.detach() * 2, [x]) == [None]
        assert wf.gradients((x > 0).to(wf.float32), [x]) == [None]
        assert wf.forward_gradients([x, y], [x], [wf.ones(())])[1] is None


def test_parameters_and_tensors_from_outside():
    w, b = wf.nn.Parameter(wf.tensor(X)), wf.tensor(X)
    with wf.Graph() as graph:
        gs = wf.gradients((w * b * b).sum(), [w, b])
    assert_close(wf.Session(graph).run(gs), [X * X, 2 * X * X])
    w.assign(1.0)
    assert_close(wf.Session(graph).run(gs), [X * X, 2 * X])


def test_higher_orders():
    def build(x):
        found = [(x**5).sum()]
        for _ in range(5):
            found.append(wf.gradients(found[-1], x).sum())
        return found[1:]

    factors = [5, 20, 60, 120, 120]
    expected = [np.array((f * X ** (4 - i)).sum()) for i, f in enumerate(factors)]
    assert_close(run(build, X), expected)


def test_hessian_vector_product_both_ways():
    v = np.array([1.0, -2.0, 0.5])

    def build(x, v):
        y = (x.sin() * x * x).sum() * x.cos().sum()
        (g,) = wf.gradients(y, [x])
        return [wf.forward_gradients(g, x, v), wf.gradients((g * v).sum(), x)]

    forward, reverse = run(build, X, v)
    assert_close(forward, reverse)


def test_no_grad_and_enable_grad():
    def build(x):
        with wf.no_grad():
            frozen = x * x
            with wf.enable_grad():
                alive = x * 3
            mixed = frozen * alive
        return wf.gradients([frozen * x, alive], [x]), wf.gradients(mixed * x, [x])

    first, second = run(build, X)
    assert_close(first, [X * X + 3])
    assert_close(second, [3 * X**3])


def test_gradients_built_inside_no_grad_are_alive():
    def build(x):
        y = (x**3).sum()
        with wf.no_grad():
            (g,) = wf.gradients(y, [x])
        return wf.gradients(g.sum(), [x])

    assert_close(run(build, X), [6 * X])


def test_writing_into_a_symbol():
    def fn(x):
        y = x * 1
        y[0] = y[1] * 2
        y *= 3
        return (y * y).sum()

    leaf = wf.tensor(X, requires_grad=True)
    expected = wf.gradients(fn(leaf), leaf).numpy()
    assert_close(run(lambda x: wf.gradients(fn(x), x), X), expected)


def test_jvp_inside_a_graph():
    v = np.array([1.0, 2.0, -1.0])

    def build(x, v):
        def fn(p):
            return {"y": p["a"] * p["b"].sin(), "n": p["n"], "c": wf.tensor(1.0)}

        primal = {"a": x, "b": x * 2, "n": wf.tensor(3)}
        return wf.jvp(fn, (primal,), ({"a": v, "b": None, "n": None},))

    (y, dy) = run(build, X, v)
    assert_close(y["y"], X * np.sin(2 * X))
    assert_close(dy["y"], v * np.sin(2 * X))
    assert dy["n"] is None
    assert_close(dy["c"], np.zeros((), np.float32))


def test_nested_jvp_does_not_confuse_perturbations():
    def build(x):
        one = wf.ones((), dtype=wf.float64)

        def inner(y):
            return wf.jvp(lambda z: y * z, (x,), (one,))[1]  # d(y z)/dz = y, whatever y is

        return wf.jvp(lambda y: y * inner(y), (x,), (one,))[1]

    assert_close(run(build, np.array(3.0)), np.array(6.0))


class Scaled(wf.Function):
    """Returns a x and x^2; its gradient is told wrongly, so that it shows."""

    @staticmethod
    def forward(ctx, x, a):
        y = x * x
        ctx.save_for_backward(x, a, y)
        return x * a, y

    @staticmethod
    def backward(ctx, g, h):
        x, a, y = ctx.saved_tensors
        return 10 * g * a + h * y, (g * x).sum()


@wf.custom_vjp
def doubled(x):
    return x * 2


doubled.defvjp(lambda x: (x * 2, x), lambda x, g: (g * x * 7,))


def straight(x):
    y, z = Scaled.apply(x, x.sum())
    return doubled(y) * z


def in_scan(x):
    def step(c, v):
        y, z = Scaled.apply(c, v)
        return doubled(y + v), z

    last, ys = wf.scan(step, x[0], x)
    return last + ys.sum()


def in_while(x):
    return wf.while_loop(lambda c: c.abs().sum() < 50, lambda c: straight(c) + x, x)


def in_cond(x):
    return wf.cond(x.sum() > 0, straight, lambda v: v * 3, x)


@pytest.mark.parametrize("fn", [straight, in_scan, in_while, in_cond])
def test_custom_derivatives(fn):
    def derivatives(x):
        y = (fn(x) ** 2).sum()
        options = {} if x.symbolic else {"create_graph": True}
        (g,) = wf.gradients(y, [x], **options)
        return [y, g, wf.gradients((g * g).sum(), x)]

    expected = [t.numpy() for t in derivatives(wf.tensor(X, requires_grad=True))]
    assert_close(run(derivatives, X), expected)


@pytest.mark.parametrize("fn", [straight, in_scan, in_while, in_cond])
def test_custom_derivatives_in_forward_mode(fn):
    v = np.array([1.0, -2.0, 0.5])
    expected = wf.jvp(fn, (wf.tensor(X),), (wf.tensor(v),))[1].numpy()
    assert_close(run(lambda x, v: wf.forward_gradients(fn(x), x, v), X, v), expected)


@pytest.mark.parametrize("count", [3000])
def test_long_chains_need_no_recursion(count):
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float64)
        y = x
        for _ in range(count):
            y = y * 1.0001 + 0.0
        (g,) = wf.gradients(y, [x])
        t = wf.forward_gradients(y, x, wf.ones((), dtype=wf.float64))
    found = wf.Session(graph).run([g, t], {x: 1.0})
    np.testing.assert_allclose(found, [1.0001**count] * 2, rtol=1e-10)


def test_gradients_of_unknown_sizes():
    with wf.Graph() as graph:
        x = wf.placeholder((None, None), wf.float64)
        mean = x.mean(axis=0)
        loss = ((x - mean) ** 2).sum() / x.shape[0]
        (g,) = wf.gradients(loss, [x])
    session = wf.Session(graph)
    for shape in ((2, 3), (5, 1)):
        a = np.random.default_rng(0).standard_normal(shape)
        leaf = wf.tensor(a, requires_grad=True)
        expected = wf.gradients(((leaf - leaf.mean(axis=0)) ** 2).sum() / shape[0], leaf)
        assert_close(session.run(g, {x: a}), expected.numpy())


def test_gradient_nodes_stand_in_a_scope_of_their_own_at_the_line_of_the_operation():
    with wf.Graph():
        x = wf.placeholder((), wf.float32)
        with wf.name_scope("layer"):
            y = x.sin()
        (g,) = wf.gradients(y, [x])
    node = g.value.node
    assert node.scope[:2] == ("gradients", "layer")
    assert node.where == y.value.node.where


def test_operators_that_this_process_has_never_called(tmp_path):
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float64, name="x")
        graph.name_value(wf.take(wf.lgamma(x), wf.tensor([0, 2])).sum().value, "y")
    graph.save(tmp_path / "graph")
    code = (
        "import sys, weft as wf\n"
        "from weft.graph.symbol import make_symbol\n"
        "graph = wf.Graph.load(sys.argv[1])\n"
        "with graph:\n"
        "    x, y = (make_symbol(graph, graph.find(name)) for name in 'xy')\n"
        "    (g,) = wf.gradients(y, [x])\n"
        "print(wf.Session(graph).run(g, {x: [1.0, 2.0, 2.0]}).round(4).tolist())"
    )
    command = [sys.executable, "-c", code, tmp_path / "graph"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "[-0.5772, 0.0, 0.4228]", found.stderr
