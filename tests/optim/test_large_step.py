"""Updates of large models by machine code: when it is made, and when it is not."""

import copy
import pickle

import numpy as np
import pytest

import weft as wf
from weft import optim
from weft.optim import eager_step, large_step
from weft.optim import transform as tx


@pytest.fixture
def made(monkeypatch):
    """Let all models be large; count the programs."""
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


def test_parameters_of_a_group_have_one_program(made):
    ws = [parameter() for _ in range(5)]
    optimizer = optim.Adam(ws, lr=0.1)
    for _ in range(3):
        optimizer.step()
    assert len(made) == 1
    for w in ws:
        np.testing.assert_array_equal(w.detach().numpy(), expected(lambda *_: None, 3))


def test_parameters_may_be_without_a_gradient_now_and_then(made):
    ws = [parameter() for _ in range(3)]
    optimizer = optim.Adam(ws, lr=0.1)
    for i in range(6):
        ws[0].grad = None if i % 2 else wf.tensor(np.linspace(1, 2, 7, dtype=np.float32))
        optimizer.step()
    assert len(made) == 2
    np.testing.assert_array_equal(ws[0].detach().numpy(), expected(lambda *_: None, 3))
    np.testing.assert_array_equal(ws[1].detach().numpy(), expected(lambda *_: None, 6))


def test_few_programs_are_kept(made):
    ws = [parameter() for _ in range(large_step.MOST_STEPS + 3)]
    optimizer = optim.SGD(ws, lr=0.1)
    for w in ws:
        w.grad, before = None, w.grad
        optimizer.step()
        w.grad = before
    assert len(optimizer._large_steps) == large_step.MOST_STEPS


def test_values_from_before_a_step_stay(made):
    w = parameter()
    optimizer = optim.SGD([w], lr=0.1, momentum=0.5)
    optimizer.step()
    held = w.detach()
    before = held.numpy().copy()
    optimizer.step()
    np.testing.assert_array_equal(held.numpy(), before)


def test_numpy_updates_where_no_machine_code_is_wanted(made, monkeypatch):
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    optim.SGD([parameter()], lr=0.1).step()
    assert not made


def test_each_group_has_a_program(made):
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


def test_scalings_of_users_may_change_and_are_not_compiled(made):
    class Halving(optim.Adam):
        factor = 0.5

        def scaling(self, group):
            return tx.scale(self.factor)

    w = parameter()
    optimizer = Halving([w], lr=1.0)
    before = w.detach().numpy().copy()
    optimizer.step()
    optimizer.factor = 0.25
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


@pytest.mark.parametrize("make", [optim.Adagrad, optim.Adam, optim.RMSprop, optim.SGD])
def test_parameters_without_dimensions_are_updated_by_turns(made, make):
    ws = [wf.tensor(np.float32(0.5), requires_grad=True) for _ in range(2)]
    optimizers = [make([w], lr=0.1) for w in ws]
    for i in range(4):
        for w, optimizer in zip(ws, optimizers, strict=True):
            w.grad = wf.tensor(np.float32(i - 1.5))
            eager_step.LARGE = 1 if w is ws[0] and i % 2 else 1 << 30
            optimizer.step()
    assert len(made) == 1
    np.testing.assert_array_equal(*(w.detach().numpy() for w in ws))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_an_optimizer_update_their_own_parameters(made, copied):
    w = parameter()
    optimizer = optim.SGD([w], lr=0.1)
    optimizer.step()
    other, twin = copied((optimizer, w))
    twin.grad = w.grad
    before = w.detach().numpy().copy()
    other.step()
    assert len(made) == 2
    np.testing.assert_array_equal(w.detach().numpy(), before)
    assert not np.array_equal(twin.detach().numpy(), before)
