"""Forward mode inside reverse: the same derivatives, of which only columns are kept."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.autodiff.history import TensorHistory
from weft.core.errors import ArgumentError

X = np.linspace(0.1, 1.0, 40)


def curve(t, p=None):
    """Return many numbers of few, by many operations."""
    y = wf.tensor(X)
    for _ in range(12):
        y = wf.sin(y * t[0] + t[1])
    return y if p is None else y * p["scale"]


T = wf.tensor(np.array([1.3, 0.4]))
local = wf.autodiff.local_forward(curve)


def loss(fn):
    return lambda t: (fn(t) ** 2).sum()


def test_derivatives_are_those_of_the_function():
    np.testing.assert_allclose(local(T).numpy(), curve(T).numpy())
    for transform in (
        wf.grad,
        lambda f: wf.grad(lambda t: wf.grad(f)(t).sum()),
        wf.hessian,
        lambda f: lambda t: wf.jvp(f, (t,), (wf.ones(2, dtype=wf.float64),)),
        lambda f: wf.jit(wf.grad(f)),
        lambda f: wf.compile(wf.grad(f), T),
        lambda f: lambda t: wf.vmap(wf.grad(f))(wf.stack([t, 2 * t])),
    ):
        found, expected = transform(loss(local))(T), transform(loss(curve))(T)
        for a, b in zip(
            *(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True
        ):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)


def test_only_columns_are_kept():
    t = wf.tensor(T.numpy(), requires_grad=True)
    kept = TensorHistory([local(t)]).saved_bytes
    assert kept <= (2 * 40 + 8) * 8  # two columns
    assert TensorHistory([curve(t)]).saved_bytes > 5 * kept


def test_trees_integers_and_several_results():
    def fn(params, k):
        return {"y": curve(params["t"], params) * k, "k": k}

    params = {"t": T, "scale": wf.tensor(np.float64(3.0))}
    made = wf.autodiff.local_forward(fn)
    assert made(params, wf.tensor(2))["k"].item() == 2
    found = wf.grad(lambda p: made(p, wf.tensor(2))["y"].sum())(params)
    expected = wf.grad(lambda p: fn(p, wf.tensor(2))["y"].sum())(params)
    for name in params:
        np.testing.assert_allclose(found[name].numpy(), expected[name].numpy(), rtol=1e-12)


def test_through_control_flow_of_a_graph():
    def looped(t):
        return wf.while_loop(lambda y: y.sum() < 100, lambda y: y * t[0] + t[1], wf.tensor(X))

    made = wf.autodiff.local_forward(looped)
    with wf.Graph() as graph:
        t = wf.placeholder((2,), wf.float64)
        g = wf.gradients(made(t).sum(), t)
    expected = wf.grad(lambda t: looped(t).sum())(T)
    np.testing.assert_allclose(
        wf.Session(graph).run(g, {t: T.numpy()}), expected.numpy(), rtol=1e-12
    )


def test_mistakes_are_explained():
    with pytest.raises(TypeError, match="takes a function"):
        wf.autodiff.local_forward(3)
    with pytest.raises(ArgumentError, match="have 100 numbers, more than 64"):
        wf.autodiff.local_forward(lambda x: x)(wf.ones(100, requires_grad=True))
    assert wf.autodiff.local_forward(lambda x: x * 2, limit=100)(wf.ones(100)).sum().item() == 200
