"""Histories that are cut, as Chainer cuts them."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import weft as wf
from weft.core.errors import GradientError


def chain(x, steps):
    found = [x]
    for _ in range(steps):
        found.append(wf.sin(found[-1]))
    return found


def test_unchain_ends_gradients_at_a_tensor():
    x = wf.tensor(0.5, requires_grad=True)
    _, a, b, c = chain(x, 3)
    b.unchain()
    c.backward()
    assert x.grad is None
    assert b.grad_fn is None
    assert b.requires_grad
    np.testing.assert_allclose(b.grad.numpy(), np.cos(b.numpy()))
    a.backward()  # what lies before has its own history still
    np.testing.assert_allclose(x.grad.numpy(), np.cos(0.5))


def test_unchain_backward_forgets_all_that_lies_behind():
    x = wf.tensor(0.5, requires_grad=True)
    _, a, b, c = chain(x, 3)
    node = weakref.ref(a.grad_fn)
    other = a * 2
    c.unchain_backward()
    other.backward()
    assert x.grad is None
    np.testing.assert_allclose(a.grad.numpy(), 2.0)
    del a, b, other
    gc.collect()
    assert node() is None
    (c * x).backward()  # the tensor itself goes on as a root, and leaves are leaves
    np.testing.assert_allclose(x.grad.numpy(), c.numpy())


def test_truncated_backpropagation_is_that_of_detached_states():
    rng = np.random.default_rng(0)
    xs = [wf.tensor(row) for row in rng.normal(size=(9, 3))]

    def trained(cut):
        w = wf.tensor(rng_w, requires_grad=True)
        h = wf.zeros(3, dtype=wf.float64)
        for i, x in enumerate(xs, 1):
            h = wf.tanh(w @ h + x)
            if i % 3 == 0:
                h.sum().backward()
                h = cut(h)
        return w.grad.numpy()

    rng_w = rng.normal(size=(3, 3))

    def unchained(h):
        h.unchain_backward()
        return h

    np.testing.assert_allclose(trained(unchained), trained(lambda h: h.detach()), rtol=1e-12)


def test_several_outputs_and_second_derivatives():
    x = wf.tensor(np.diag([1.0, 2.0]), requires_grad=True)
    values, vectors = wf.linalg.eigh(x)
    values.unchain()
    (values.sum() + vectors.sum()).backward(create_graph=True)
    assert values.grad.tolist() == [1.0, 1.0]
    assert x.grad is not None


def test_leaves_and_constants_are_left_alone():
    x = wf.tensor(1.0, requires_grad=True)
    x.unchain()
    x.unchain_backward()
    wf.ones(2).unchain_backward()
    (x * x).backward()
    assert x.grad.item() == 2.0


def test_a_jitted_function_that_cuts_runs_eagerly():
    w = wf.tensor(2.0, requires_grad=True)

    @wf.jit
    def step(x):
        h = x * w
        h.unchain()
        (h * w).backward()
        return h.detach()

    with pytest.warns(RuntimeWarning, match="unchain cuts the history"):
        step(wf.tensor(3.0))
    assert w.grad.item() == 6.0


def test_symbols_have_no_history():
    with wf.Graph():
        x = wf.placeholder((), wf.float32)
        with pytest.raises(GradientError, match=r"use wf\.stop_gradient"):
            (x * x).unchain_backward()
