"""step.source() is a NumPy program that does what a compiled step does."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, GraphError

F = wf.nn.functional


def run(text, name, *given):
    scope = {}
    exec(text, scope)
    return scope[name](*given)


class Training:
    """A small network and its step."""

    def __init__(self):
        wf.manual_seed(0)
        self.net = wf.nn.Sequential(wf.nn.Linear(4, 8), wf.nn.Tanh(), wf.nn.Linear(8, 3))
        self.optimizer = wf.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        self.x, self.y = wf.randn(5, 4), wf.tensor([0, 1, 2, 1, 0])

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.net(x), y)
        loss.backward()
        self.optimizer.step()
        return {"loss": loss, "number": loss.item()}


def test_a_step_and_its_new_states():
    training = Training()
    step = wf.jit(training.step)
    step(training.x, training.y)
    text, before = step.source(training.x, training.y), step.states(training.x, training.y)
    assert "weft" not in text
    result, new = run(text, "step", training.x.numpy(), training.y.numpy(), before)
    found = step(training.x, training.y)
    assert result["loss"] == pytest.approx(found["loss"].item(), rel=1e-6)
    assert result["number"] == pytest.approx(found["number"], rel=1e-6)
    after = step.states(training.x, training.y)
    assert len(new.keys() & after.keys()) == 13  # parameters, momenta and counts of steps
    for name in new.keys() & after.keys():
        np.testing.assert_allclose(new[name], after[name], rtol=1e-5, atol=1e-6, err_msg=name)
    (weight, *_) = training.net.parameters()
    name = next(k for k in new if k.endswith("0/weight.grad"))
    np.testing.assert_allclose(new[name], weight.grad.numpy(), rtol=1e-5, atol=1e-7)


def test_it_needs_numpy_alone(tmp_path):
    step = wf.jit(lambda x: wf.softmax(x, axis=0).cumsum(axis=0))
    path = tmp_path / "program.py"
    path.write_text(step.source(wf.ones(4)) + "print(program(np.ones(4, np.float32), {})[0])\n")
    done = subprocess.run(
        [sys.executable, "-I", str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[0.25 0.5  0.75 1.  ]"


def test_nothing_is_run_or_changed():
    training = Training()
    step = wf.jit(training.step)
    before = [p.numpy().copy() for p in training.net.parameters()]
    step.source(training.x, training.y)
    assert step.stats()["recordings"] == 0
    for p, kept in zip(training.net.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.numpy(), kept)


def test_loops_of_python_are_loops_and_paths_are_checked():
    @wf.jit
    def f(x):
        if x.sum() > 0:
            for _ in range(16):
                x = wf.sin(x) * 2
        return x

    given = wf.tensor([1.0, 2.0])
    text = f.source(given)
    assert "for _ in range(16):" in text
    np.testing.assert_allclose(run(text, "f", given.numpy(), {})[0], f(given).numpy(), rtol=1e-5)
    with pytest.raises(IndexError):
        run(text, "f", -given.numpy(), {})


def test_compiled_ahead_of_time():
    w = wf.tensor([1.0, 2.0])

    def f(x):
        w.assign(w * x)
        return x + w, [x]

    step = wf.compile(f, wf.ones(2))
    result, new = run(step.source(), "f", np.float32([3, 4]), step.states())
    assert [result[0].tolist(), result[1][0].tolist()] == [[6.0, 12.0], [3.0, 4.0]]
    assert [value.tolist() for value in new.values()] == [[3.0, 8.0]]


def test_what_has_no_text_is_named():
    with pytest.raises(ArgumentError, match="random_dropout cannot be written"):
        wf.jit(F.dropout).source(wf.ones(4))
    with pytest.raises(GraphError, match="returns its argument 0"):
        wf.jit(lambda x: (x, x + 1)).source(wf.ones(4))
