"""jit(background=True): calls run eagerly until a thread has compiled the program."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import weft as wf
from weft.eager.background import background


@pytest.fixture
def gate():
    """Hold the thread that compiles until it is opened."""
    opened = threading.Event()
    assert background.submit(opened.wait)
    yield opened
    opened.set()


def wait():
    """Return when the thread has done all that it was given."""
    done = threading.Event()
    assert background.submit(done.set)
    assert done.wait(60)


def test_calls_run_eagerly_until_the_program_is_there(gate):
    seen = []
    weight = wf.tensor([1.0, 2.0], requires_grad=True)
    optimizer = wf.optim.SGD([weight], lr=0.5)

    @wf.jit(background=True)
    def step(x):
        seen.append(1)
        optimizer.zero_grad()
        loss = ((weight - x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    x = wf.tensor([0.0, 0.0])
    losses = [step(x).item() for _ in range(2)]
    assert step.stats()["compiled_calls"] == 0
    assert step.stats()["eager_calls"] == 2
    gate.set()
    wait()
    losses += [step(wf.tensor([1.0, 1.0])).item() for _ in range(2)]
    assert losses == [5.0, 0.0, 2.0, 0.0]
    assert step.stats()["compiled_calls"] == 2
    assert step.stats()["recordings"] == 1
    assert len(seen) == 4
    np.testing.assert_array_equal(weight.numpy(), [1.0, 1.0])


def test_an_error_of_the_first_call_is_raised_once(gate):
    calls = []

    @wf.jit(background=True)
    def step(x):
        calls.append(1)
        return x.sum()

    def fails(x):
        step(x)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fails(wf.ones(2))
    assert calls == [1]


def test_methods_and_what_cannot_be_recorded(gate):
    class Model:
        @wf.jit(background=True)
        def __call__(self, x):
            return x * 2

    assert Model()(wf.ones(2)).tolist() == [2.0, 2.0]
    shout = wf.jit(lambda x: print("hello") or x + 1, background=True)
    with pytest.warns(RuntimeWarning, match="runs eagerly"):
        assert shout(wf.ones(1)).tolist() == [2.0]
