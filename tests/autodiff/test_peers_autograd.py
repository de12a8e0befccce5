"""HIPS autograd's own check_grads, run on Weft's derivatives.

A function of Weft's becomes a primitive of autograd whose rules are Weft's jvp and vjp, which are
primitives of the same kind, to any order. autograd's checker then compares jvp with differences,
vjp with differences, and both modes of both again.
"""

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F

pytestmark = pytest.mark.peers
extend = pytest.importorskip("autograd.extend")
check_grads = pytest.importorskip("autograd.test_util").check_grads


def primitive(fn):
    """Return a function of tensors as a primitive of autograd, derivatives by Weft."""

    @extend.primitive
    def wrapped(*arrays):
        return np.asarray(fn(*map(wf.tensor, arrays)).numpy())

    def jvp_rule(i):
        return lambda t, out, *xs: primitive(lambda t, *xs: pushed(fn, i, xs, t))(t, *xs)

    def vjp_rule(i):
        return lambda out, *xs: lambda g: primitive(lambda g, *xs: pulled(fn, i, xs, g))(g, *xs)

    places = range(8)
    extend.defjvp(wrapped, *map(jvp_rule, places))
    extend.defvjp(wrapped, *map(vjp_rule, places))
    return wrapped


def alone(fn, i, xs):
    """Return fn as a function of its i-th argument."""
    return lambda x: fn(*xs[:i], x, *xs[i + 1 :])


def pushed(fn, i, xs, t):
    return wf.jvp(alone(fn, i, xs), (xs[i],), (t,))[1]


def pulled(fn, i, xs, g):
    return wf.vjp(alone(fn, i, xs), xs[i])[1](g)[0]


rng = np.random.default_rng(0)
A, B = rng.normal(size=(2, 3, 3))
X, Y = rng.normal(size=(2, 2, 3))
V = rng.normal(size=3)
POSITIVE = rng.uniform(0.5, 2.0, (2, 3))
SMALL = rng.uniform(-0.8, 0.8, (2, 3))
SPD = A @ A.T + 3 * np.eye(3)

UNARY = {
    X.tobytes(): ("sin", "cos", "tanh", "exp", "sigmoid", "arctan", "sinh", "expm1", "erf"),
    POSITIVE.tobytes(): ("log", "sqrt", "log1p", "rsqrt", "reciprocal", "lgamma", "arccosh"),
    SMALL.tobytes(): ("arcsin", "arccos", "arctanh", "tan"),
}
DOMAINS = {array.tobytes(): array for array in (X, POSITIVE, SMALL)}
CASES = {
    **{
        name: (getattr(wf, name), (DOMAINS[key] + (1.5 if name == "arccosh" else 0),))
        for key, names in UNARY.items()
        for name in names
        if hasattr(wf, name)
    },
    "add": (lambda x, y: x + y, (X, V)),
    "subtract": (lambda x, y: x - y, (V, X)),
    "multiply": (lambda x, y: x * y, (X, V)),
    "divide": (lambda x, y: x / y, (X, POSITIVE)),
    "power": (lambda x, y: x**y, (POSITIVE, X)),
    "power of a number": (lambda x: x**3, (X,)),
    "maximum": (wf.maximum, (X, Y)),
    "abs": (wf.abs, (X,)),
    "atan2": (wf.atan2, (X, Y)),
    "hypot": (wf.hypot, (X, Y)),
    "logaddexp": (wf.logaddexp, (X, Y)),
    "where": (lambda x, y: wf.where(x > y, x * y, wf.sin(x)), (X, Y)),
    "clip": (lambda x: wf.clip(x, -0.7, 0.7) * x, (X,)),
    "matmul": (lambda x, y: x @ y, (X, A)),
    "matmul of a vector": (lambda x, y: x @ y, (A, V)),
    "outer": (lambda x, y: x[:, None] * y[None, :], (V, V + 1)),
    "einsum": (lambda x, y: wf.einsum("ij,kj->ik", x, y), (X, Y)),
    "sum": (lambda x: wf.sum(wf.sin(x), axis=1), (X,)),
    "mean": (lambda x: wf.mean(x * x, axis=0), (X,)),
    "var": (lambda x: wf.var(x, axis=1), (X,)),
    "std": (lambda x: wf.std(x, axis=0), (X,)),
    "prod": (lambda x: wf.prod(x, axis=1), (X,)),
    "max": (lambda x: wf.max(x, axis=1) ** 2, (X,)),
    "logsumexp": (lambda x: wf.logsumexp(x, axis=1), (X,)),
    "cumsum": (lambda x: wf.cumsum(x, 1) ** 2, (X,)),
    "cumprod": (lambda x: wf.cumprod(x, 1), (X,)),
    "sort": (lambda x: wf.sort(x, axis=1) ** 2, (X,)),
    "reshape and transpose": (lambda x: wf.reshape(x * x, (3, 2)).T, (X,)),
    "concatenate": (lambda x, y: wf.concatenate([x * y, y], 0), (X, Y)),
    "stack": (lambda x, y: wf.stack([x * y, wf.sin(y)], 1), (X, Y)),
    "index": (lambda x: x[:, wf.tensor([0, 2, 2])] ** 2, (X,)),
    "slice": (lambda x: x[::-1, 1:] ** 2, (X,)),
    "flip": (lambda x: wf.flip(x, 1) * x, (X,)),
    "tril": (lambda x: wf.tril(x) ** 2, (A,)),
    "softmax": (lambda x: F.softmax(x, -1), (X,)),
    "log_softmax": (lambda x: F.log_softmax(x, -1), (X,)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (3,), w, b), (X, V, V + 1)),
    "gelu": (F.gelu, (X,)),
    "mse_loss": (F.mse_loss, (X, Y)),
    "cross_entropy": (lambda x: F.cross_entropy(x, wf.tensor([0, 2])), (X,)),
    "conv1d": (F.conv1d, (rng.normal(size=(1, 2, 5)), rng.normal(size=(2, 2, 3)))),
    "inverse": (wf.linalg.inv, (SPD,)),
    "solve": (wf.linalg.solve, (SPD, V)),
    "determinant": (wf.linalg.det, (SPD,)),
    "cholesky": (lambda x: wf.linalg.cholesky((x + x.T) / 2), (SPD,)),
    "norm": (wf.linalg.norm, (X,)),
    "scan": (
        lambda x, v: wf.scan(lambda c, row: (wf.tanh(c * row), c), v, x)[0],
        (X, V),
    ),
    "checkpoint": (wf.checkpoint(lambda x, y: wf.sin(x * y) + y), (X, Y)),
    "grad": (wf.grad(lambda x: (wf.sin(x) * x * x).sum()), (X,)),
    "vmap of grad": (wf.vmap(wf.grad(lambda x: wf.tanh(x @ x))), (X,)),
    "jacfwd": (wf.jacfwd(lambda x: wf.sin(x) * x.sum()), (V,)),
}


@pytest.mark.parametrize("name", CASES)
def test_autograd_agrees_with_derivatives(name):
    fn, args = CASES[name]
    np.random.seed(0)  # noqa: NPY002  (autograd draws its directions from NumPy's global state)
    check_grads(primitive(fn), modes=["fwd", "rev"], order=2)(*args)
