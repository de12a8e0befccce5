"""Losses that are scaled so that small gradients survive half precision."""

import numpy as np
import pytest

import weft as wf
from tests.optim.parameters import leaf
from weft import optim


def test_scaled_training_is_the_same():
    w, v = leaf(1.0, 2.0), leaf(1.0, 2.0)
    plain, scaled = optim.Adam([w]), optim.Adam([v])
    optim.LossScaler(scaled, 1024.0)
    for _ in range(5):
        plain.minimize((w**4).sum())
        scaled.minimize((v**4).sum())
    np.testing.assert_array_equal(w.detach().numpy(), v.detach().numpy())


def test_scale_falls_and_rises():
    w = leaf(1.0)
    optimizer = optim.SGD([w], lr=0.1)
    scaler = optim.LossScaler(optimizer, 8.0, interval=2)
    w.grad = wf.tensor([np.inf])
    optimizer.step()
    assert (w.item(), optimizer.t, scaler.factor, scaler.skipped) == (1.0, 0, 4.0, 1)
    for _ in range(2):
        w.grad = wf.tensor([0.0])
        optimizer.step()
    assert scaler.factor == 8.0
    other = optim.LossScaler(optim.SGD([leaf(1.0)]))
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()


def test_hooks_see_unscaled_gradients():
    w, seen = leaf(1.0), []
    optimizer = optim.SGD([w], lr=0.1)
    optim.LossScaler(optimizer, 1024.0)
    optimizer.register_step_pre_hook(lambda o: seen.append(w.grad.item()))
    optimizer.minimize((3.0 * w).sum())
    assert seen == [3.0]


@pytest.mark.parametrize("options", [{"scale": 0.0}, {"growth": 0.5}, {"backoff": 2.0}])
def test_bad_scaling_options(options):
    with pytest.raises(ValueError, match="LossScaler needs"):
        optim.LossScaler(optim.SGD([leaf(1.0)]), **options)


def test_recorded_steps_scale_as_eager_ones():
    runs = []
    for record in (lambda f: f, wf.jit):
        w = leaf(1.0)
        optimizer = optim.SGD([w], lr=0.1)
        scaler = optim.LossScaler(optimizer, 8.0, interval=2)
        step = record(lambda x, w=w, o=optimizer: o.minimize((w * x).sum()))
        seen = []
        for x in (1.0, np.inf, 2.0, 3.0, np.nan, 1.0, 1.0, 1.0):
            step(wf.tensor([x]))
            seen.append((w.item(), optimizer.t, scaler.state_dict()))
        runs.append(seen)
    assert runs[0] == runs[1]
    assert runs[0][-1][2] == {"factor": 8.0, "good_steps": 1, "skipped": 2}
