"""wf.jit with arguments that are given away."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, DonatedError

N = 4096


def ones(value=1.0):
    return wf.full((N,), value)


def address(x):
    return x._value.ctypes.data


def sgd(params, grads, *, lr):
    return {name: p - lr * grads[name] for name, p in params.items()}


@pytest.mark.parametrize("donate", [0, "params", ["params"]])
def test_results_take_the_memory_of_arguments_call_after_call(donate):
    step, grads = wf.jit(sgd, donate=donate), {"a": ones(), "b": ones(2.0)}
    params = {"a": ones(5.0), "b": ones(6.0)}
    for _ in range(4):
        places = {name: address(p) for name, p in params.items()}
        new = step(params, grads, lr=0.5)
        assert {name: address(p) for name, p in new.items()} == places
        with pytest.raises(DonatedError, match=r"sgd at test_donating.py:\d+ took .*params\['b'\]"):
            params["b"].sum()
        params = new
    np.testing.assert_allclose(params["a"].numpy(), 3.0)
    np.testing.assert_allclose(params["b"].numpy(), 2.0)


def test_arguments_are_donated_by_keyword():
    step = wf.jit(sgd, donate=["grads"])
    grads = {"a": ones()}
    step({"a": ones(5.0)}, grads=grads, lr=0.5)
    with pytest.raises(DonatedError, match="grads"):
        grads["a"].sum()


def test_an_argument_that_is_returned_stays():
    @wf.jit(donate="x")
    def both(x):
        return x, x + 1.0

    for _ in range(3):
        x = ones(3.0)
        same, more = both(x)
        np.testing.assert_allclose(same.numpy(), 3.0)
        np.testing.assert_allclose(more.numpy(), 4.0)


def test_what_a_history_needs_is_not_written_over():
    w = wf.full((N,), 2.0, requires_grad=True)

    @wf.jit(donate="x")
    def product(x):
        return (w * x * x).sum(), wf.tanh(x)

    for _ in range(3):
        w.grad = None
        x = ones(3.0)
        loss, _ = product(x)
        loss.backward()
        np.testing.assert_allclose(w.grad.numpy(), 9.0)
        with pytest.raises(DonatedError):
            x.sum()


def test_methods_take_too():
    class Net:
        @wf.jit(donate="x")
        def by_name(self, x):
            return wf.relu(x)

        @wf.jit(donate=1)
        def by_place(self, x):
            return wf.relu(x)

    net = Net()
    for call in (net.by_name, net.by_name, net.by_place, net.by_place):
        x = ones()
        place = address(x)
        assert address(call(x)) == place
        with pytest.raises(DonatedError, match="by_"):
            x.sum()


def test_an_error_after_the_program_has_run_leaves_no_garbage():
    seen = [0]

    class Counter:
        def __setattr__(self, name, value):
            seen[0] += 1
            if seen[0] > 2:
                raise ValueError("full")
            object.__setattr__(self, name, value)

    counter = Counter()

    @wf.jit(donate=0)
    def step(x):
        counter.last = 1
        return x * 2.0

    for _ in range(3):
        x = ones()
        try:
            step(x)
        except ValueError:
            np.testing.assert_array_equal(_read(x), 1.0)


def _read(x):
    """Return the elements of a tensor, or those it had if it says that they are gone."""
    try:
        return x.numpy().copy()
    except DonatedError:
        return np.ones(N)


def test_what_others_hold_is_refused():
    step = wf.jit(lambda x, y: x * y, donate=0)
    x = ones()
    with pytest.raises(ArgumentError, match="second time"):
        step(x, x)
    with pytest.raises(ArgumentError, match="requires a gradient"):
        step(wf.ones(N, requires_grad=True), x)
    held = x.numpy()
    with pytest.raises(ArgumentError, match="something else holds"):
        step(x, ones())
    del held
    step(x, ones())


def test_a_call_that_fails_takes_nothing():
    step = wf.jit(lambda x, i: x[i] * 2.0, donate=0)
    x, bad = ones(), np.full(N, N)
    step(ones(), np.zeros(N, np.int64))
    for _ in range(2):
        with pytest.raises(IndexError):
            step(x, bad)
        assert x.sum().item() == N


def test_inside_a_transform_nothing_is_taken():
    step = wf.jit(lambda x: wf.tanh(x) * 2.0, donate=0)
    x = ones()
    wf.vmap(step)(x)
    assert x.sum().item() == N


def test_a_copy_takes_what_the_first_does():
    step = copy.deepcopy(wf.jit(sgd, donate="params"))
    params = {"a": ones(5.0)}
    step(params, {"a": ones()}, lr=0.5)
    with pytest.raises(DonatedError):
        params["a"].sum()
