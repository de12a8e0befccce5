"""Updates of very large parameters by machine code: when it is made, and when it is not."""

import numpy as np
import pytest

import weft as wf
from weft import optim
from weft.optim import eager_step, large_step
from weft.optim import transform as tx


@pytest.fixture
def made(monkeypatch):
    """Let all parameters be very large; count the programs."""
    monkeypatch.setattr(eager_step, "LARGE", 1)
    found, real = [], large_step._compiled

    def counted(*args):
        found.append(args)
        return real(*args)

    monkeypatch.setattr(large_step, "_compiled", counted)
    return found


def parameter():
    w = wf.tensor(np.linspace(-1, 1, 7, dtype=np.float32), requires_grad=True)
    w.grad = wf.tensor(np.linspace(1, 2, 7, dtype=np.float32))
    return w


def expected(change, steps):
    """Return where NumPy ends."""
    w = parameter()
    optimizer = optim.Adam([w], lr=0.1)
    for i in range(steps):
        change(optimizer, i)
        eager_step.LARGE, before = 1 << 30, eager_step.LARGE
        optimizer.step()
        eager_step.LARGE = before
    return w.detach().numpy()


def set_rate(optimizer, i):
    optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)


def set_betas(optimizer, i):
    optimizer.param_groups[0]["betas"] = (0.9, 0.99 if i < 2 else 0.9)


@pytest.mark.parametrize(("change", "programs"), [(set_rate, 1), (set_betas, 2)])
def test_settings_may_change(made, change, programs):
    w = parameter()
    optimizer = optim.Adam([w], lr=0.1)
    for i in range(5):
        change(optimizer, i)
        optimizer.step()
    assert len(made) == programs
    np.testing.assert_array_equal(w.detach().numpy(), expected(change, 5))


def test_each_parameter_has_a_program(made):
    ws = [parameter(), parameter()]
    optimizer = optim.SGD([{"params": ws[:1]}, {"params": ws[1:], "lr": 0.5}], momentum=0.9)
    for _ in range(3):
        optimizer.step()
    assert len(made) == 2
    assert not np.array_equal(*(w.detach().numpy() for w in ws))


def test_rules_of_users_may_change_and_are_not_compiled(made):
    rate = [0.5]
    w = parameter()
    optimizer = optim.TransformOptimizer([w], lambda group: tx.scale(-rate[0]))
    before = w.detach().numpy().copy()
    optimizer.step()
    rate[0] = 0.25
    optimizer.step()
    assert not made
    np.testing.assert_allclose(w.detach().numpy(), before - 0.75 * w.grad.numpy(), rtol=1e-6)


def test_rules_over_layers_and_losses_are_not_compiled(made):
    for make in (optim.LAMB, optim.Eve):
        w = parameter()
        make([w], lr=0.1).step(loss=wf.tensor(1.0))
    assert not made


def test_looking_for_nan_goes_by_numpy(made):
    with wf.detect_anomaly():
        optim.SGD([parameter()], lr=0.1).step()
    assert not made
