"""Every composition of transforms to depth three, against finite differences and other orders.

A transform here takes a function from an array to an array to another such function. The value of a
composition is known by differences of the composition one level less deep, and must be the same
eagerly, in a graph that is interpreted, and compiled.
"""

from itertools import product

import numpy as np
import pytest

import weft as wf
from weft.core.config import config

N = 3
DIRECTION = np.array([0.5, -1.0, 0.25])


def total(fn):
    """Return a function of one number, with a weight for each part of the result."""

    def weighted(x):
        y = fn(x)
        return (y * wf.tensor(1 + np.arange(float(y.size)).reshape(y.shape) / 7)).sum()

    return weighted


def grad(fn):
    return wf.grad(total(fn))


def jvp(fn):
    return lambda x: wf.jvp(fn, (x,), (wf.tensor(DIRECTION),))[1]


def vjp(fn):
    def pulled(x):
        y, pull = wf.vjp(fn, x)
        return pull(wf.ones_like(y) * 0.5)[0]

    return pulled


def vmap(fn):
    """Map over copies of x that differ by a factor, and add them up."""
    factors = wf.tensor(np.array([1.0, 0.5]))
    return lambda x: wf.vmap(lambda s: fn(x * s))(factors).sum(axis=0)


def linearize(fn):
    return lambda x: wf.linearize(fn, x)[1](wf.tensor(DIRECTION))


def jacfwd(fn):
    return lambda x: wf.jacfwd(fn)(x).sum(axis=-1)


def jacrev(fn):
    return lambda x: wf.jacrev(fn)(x).sum(axis=-1)


def hessian(fn):
    return lambda x: wf.hessian(total(fn))(x).sum(axis=0)


def checkpoint(fn):
    return wf.checkpoint(fn)


# What a transform computes of a function, by differences of that function.
def by_differences(fn, x, name):
    def slope(direction, eps=1e-5):
        def f(s):
            return np.asarray(fn(wf.tensor(x + s * eps * direction)).numpy())

        return (8 * (f(1) - f(-1)) - (f(2) - f(-2))) / (12 * eps)

    columns = np.stack([slope(unit) for unit in np.eye(N)], -1)  # the Jacobian
    value = fn(wf.tensor(x)).numpy()
    weights = 1 + np.arange(float(value.size)).reshape(value.shape) / 7
    axes = tuple(range(value.ndim))
    return {
        "grad": lambda: np.tensordot(weights, columns, (axes, axes)),
        "jvp": lambda: columns @ DIRECTION,
        "linearize": lambda: columns @ DIRECTION,
        "vjp": lambda: 0.5 * columns.sum(axis=axes),
        "vmap": lambda: value + fn(wf.tensor(0.5 * x)).numpy(),
        "jacfwd": lambda: columns.sum(-1),
        "jacrev": lambda: columns.sum(-1),
        "checkpoint": lambda: value,
    }[name]()


TRANSFORMS = {
    "grad": grad,
    "jvp": jvp,
    "vjp": vjp,
    "vmap": vmap,
    "linearize": linearize,
    "jacfwd": jacfwd,
    "jacrev": jacrev,
    "hessian": hessian,
    "checkpoint": checkpoint,
}
PLAIN = [name for name in TRANSFORMS if name != "hessian"]
PAIRS = list(product(PLAIN, repeat=2))
TRIPLES = list(product(PLAIN, repeat=3))
HESSIANS = list(product(("hessian",), PLAIN, ("grad", "vmap", "jacfwd")))
POINT = np.array([0.4, -0.7, 1.1])


def elementwise(x):
    return wf.tanh(x) * wf.exp(x * 0.5)


def products(x):
    matrix = wf.outer(x, wf.sin(x))
    return matrix @ x + wf.prod(x) * x


def branches(x):
    return wf.where(x > 0, x * x * x, wf.sin(x)) + wf.logsumexp(x, axis=0)


