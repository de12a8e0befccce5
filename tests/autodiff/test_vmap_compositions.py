"""vmap together with gradients, custom rules, control flow and graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.core.op import find_op
from weft.core.tree import flatten

RNG = np.random.default_rng(1)
X = RNG.normal(size=(4, 3))
W = wf.tensor(RNG.normal(size=(2, 3)))
F64 = wf.float64


class Product(wf.Function):
    """x * w * k, with gradients ten times too large, to tell them from derived ones."""

    @staticmethod
    def forward(ctx, x, w, k=2.0):
        ctx.save_for_backward(x, w)
        ctx.k = k
        return x * w * k

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return 10 * g * w * ctx.k, 10 * g * x * ctx.k, None


@wf.custom_vjp
def tenfold(x):
    return x * x


tenfold.defvjp(lambda x: (x * x, (x,)), lambda saved, g: (20 * saved[0] * g,))


def newton(a):
    """Return the square root, by as many steps as it takes."""
    return wf.while_loop(lambda y: abs(y * y - a) > 1e-9, lambda y: (y + a / y) / 2, a * 0 + 1.0)


def count_up(x):
    def step(carry):
        i, y = carry
        return i + 1, wf.sin(y) * x.sum()

    return wf.while_loop(lambda c: c[0] < 3, step, (wf.tensor(0), x))[1].sum()


def branch(x):
    return wf.cond(x.sum() > 0, lambda v: wf.sqrt(v.sum()), lambda v: (v * v).sum(), x)


def recurrence(x):
    start = wf.tensor(1.0, dtype=F64)
    return (wf.scan(lambda c, v: (c * v + x.sum(), c * v), start, x)[1] ** 2).sum()


FUNCTIONS = {
    "mlp": lambda x: wf.tanh(wf.linear(x, W)).sum(),
    "matrix": lambda x: wf.linalg.inv(wf.outer(x, x) + wf.eye(3, dtype=F64)).sum(),
    "gather": lambda x: x[wf.argmax(x)] * wf.sort(x, axis=0)[0] + wf.logsumexp(x),
    "conv": lambda x: (
        wf.nn.functional.conv1d(x.reshape(1, 1, 3), x[:2].reshape(1, 1, 2)) ** 2
    ).sum(),
    "function": lambda x: (Product.apply(x, W[0], 2.0) ** 2).sum(),
    "custom_vjp": lambda x: (tenfold(x) ** 2).sum(),
    "branch": branch,
    "newton": lambda x: newton((x * x).sum()),
    "count_up": count_up,
    "recurrence": recurrence,
    "nested": lambda x: wf.vmap(lambda a: a * x.sum() * a)(x).sum(),
    "write": lambda x: _written(x).sum(),
}


def _written(x):
    y = wf.zeros(3, dtype=F64)
    y[1:] = x[:2] * x[0]
    y[0] = wf.exp(x[1])
    return y * y


def grad_of(fn):
    return wf.grad(fn)


def tangent_of(fn):
    return lambda x: wf.jvp(fn, (x,), (wf.cos(x),))[1]


def hessian_of(fn):
    basis = wf.eye(3, dtype=F64)
    return lambda x: wf.vmap(lambda v: wf.jvp(wf.grad(fn), (x,), (v,))[1])(basis)


INNER = {"value": lambda fn: fn, "grad": grad_of, "jvp": tangent_of, "hessian": hessian_of}


def looped(fn: Any) -> Any:
    rows = [fn(wf.tensor(x)).numpy() for x in X]
    return np.stack(rows)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_of_derivatives(name, inner):
    fn = INNER[inner](FUNCTIONS[name])
    np.testing.assert_allclose(wf.vmap(fn)(wf.tensor(X)).numpy(), looped(fn), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_vmap(name):
    fn = FUNCTIONS[name]
    x = wf.tensor(X)
    expected = looped(wf.grad(fn))
    batch = wf.vmap(fn)
    found = wf.grad(lambda v: batch(v).sum())(x).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    direction = np.cos(X)
    _, tangent = wf.jvp(batch, (x,), (wf.tensor(direction),))
    np.testing.assert_allclose(tangent.numpy(), (expected * direction).sum(1), rtol=1e-7, atol=1e-9)
    leaf = wf.tensor(X, requires_grad=True)
    batch(leaf).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=1e-7, atol=1e-9)


def _refused(name, inner, size):
    """Return what an error says where a graph cannot do what eager code can."""
    if (name, inner) == ("newton", "grad"):
        return "different numbers of trips"
    return "not known until the graph runs" if name == "conv" and size is None else None


@pytest.mark.parametrize("size", [4, None])
@pytest.mark.parametrize("inner", ["value", "grad", "jvp"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_a_graph(name, inner, size):
    fn = INNER[inner](FUNCTIONS[name])
    with wf.Graph() as graph:
        x = wf.placeholder((size, 3), F64, name="x")
        refused = _refused(name, inner, size)
        if refused is not None:
            with pytest.raises(ValueError, match=refused):
                wf.vmap(fn)(x)
            return
        y = wf.vmap(fn)(x)
        g = wf.gradients((y * y).sum(), x)
    found, gradient = wf.Session(graph).run([y, g], {x: X})
    np.testing.assert_allclose(found, looped(fn), rtol=1e-7, atol=1e-9)
    expected = wf.grad(lambda v: (wf.vmap(fn)(v) ** 2).sum())(wf.tensor(X)).numpy()
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


def test_per_example_gradients_of_shared_parameters():
    params = {"w": W, "b": wf.zeros(2, dtype=F64)}
    targets = wf.tensor([0, 1, 1, 0])

    def loss(p, x, y):
        logits = wf.linear(x, p["w"], p["b"])
        return wf.nn.functional.cross_entropy(logits, y)

    found = wf.vmap(wf.grad(loss), in_axes=(None, 0, 0))(params, wf.tensor(X), targets)
    for i in range(4):
        one = wf.grad(loss)(params, wf.tensor(X[i]), targets[i])
        for key, value in one.items():
            np.testing.assert_allclose(found[key].numpy()[i], value.numpy(), rtol=1e-10)


def test_per_example_gradients_multiply_matrices_once_per_layer(monkeypatch):
    """The forward pass keeps shared weights shared: its products have no batch of weights."""
    shapes = []
    linear = find_op("linear")
    kernel = linear.kernel

    def spy(x, weight, bias):
        shapes.append((x.shape, weight.shape))
        return kernel(x, weight, bias)

    monkeypatch.setitem(linear.specialized.call.__globals__, "kernel", spy)
    wf.vmap(wf.grad(lambda w, x: wf.linear(x, w).sum()), in_axes=(None, 0))(W, wf.tensor(X))
    assert shapes == [((4, 3), (2, 3))]


def test_gradients_on_the_tape_inside():
    def fn(x):
        x = x.detach().requires_grad_()
        return wf.gradients((x**3).sum(), x)

    np.testing.assert_allclose(wf.vmap(fn)(wf.tensor(X)).numpy(), 3 * X**2)

    def shared(x):
        return wf.gradients((leaf * x).sum(), leaf)

    leaf = wf.ones(3, dtype=F64, requires_grad=True)
    with pytest.raises(wf.WeftError, match=r"shared by all examples.*use wf.grad"):
        wf.vmap(shared)(wf.tensor(X))


def test_backward_inside_adds_up_over_examples():
    leaf = wf.ones(3, dtype=F64, requires_grad=True)
    wf.vmap(lambda x: (leaf * x).sum().backward() or x)(wf.tensor(X))
    np.testing.assert_allclose(leaf.grad.numpy(), X.sum(0))


def test_no_grad_inside():
    leaf = wf.tensor(X, requires_grad=True)

    def fn(x):
        with wf.no_grad():
            y = x * 2
        return y + x

    wf.vmap(fn)(leaf).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), np.ones_like(X))


def test_the_untaken_side_leaves_no_nan():
    x = wf.tensor([-4.0, 9.0, 0.0, 16.0], dtype=F64)

    def root(x):
        return wf.cond(x > 0, wf.sqrt, lambda v: v * 2, x)

    for found in (wf.vmap(wf.grad(root))(x), wf.grad(lambda v: wf.vmap(root)(v).sum())(x)):
        np.testing.assert_allclose(found.numpy(), [2, 1 / 6, 2, 1 / 8])
    with wf.Graph() as graph:
        s = wf.placeholder((4,), F64, name="s")
        g = wf.gradients(wf.vmap(root)(s).sum(), s)
    np.testing.assert_allclose(wf.Session(graph).run(g, {s: x.numpy()}), [2, 1 / 6, 2, 1 / 8])


def test_branches_must_agree():
    with pytest.raises(ValueError, match="same types"):
        wf.vmap(lambda x: wf.cond(x[0] > 0, lambda: x, lambda: x[:1]))(wf.tensor([[1, 2], [-1, 2]]))


def test_a_loop_by_collatz():
    def trips(n):
        def step(c):
            return wf.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1

        return wf.while_loop(lambda c: c[0] > 1, step, (n, wf.tensor(0)))[1]

    assert wf.vmap(trips)(wf.tensor([1, 2, 3, 6, 7, 27])).tolist() == [0, 1, 7, 8, 16, 111]


def test_a_scan_cannot_stop_at_different_steps():
    def fn(x):
        return wf.scan(lambda c, v: (c + v, c), x.sum(), x, until=lambda c, y: c > 0)

    with pytest.raises(ValueError, match="inside vmap"):
        wf.vmap(fn)(wf.tensor(X))
    with wf.Graph():
        x = wf.placeholder((4, 3), F64)
        with pytest.raises(ValueError, match="different numbers of steps"):
            wf.vmap(fn)(x)


def test_a_rule_of_the_users_own():
    seen = []

    class Own(Product):
        @staticmethod
        def vmap(info, in_dims, x, w, k=2.0):
            seen.append((info.batch_size, info.randomness, in_dims))
            return Product.apply(x, w, k), 0

    found = wf.vmap(lambda x: Own.apply(x, W[0]))(wf.tensor(X))
    np.testing.assert_allclose(found.numpy(), 2 * X * W.numpy()[0])
    assert seen == [(4, "different", (0, None))]

    class Bad(Product):
        @staticmethod
        def vmap(info, in_dims, x, w):
            return x

    with pytest.raises(TypeError, match="pair"):
        wf.vmap(lambda x: Bad.apply(x, W[0]))(wf.tensor(X))


def test_gradients_of_arguments_that_a_function_shares():
    x = wf.tensor(X)

    def total(w):
        return wf.vmap(lambda v: Product.apply(v, w, 2.0).sum())(x).sum()

    np.testing.assert_allclose(wf.grad(total)(W[0]).numpy(), 20 * X.sum(0))
    with wf.Graph() as graph:
        w = wf.placeholder((3,), F64, name="w")
        g = wf.gradients(total(w), w)
    np.testing.assert_allclose(wf.Session(graph).run(g, {w: W.numpy()[0]}), 20 * X.sum(0))


def test_keyword_batches_of_a_function():
    class Scaled(wf.Function):
        @staticmethod
        def forward(ctx, x, *, scale):
            return x * scale

        @staticmethod
        def backward(ctx, g):
            return g

    scale = wf.tensor([1.0, 2.0, 3.0, 4.0], dtype=F64)
    found = wf.vmap(lambda x, s: Scaled.apply(x, scale=s))(wf.tensor(X), scale)
    np.testing.assert_allclose(found.numpy(), X * scale.numpy()[:, None])


def test_draws_in_a_graph_move_the_generator_on():
    with wf.Graph() as graph:
        x = wf.placeholder((4, 3), F64, name="x")
        noise = wf.vmap(lambda v: wf.rand(3) + 0 * v.sum())(x)
        after = wf.rand(12)
    found, rest = wf.Session(graph).run([noise, after], {x: X})
    assert len(np.unique(np.concatenate([found.ravel().astype(np.float32), rest]))) == 24


def test_modules():
    model = wf.nn.Sequential(
        wf.nn.Linear(3, 8), wf.nn.LayerNorm(8), wf.nn.ReLU(), wf.nn.Linear(8, 2)
    )
    x = wf.tensor(X.astype(np.float32))
    np.testing.assert_allclose(wf.vmap(model)(x).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)


def test_ensembles_of_weights():
    weights = wf.tensor(RNG.normal(size=(5, 2, 3)))
    found = wf.vmap(lambda w: wf.tanh(wf.linear(wf.tensor(X), w)))(weights)
    np.testing.assert_allclose(found.numpy(), np.tanh(X @ weights.numpy().transpose(0, 2, 1)))


def test_results_of_a_tree_in_a_graph():
    with wf.Graph() as graph:
        x = wf.placeholder((3, 4), F64, name="x")
        tree = wf.vmap(
            lambda v: {"a": v * 2, "b": (v.sum(), 3.0)}, in_axes=1, out_axes={"a": -1, "b": 0}
        )(x)
        leaves, _ = flatten(tree)
    found = wf.Session(graph).run(leaves, {x: X.T})
    np.testing.assert_allclose(found[0], 2 * X.T)
    np.testing.assert_allclose(found[1], X.sum(1))
    np.testing.assert_allclose(found[2], np.full(4, 3.0))
