"""Saving and restoring optimizers."""

import json

import numpy as np
import pytest

import weft as wf
from tests.optim.parameters import leaf, with_grad
from weft import optim
from weft.core.tensor import Tensor
from weft.optim import executor


def plain_copy(state):
    """Return a state as a checkpoint would bring it back: JSON and arrays."""
    if isinstance(state, dict):
        return {str(k): plain_copy(v) for k, v in state.items()}
    if isinstance(state, (list, tuple)):
        return [plain_copy(v) for v in state]
    return np.array(state) if isinstance(state, Tensor) else json.loads(json.dumps(state))


MAKERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "Adagrad": optim.Adagrad,
    "Adadelta": optim.Adadelta,
    "RMSprop": lambda p: optim.RMSprop(p, momentum=0.9, centered=True),
    "Adam": lambda p: optim.Adam(p, amsgrad=True),
    "AdamW": optim.AdamW,
    "Amsgrad": optim.Amsgrad,
    "Adamax": optim.Adamax,
    "NAdam": optim.NAdam,
    "RAdam": lambda p: optim.RAdam(p, betas=(0.9, 0.9)),
    "Lion": optim.Lion,
    "LAMB": optim.LAMB,
    "Eve": optim.Eve,
    "LBFGS": lambda p: optim.LBFGS(p, max_iter=2, line_search_fn="strong_wolfe"),
}


def train(optimizer, params, steps, seed):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        targets = [wf.tensor(np.asarray(rng.normal(size=p.shape), np.float32)) for p in params]

        def closure(targets=targets):
            optimizer.zero_grad()
            pairs = zip(params, targets, strict=True)
            loss = sum(((p - t) ** 2).sum() for p, t in pairs) + 0.1
            loss.backward()
            return loss

        optimizer.step(closure)


def parameters():
    rng = np.random.default_rng(9)
    values = [np.asarray(rng.normal(size=s), np.float32) for s in ((2, 3), (4,), ())]
    return [wf.tensor(value, requires_grad=True) for value in values]


@pytest.mark.parametrize("name", MAKERS)
def test_resumed_training_is_the_same_bit_for_bit(name):
    straight = parameters()
    optimizer = MAKERS[name](straight)
    train(optimizer, straight, 5, seed=1)
    saved = plain_copy(optimizer.state_dict())
    resumed = [wf.tensor(np.array(p.detach()), requires_grad=True) for p in straight]
    train(optimizer, straight, 5, seed=2)
    other = MAKERS[name](resumed)
    other.load_state_dict(saved)
    train(other, resumed, 5, seed=2)
    assert other.t == optimizer.t == 10
    for a, b in zip(straight, resumed, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_state_is_a_copy(monkeypatch):
    monkeypatch.setattr(executor, "BLOCK", 2)
    w = with_grad([1.0] * 6, [1.0] * 6)
    optimizer = optim.Adam([w])
    optimizer.step()
    saved = optimizer.state_dict()
    before = saved["state"]["0"]["exp_avg"].tolist()
    optimizer.step()
    assert saved["state"]["0"]["exp_avg"].tolist() == before
    optimizer.load_state_dict(saved)
    optimizer.step()
    assert saved["state"]["0"]["exp_avg"].tolist() == before


def test_hyperparameters_come_back_from_json():
    w = with_grad([1.0], [1.0])
    optimizer = optim.Adam([("w", w)], lr=0.3, betas=(0.5, 0.6))
    optimizer.step()
    other = optim.Adam([("w", leaf(1.0))])
    other.load_state_dict(plain_copy(optimizer.state_dict()))
    assert other.param_groups[0]["betas"] == (0.5, 0.6)
    assert other.param_groups[0]["lr"] == 0.3


def test_bad_states_change_nothing():
    w = with_grad([1.0], [1.0])
    optimizer = optim.Adam([w], lr=0.1)
    optimizer.step()
    good = optimizer.state_dict()
    other = optim.Adam([leaf(1.0)], lr=0.2)
    wrong_shape = {**good, "state": {"0": {"step": 1, "exp_avg": np.zeros(3)}}}
    two_groups = {**good, "param_groups": good["param_groups"] * 2}
    bad = [
        ({}, TypeError, "'param_groups'"),
        (None, TypeError, "Received: None"),
        (two_groups, ValueError, r"groups of \[1\] parameters; the state has groups of \[1, 1\]"),
        (wrong_shape, ValueError, r"has shape \(1,\); its saved 'exp_avg' has \(3,\)"),
        ({**good, "state": {"7": {}}}, ValueError, "parameter 7 of only 1"),
    ]
    for state, error, message in bad:
        with pytest.raises(error, match=message):
            other.load_state_dict(state)
    assert other.state == {}
    assert other.param_groups[0]["lr"] == 0.2


def test_state_of_another_precision_is_converted():
    w = wf.tensor(np.array([1.0]), requires_grad=True)
    w.grad = wf.tensor(np.array([1.0]))
    optimizer = optim.Adam([w])
    optimizer.step()
    v = with_grad([1.0], [1.0])
    other = optim.Adam([v])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[v]["exp_avg"].dtype == np.float32
