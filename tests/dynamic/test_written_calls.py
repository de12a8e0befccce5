"""Calls of cells that are put off by functions written for their form."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.dynamic.written_calls import CallForm, written_call

W = wf.tensor(np.random.default_rng(0).normal(size=(3, 3)), requires_grad=True)


@wf.cell
def step(x, state):
    h, c = state
    h = wf.tanh(h @ W + x)
    return h, c + h


@wf.cell
def cost(h):
    return (h**2).sum()


def zeros():
    return wf.zeros(3, dtype=wf.float64)


def compare(fn, examples, **options):
    found = wf.batched(fn, **options)(examples)
    expected = [fn(x) for x in examples]
    np.testing.assert_allclose([float(x) for x in found], [float(x) for x in expected], rtol=1e-12)


def test_the_text_says_what_is_known_of_a_form():
    names = written_call(
        CallForm((None, 2), (5, 6, 6), 9, (6, 6), False, False)
    ).__code__.co_varnames
    assert {"x0", "x1_0", "x1_1", "y0", "y1"} <= {*names}


def test_chains_of_calls_are_as_deep_as_they_are():
    def last(n):
        state = zeros(), zeros()
        for i in range(n):
            state = step(wf.tensor(np.full(3, float(i))), state)
        return cost(state[1])

    compare(last, [1, 3, 5, 2])


def test_other_forms_of_a_cell_are_put_off_too():
    def mixed(n):
        x, state = wf.tensor(np.full(3, n)), [zeros(), zeros()]
        state = step(x, state)  # a list
        state = step(x, state)  # a tuple
        state = step(x, (state[0], zeros()))
        return cost(step(W[0], state)[0]) + cost(step(np.full(3, n), state)[1])

    compare(mixed, [1.0, 2.0, 3.0])


def test_without_gradients_none_are_recorded():
    def both(n):
        state = step(wf.tensor(np.full(3, n)), (zeros(), zeros()))
        state = step(wf.tensor(np.full(3, n)), state)
        with wf.no_grad():
            quiet = cost(step(wf.tensor(np.full(3, n)), state)[0])
        return quiet + cost(state[0])

    (g,) = wf.gradients(wf.batched(both, reduce="sum")([1.0, 2.0]), [W])
    (expected,) = wf.gradients(both(1.0) + both(2.0), [W])
    np.testing.assert_allclose(g.numpy(), expected.numpy(), rtol=1e-12)


def test_what_nobody_reads_waits_while_values_are_read():
    def reading(n):
        state, total = (zeros(), zeros()), zeros().sum()
        for _ in range(n):
            state = step(wf.ones(3, dtype=wf.float64), state)
            total = total + cost(state[1])
            if state[0].sum() > 2.9:
                break
        return total

    compare(reading, [2, 6, 4])
    compare(reading, [2, 6, 4], errors="collect")


def test_values_of_another_run_are_data():
    inner = wf.batched(lambda n: step(wf.tensor(np.full(3, n)), (zeros(), zeros()))[0])

    def outer(n):
        (h,) = inner([n])
        return cost(step(h, (h, step(h, (h, h))[1]))[0])

    compare(outer, [1.0, 2.0])


@pytest.mark.parametrize("count", [1, 2])
def test_a_parameter_that_is_written_counts_from_then_on(count):
    scale = wf.tensor(np.ones(3), requires_grad=True)
    cell = wf.cell(lambda x: x * scale)

    def changing(n):
        x = cell(cell(wf.tensor(np.full(3, n))))
        with wf.no_grad():
            scale.mul_(2.0)
        return cell(cell(x)).sum()

    found = [float(x) for x in wf.batched(changing)([1.0] * count)]
    assert found == [12.0 * 16.0**i for i in range(count)]
