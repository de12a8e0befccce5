"""Gradients of small batches, accumulated to that of a large one."""

import numpy as np
import pytest

import weft as wf
from tests.optim.parameters import leaf
from weft import optim


def squared_error(w, rows):
    return ((wf.tensor(rows) @ w - 1.0) ** 2).mean()


@pytest.mark.parametrize("name", ["SGD", "Adam", "Eve"])
def test_small_batches_make_the_step_of_a_large_one(name):
    rows = np.random.default_rng(0).normal(size=(5, 8, 3))
    w, v = leaf(1, 2, 3, dtype=np.float64), leaf(1, 2, 3, dtype=np.float64)
    whole = getattr(optim, name)([w], lr=0.1)
    accumulator = optim.GradientAccumulator(getattr(optim, name)([v], lr=0.1), steps=4)
    for batch in rows:
        whole.minimize(squared_error(w, batch))
        stepped = [accumulator.minimize(squared_error(v, part)) for part in np.split(batch, 4)]
        assert stepped == [False, False, False, True]
    np.testing.assert_allclose(w.detach().numpy(), v.detach().numpy(), rtol=1e-10)


def test_a_round_cut_short_is_a_mean_too():
    w = leaf(0.0)
    accumulator = optim.GradientAccumulator(optim.SGD([w], lr=1.0), steps=4)
    assert not accumulator.flush()
    accumulator.minimize((w * 2.0).sum())
    accumulator.minimize((w * 4.0).sum())
    assert accumulator.flush()
    assert w.item() == -3.0
    assert not accumulator.flush()


def test_accumulation_resumes_within_a_round():
    w = leaf(0.0)
    accumulator = optim.GradientAccumulator(optim.SGD([w], lr=1.0), steps=2)
    accumulator.minimize((w * 2.0).sum())
    saved = accumulator.state_dict()
    v = leaf(0.0)
    other = optim.GradientAccumulator(optim.SGD([v], lr=1.0), steps=2)
    other.load_state_dict(saved)
    for one, x in ((accumulator, w), (other, v)):
        assert one.minimize((x * 4.0).sum())
    assert w.item() == v.item() == -3.0


def test_accumulation_with_loss_scaling():
    w = leaf(0.0)
    optimizer = optim.SGD([w], lr=1.0)
    optim.LossScaler(optimizer, 8.0)
    accumulator = optim.GradientAccumulator(optimizer, steps=2)
    accumulator.minimize((w * 2.0).sum())
    accumulator.minimize((w * 4.0).sum())
    assert w.item() == -3.0


@pytest.mark.parametrize("steps", [0, -1, 1.5, True])
def test_bad_number_of_steps(steps):
    with pytest.raises(ValueError, match="positive integer"):
        optim.GradientAccumulator(optim.SGD([leaf(1.0)]), steps)
