"""Saving and restoring optimizers."""

import json
import re

import numpy as np
import pytest

import weft as wf
from tests.optim.parameters import leaf, with_grad
from weft import optim
from weft.core.errors import ArgumentError
from weft.core.tensor import Tensor
from weft.optim import eager_step


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
    "ASGD": lambda p: optim.ASGD(p, t0=2),
    "Rprop": optim.Rprop,
    "Adafactor": optim.Adafactor,
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
    monkeypatch.setattr(eager_step, "LARGE", 2)
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


# -- states of PyTorch ---------------------------------------------------------------------------


class Foreign:
    """A tensor of another framework, which NumPy can read."""

    def __init__(self, value):
        self._value = value

    def __array__(self, dtype=None, copy=None):
        return np.array(self._value, dtype)


EXECUTION = {"foreach": None, "fused": None, "capturable": False, "differentiable": False}


def foreign(optimizer, *, step=True):
    """Return a state as PyTorch's optimizer of the same name has it."""
    state = optimizer.state_dict()
    slots = {
        int(number): {
            re.sub(r"_\d$", "", name): Foreign(np.asarray(value, np.float32))
            for name, value in found.items()
            if (step and name == "step") or not name.startswith("step")
        }
        for number, found in state["state"].items()
    }
    groups = [
        {n: v for n, v in group.items() if n not in ("lr_mult", "decay_mult")} | EXECUTION
        for group in state["param_groups"]
    ]
    return {"state": slots, "param_groups": groups}


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "Adamax"])
def test_state_of_pytorch_continues_the_same(name):
    options = {
        "SGD": {"momentum": 0.9, "dampening": 0.5},
        "RMSprop": {"momentum": 0.9, "centered": True},
        "Adam": {"amsgrad": True},
    }.get(name, {})
    straight = parameters()
    optimizer = getattr(optim, name)(straight, lr=0.01, **options)
    train(optimizer, straight, 3, seed=1)
    saved = foreign(optimizer, step=name != "SGD")
    resumed = [wf.tensor(np.array(p.detach()), requires_grad=True) for p in straight]
    train(optimizer, straight, 2, seed=2)
    other = getattr(optim, name)(resumed, lr=0.5)
    other.load_state_dict(saved)
    assert other.t == (1 if name == "SGD" else 3)
    assert set(other.param_groups[0]) == set(optimizer.param_groups[0])
    train(other, resumed, 2, seed=2)
    for a, b in zip(straight, resumed, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6)


def test_state_that_fits_another_optimizer_says_what_differs():
    w = with_grad([1.0, 2.0], [1.0, 1.0])
    adam = optim.Adam([w])
    adam.step()
    other = optim.RMSprop([leaf(1.0, 2.0)])
    with pytest.raises(ArgumentError, match="no hyperparameter 'betas'"):
        other.load_state_dict(adam.state_dict())
    plain = {**other.state_dict(), "state": {"0": {"exp_inf": np.zeros(2)}}}
    with pytest.raises(ArgumentError, match=r"keeps 'step', 'square_avg'.*0 has 'exp_inf'"):
        other.load_state_dict(plain)
    for slots, message in (
        ({"step": np.ones(2)}, r"'step' has \(2,\), but should be a number"),
        ({"step": "three"}, "'step' must be a number. Received: 'three'"),
        ({"square_avg": 3.0}, r"'square_avg' has \(\)"),
        ([1.0], r"parameter 0 must be a dictionary. Received: \[1.0\]"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            other.load_state_dict({**other.state_dict(), "state": {"0": slots}})
    with pytest.raises(ArgumentError, match=r"numbers parameters. Received: 'weight'"):
        other.load_state_dict({**other.state_dict(), "state": {"weight": {}}})
    assert other.state == {}


def test_state_of_pytorchs_lbfgs_is_refused():
    other = optim.LBFGS([leaf(1.0)])
    state = {**other.state_dict(), "state": {0: {"func_evals": 3, "n_iter": 2}}}
    with pytest.raises(ArgumentError, match=r"one history .*Received: \{0: \{'func_evals'"):
        other.load_state_dict(state)
    with pytest.raises(ArgumentError, match=r"one history .*Received: \['old_dirs'\]"):
        other.load_state_dict({**other.state_dict(), "history": {"old_dirs": []}})


def test_state_of_pytorch_that_lacks_a_slot_is_refused():
    w = with_grad([1.0, 2.0], [1.0, 1.0])
    optimizer = optim.Adam([w])
    optimizer.step()
    saved = foreign(optimizer)
    del saved["state"][0]["exp_avg_sq"]
    with pytest.raises(ArgumentError, match=r"keeps .*'exp_avg_sq'.*has 'step', 'exp_avg'$"):
        optimizer.load_state_dict(saved)


def test_state_lacks_what_an_option_added_later():
    w = with_grad([1.0, 2.0], [1.0, 1.0])
    optimizer = optim.Adam([w])
    optimizer.step()
    optimizer.param_groups[0]["amsgrad"] = True
    v = with_grad([1.0, 2.0], [1.0, 1.0])
    other = optim.Adam([v])
    other.load_state_dict(optimizer.state_dict())
    other.step()
    assert other.state[v]["step"] == 2


def test_slots_of_an_option_that_was_switched_off_come_back():
    w = with_grad([1.0, 2.0], [1.0, 1.0])
    optimizer = optim.SGD([w], lr=0.1, momentum=0.9)
    optimizer.step()
    optimizer.param_groups[0]["momentum"] = 0.0
    v = with_grad([1.0, 2.0], [1.0, 1.0])
    other = optim.SGD([v], lr=0.1)
    other.load_state_dict(optimizer.state_dict())
    other.step()
    assert other.state[v]["momentum_buffer"].tolist() == [1.0, 1.0]
