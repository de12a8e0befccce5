"""Cells: functions that are batched as a whole."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.dynamic.cell_kernels import FEW_LEFT, WIDE, width_for, width_of_rest, width_within

W = wf.tensor(np.random.default_rng(0).normal(size=(3, 3)), requires_grad=True)


def names_of(function):
    return [batch.signature.name for batch in function.plan().batches]


def compare(fn, examples):
    function = wf.batched(fn)
    found = function(examples)
    expected = [fn(x) for x in examples]
    np.testing.assert_allclose([float(x) for x in found], [float(x) for x in expected], rtol=1e-12)
    return function


def test_a_cell_is_one_operation():
    @wf.cell
    def step(h, x):
        return wf.tanh(h @ W + x)

    def last(xs):
        h = wf.zeros(3, dtype=wf.float64)
        for x in xs:
            h = step(h, wf.tensor(np.full(3, x)))
        return h.sum()

    assert names_of(compare(last, [[0.1, 0.2], [0.3, 0.4, 0.5]])).count("step") == 3


def test_arguments_may_be_nests_numbers_and_strings():
    @wf.cell
    def step(state, scale, *, kind="tanh"):
        y = (state["h"] @ W) * scale
        return {"h": wf.tanh(y) if kind == "tanh" else wf.sin(y)}

    def both(n):
        state = {"h": wf.tensor(np.full(3, n))}
        return (step(state, 2)["h"] + step(state, 3.0, kind="sin")["h"]).sum()

    assert names_of(compare(both, [1.0, 2.0])).count("step") == 2


def test_methods_and_modules_are_cells():
    class Net(wf.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = wf.nn.Linear(3, 3)

        @wf.cell
        def step(self, x):
            return wf.tanh(self.linear(x))

    net = Net()
    linear = wf.cell(net.linear)
    function = wf.batched(lambda n: linear(net.step(wf.ones(3) * n)).sum())
    together = function([1.0, 2.0])
    assert set(names_of(function)) >= {"step", "Linear"}
    assert function.plan().stats()["why not planned"] is None
    alone = [net.linear(wf.tanh(net.linear(wf.ones(3) * n))).sum() for n in (1.0, 2.0)]
    np.testing.assert_allclose([float(x) for x in together], [float(x) for x in alone], rtol=1e-5)


def test_vmap_inside_of_a_cell():
    cell = wf.cell(lambda xs: wf.vmap(lambda x: wf.tanh(x @ W))(xs).sum())
    function = compare(lambda n: cell(wf.tensor(np.full((4, 3), n))), [1.0, 2.0])
    assert names_of(function) == ["<lambda>"]


@pytest.mark.parametrize("training", [True, False])
def test_cells_that_draw_or_read_run_operation_by_operation(training):
    dropping = wf.nn.Dropout(0.5)
    dropping.train(training)

    @wf.cell
    def step(x):
        y = dropping(x @ W)
        return y if y.sum() > 0 else -y

    function = wf.batched(lambda n: step(wf.tensor(np.full(3, n))).sum())
    assert all(float(x) >= 0 for x in function([1.0, -1.0, 2.0]))
    assert "step" not in names_of(function)


def test_a_mode_that_changes_is_seen():
    class Net(wf.nn.Module):
        def forward(self, x):
            return x * 2.0 if self.training else x

    net = Net()
    cell = wf.cell(net)
    function = wf.batched(lambda n: cell(wf.tensor([n])).sum())
    assert float(function([1.0])[0]) == 2.0
    net.eval()
    assert float(function([1.0])[0]) == 1.0
    net.train()
    assert float(function([1.0])[0]) == 2.0


SCALE = 2.0


def test_a_global_that_changes_is_seen(monkeypatch):
    cell = wf.cell(lambda x: x * SCALE)
    function = wf.batched(lambda n: cell(wf.tensor([n])).sum())
    assert float(function([1.0])[0]) == 2.0
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert float(function([1.0])[0]) == 5.0


def test_an_error_in_a_cell_is_the_functions_own():
    cell = wf.cell(lambda x: x @ W)
    with pytest.raises(ValueError, match="matmul") as caught:
        wf.batched(lambda n: cell(wf.ones(n)))([3, 4])
    assert "example 1 of 2" in caught.value.__notes__[0]


def test_outside_of_batching_a_cell_is_the_function():
    cell = wf.cell(lambda x: x * 2.0)
    assert cell(wf.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="a function is needed"):
        wf.cell(3)


def test_widths_are_few_and_near():
    widths = {width_for(n) for n in range(1, 5000)}
    assert len(widths) < 90
    assert all(n <= width_for(n) <= 1.13 * n + 1 for n in range(1, 5000))


def test_a_batch_is_taken_in_widths_that_there_are():
    for n in range(1, 5000):
        width = width_within(n)
        assert 0.88 * n < width <= n
        assert n == 1 or width_for(width) == width


@pytest.mark.parametrize("count", [WIDE - 1, WIDE, WIDE + 45])
def test_weights_of_wide_batches(count):
    rng = np.random.default_rng(count)
    weight = wf.tensor(rng.normal(size=(64, 64)), requires_grad=True)
    rows = rng.normal(size=(count, 64))

    @wf.cell
    def step(x):
        return wf.tanh(x @ weight)

    total = wf.batched(lambda x: step(step(wf.tensor(x))).sum(), reduce="sum")(list(rows))
    (found,) = wf.gradients([total], [weight])
    expected = wf.tanh(wf.tanh(wf.tensor(rows) @ weight) @ weight).sum()
    np.testing.assert_allclose(total.item(), expected.item(), rtol=1e-12)
    (other,) = wf.gradients([expected], [weight])
    np.testing.assert_allclose(found.numpy(), other.numpy(), rtol=1e-9)


def test_what_is_left_of_batches_has_few_widths():
    widths = [width_of_rest(n) for n in range(1, 2 * FEW_LEFT)]
    assert all(n <= width for n, width in enumerate(widths, 1))
    assert len({*widths[:FEW_LEFT]}) == 7  # 2, 4, 8 and so on
    assert widths[FEW_LEFT:] == [width_for(n) for n in range(FEW_LEFT + 1, 2 * FEW_LEFT)]


def test_first_steps_run_by_the_code_of_the_others(monkeypatch):
    weight = wf.tensor(np.random.default_rng(1).normal(size=(64, 64)) / 8, requires_grad=True)
    step = wf.cell(lambda h, x: wf.tanh(h @ weight + x))

    def last(xs):
        h = wf.zeros(64, dtype=wf.float64)  # of which no gradient is wanted
        for x in xs:
            h = step(h, wf.tensor(np.full(64, x)))
        return (h**2).sum()

    examples = [[0.1, 0.2, 0.3], [0.4, 0.5], [0.6, 0.7, 0.8, 0.9]]
    (expected,) = wf.gradients(wf.stack([last(xs) for xs in examples]).mean(), [weight])
    mean = wf.batched(last, reduce="mean")
    for _ in range(3):
        (found,) = wf.gradients(mean(examples), [weight])
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-10)
    (kernel,) = [s.kernel for s in mean._table.all if s.name == "<lambda>"]
    assert len(kernel._code) == 1
    monkeypatch.setattr(wf.config, "nan_trap", True)
    mean(examples)
    assert len(kernel._code) == 3  # with zeros and without, of which data have no gradients