def loop(x):
    return wf.scan(lambda c, v: (wf.sin(c) * v + c, None), x, wf.stack([x, 0.5 * x]))[0]


@wf.custom_vjp
def own_rule(x):
    return wf.sin(x) * x


own_rule.defvjp(
    lambda x: (wf.sin(x) * x, (x, wf.cos(x))),
    lambda saved, g: (g * (saved[1] * saved[0] + wf.sin(saved[0])),),
)


@wf.custom_jvp
def own_forward_rule(x):
    return wf.exp(x) / (1 + x * x)


@own_forward_rule.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    y = own_forward_rule(x)
    return y, t * (y - 2 * x * y / (1 + x * x))


FUNCTIONS = {
    fn.__name__: fn for fn in (elementwise, products, branches, loop, own_rule, own_forward_rule)
}


def composed(names, fn):
    for name in reversed(names):
        fn = TRANSFORMS[name](fn)
    return fn


def in_graph(fn, value, *, interpret):
    with wf.Graph() as graph:
        x = wf.placeholder(value.shape, wf.float64, name="x")
        y = fn(x)
    before, config.debug_interpret = config.debug_interpret, interpret
    try:
        return wf.Session(graph).run(y, {x: value})
    finally:
        config.debug_interpret = before


def check_by_differences(names, fn):
    outer, *inner = names
    found = composed(names, fn)(wf.tensor(POINT)).numpy()
    expected = by_differences(composed(inner, fn), POINT, outer)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    return found


@pytest.mark.parametrize("fn", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("name", PLAIN)
def test_depth_one(name, fn):
    found = check_by_differences([name], fn)
    for interpret in (True, False):
        made = in_graph(composed([name], fn), POINT, interpret=interpret)
        np.testing.assert_allclose(made, found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("fn", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_depth_two(names, fn):
    check_by_differences(names, fn)


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_depth_two_in_graphs(names):
    for fn in (products, own_rule):
        found = composed(names, fn)(wf.tensor(POINT)).numpy()
        made = in_graph(composed(names, fn), POINT, interpret=True)
        np.testing.assert_allclose(made, found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("names", TRIPLES, ids="-".join)
def test_depth_three(names):
    check_by_differences(names, products)


@pytest.mark.parametrize("names", HESSIANS, ids="-".join)
def test_hessians_of_compositions(names):
    inner = names[1:]
    found = composed(names, elementwise)(wf.tensor(POINT)).numpy()
    expected = by_differences(grad(composed(inner, elementwise)), POINT, "jacfwd")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("fn", FUNCTIONS.values(), ids=FUNCTIONS)
def test_orders_of_nesting_agree(fn):
    x = wf.tensor(POINT)
    one = total(fn)
    expected = wf.hessian(one)(x).numpy()
    for outer, inner in product((wf.jacfwd, wf.jacrev), repeat=2):
        np.testing.assert_allclose(outer(inner(one))(x).numpy(), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("fn", FUNCTIONS.values(), ids=FUNCTIONS)
def test_compiled_third_derivatives(fn):
    third = jvp(jvp(grad(fn)))
    found = third(wf.tensor(POINT)).numpy()
    compiled = wf.compile(third, wf.tensor(POINT))
    np.testing.assert_allclose(compiled(wf.tensor(POINT)).numpy(), found, rtol=1e-9, atol=1e-9)


def test_per_example_gradients_equal_a_loop():
    rng = np.random.default_rng(0)
    params = {"w": wf.tensor(rng.normal(size=(3, 2))), "b": wf.tensor(rng.normal(size=2))}
    xs = wf.tensor(rng.normal(size=(5, 3)))

    def loss(params, x):
        return (wf.tanh(x @ params["w"] + params["b"]) ** 2).sum()

    found = wf.vmap(wf.grad(loss), in_axes=(None, 0))(params, xs)
    for i in range(5):
        one = wf.grad(loss)(params, xs[i])
        for name in params:
            np.testing.assert_allclose(found[name][i].numpy(), one[name].numpy(), rtol=1e-12)
