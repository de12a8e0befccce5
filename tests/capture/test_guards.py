"""What a compiled function reads of Python's is looked at in every call."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.draw_rows import DrawRows, drawing_rows
from weft.core.errors import GraphError

X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


class Noisy(wf.nn.Module):
    """Asks for its mode in a method of its own, and counts how often it is traced."""

    def __init__(self):
        super().__init__()
        self.drop = wf.nn.Dropout(0.5)
        self.calls = 0

    def add(self, x):
        self.calls += 1
        return self.drop(x) + (1 if self.training else 0)


def test_a_changed_mode_is_compiled_anew_and_once():
    noisy = Noisy()
    compiled = wf.compile(noisy.add, wf.ones(50))
    for _ in range(2):
        noisy.eval()
        np.testing.assert_array_equal(compiled(wf.ones(50)).numpy(), np.ones(50))
        noisy.train()
        assert set(compiled(wf.ones(50)).numpy()) == {1.0, 3.0}
        noisy.drop.eval()
        np.testing.assert_array_equal(compiled(wf.ones(50)).numpy(), np.full(50, 2.0))
    assert noisy.calls == 3


def test_a_mode_that_the_function_sets_itself_is_compiled_once():
    noisy = Noisy()

    def evaluated(x):
        noisy.eval()
        y = noisy.add(x)
        noisy.train()
        return y

    compiled = wf.compile(evaluated, wf.ones(50))
    for _ in range(3):
        np.testing.assert_array_equal(compiled(wf.ones(50)).numpy(), np.ones(50))
    assert noisy.calls == 1


def test_statistics_stand_still_in_evaluation():
    norm = wf.nn.BatchNorm1d(3)
    compiled = wf.compile(norm, X)
    compiled(X)
    kept = norm.running_mean.numpy().copy()
    norm.eval()
    found = compiled(X)
    np.testing.assert_array_equal(norm.running_mean.numpy(), kept)
    np.testing.assert_allclose(found.numpy(), norm(wf.tensor(X)).detach().numpy(), rtol=1e-5)


def test_parameters_that_are_frozen_or_added_later():
    v, w = (wf.nn.Parameter(wf.tensor(1.0)) for _ in range(2))
    optimizer = wf.optim.SGD([v], lr=0.25)
    step = wf.compile(lambda: optimizer.minimize(2 * v + 2 * w))
    step()
    assert (float(v), float(w)) == (0.5, 1.0)
    optimizer.add_param_group({"params": [w]})
    step()
    assert (float(v), float(w)) == (0.0, 0.5)
    v.requires_grad_(False)
    step()
    assert (float(v), float(w)) == (0.0, 0.0)


def test_the_learning_rate_is_a_number_of_the_call():
    v = wf.nn.Parameter(wf.tensor(0.0))
    optimizer = wf.optim.SGD([v], lr=1.0)
    step = wf.compile(lambda: optimizer.minimize(v * 1))
    made = step.executable
    for rate in (0.5, 0.25):
        optimizer.param_groups[0]["lr"] = rate
        step()
    assert float(v) == -0.75
    assert step.executable is made


def test_other_settings_of_an_optimizer_are_not_stale():
    v = wf.nn.Parameter(wf.tensor(0.0))
    optimizer = wf.optim.SGD([v], lr=1.0, momentum=0.5)
    step = wf.compile(lambda: optimizer.minimize(v * 1))
    step()
    optimizer.param_groups[0]["momentum"] = 0.25
    step()
    assert float(v) == -1 - (0.25 + 1)  # read anew, as the learning rate is
    optimizer.param_groups[0]["momentum"] = 0.0  # a rule without velocity
    with pytest.raises(GraphError, match=r"momentum of group 0 was 0\.5"):
        step()


def test_the_default_dtype(monkeypatch):
    compiled = wf.compile(lambda x: wf.zeros(2) + x, wf.ones(2, dtype=wf.float32))
    assert compiled(np.ones(2, np.float32)).dtype == wf.float32
    monkeypatch.setattr(wf.config, "default_float", "float64")
    assert compiled(np.ones(2, np.float32)).dtype == wf.float64


def test_no_grad_matters_only_where_gradients_are_taken():
    v = wf.nn.Parameter(wf.tensor(2.0))
    plain = wf.compile(lambda x: x * v, wf.ones(2))
    made = plain.executable
    with wf.no_grad():
        plain(wf.ones(2))
    assert plain.executable is made
    slope = wf.compile(lambda x: wf.gradients((x * v).sum(), [v]), wf.ones(2))
    assert float(slope(wf.ones(2))[0]) == 2.0
    with wf.no_grad():
        assert slope(wf.ones(2)) == [None]


@pytest.mark.parametrize("make", [wf.jit, lambda f: wf.compile(f, wf.zeros(2, 4))])
def test_draws_are_of_the_rows_that_a_call_has(make):
    """Processes and virtual shards draw their own rows, of calls that look alike."""

    def noisy(x):
        return x + wf.rand(2, 4)

    fast = make(noisy)
    for index in (None, 0, 1, 0, None):
        with drawing_rows(None if index is None else DrawRows(index, 2, 2)):
            found = []
            for f in (noisy, fast):
                wf.manual_seed(5)
                found.append(f(wf.zeros(2, 4)).numpy())
        np.testing.assert_array_equal(*found)
