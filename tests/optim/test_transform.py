"""Transforms: pure, polymorphic, composable."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from weft.core.errors import ArgumentTypeError
from weft.optim import scaling
from weft.optim import transform as tx

RULES = {
    "adam": lambda: scaling.scale_by_adam(amsgrad=True),
    "adamax": scaling.scale_by_adamax,
    "nadam": scaling.scale_by_nadam,
    "radam": lambda: scaling.scale_by_radam(b2=0.9),
    "rss": lambda: scaling.scale_by_rss(lr_decay=0.1),
    "adadelta": scaling.scale_by_adadelta,
    "rms": lambda: scaling.scale_by_rms(centered=True),
    "lion": scaling.scale_by_lion,
    "trust": scaling.scale_by_trust_ratio,
    "trace": lambda: tx.trace(0.9, dampening=0.1, nesterov=True),
    "scale": lambda: tx.scale(-0.1),
    "decay": lambda: tx.add_decayed_weights(0.1),
    "signs": lambda: tx.add_decayed_signs(0.1),
    "schedule": lambda: tx.scale_by_schedule(lambda t: 1.0 / (1.0 + t)),
    "sign": tx.sign,
    "value": lambda: tx.clip_by_value(0.3),
    "norm": lambda: tx.clip_by_norm(0.3),
    "global": lambda: tx.clip_by_global_norm(0.3),
    "centralize": tx.centralize,
    "identity": tx.identity,
}


def arrays(seed, shapes=((2, 3), (4,), ())):
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.normal(size=shape)) for shape in shapes]


def follow(rule, params, all_grads):
    states = rule.init(params)
    for grads in all_grads:
        updates, changed = rule.update(grads, states, params)
        params, states = tx.apply_updates(params, updates), tx.merge(states, changed)
    return params, states


@pytest.mark.parametrize("name", RULES)
def test_the_same_rule_runs_on_tensors(name):
    params, grads = arrays(0), [arrays(seed) for seed in range(1, 9)]
    plain, _ = follow(RULES[name](), params, grads)
    lifted = [[wf.tensor(g) for g in step] for step in grads]
    tensors, _ = follow(RULES[name](), [wf.tensor(p) for p in params], lifted)
    for a, b in zip(plain, tensors, strict=True):
        np.testing.assert_allclose(np.asarray(b), a, rtol=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_nothing_is_written_in_place(name):
    rule, params, grads = RULES[name](), arrays(0), arrays(1)
    states = rule.init(params)
    before = [np.array(v) for v in (*params, *grads)]
    kept = [{n: np.array(v) for n, v in state.items()} for state in states]
    rule.update(grads, states, params)
    for old, new in zip(before, (*params, *grads), strict=True):
        np.testing.assert_array_equal(old, new)
    for old, new in zip(kept, states, strict=True):
        for slot, value in old.items():
            np.testing.assert_array_equal(value, new[slot])


@pytest.mark.parametrize("name", RULES)
def test_slots_are_declared(name):
    rule = RULES[name]()
    assert all(set(state) == set(rule.slots) for state in rule.init(arrays(0)))


def test_a_step_can_be_differentiated():
    rate = wf.tensor(0.1, requires_grad=True)
    w = wf.tensor([1.0, 2.0], requires_grad=True)
    rule = tx.chain(tx.trace(0.9), tx.scale(-1.0 * rate))
    (g,) = wf.gradients((w * w).sum(), [w])
    updates, _ = rule.update([g], rule.init([w]), [w])
    ((w + updates[0]) ** 2).sum().backward()
    np.testing.assert_allclose(rate.grad.item(), -2 * (1 - 0.2) * (2 * 1 + 4 * 2), rtol=1e-6)


def test_chain_applies_in_order():
    p, g = [np.array([2.0])], [np.array([1.0])]
    before = tx.chain(tx.add_decayed_weights(0.5), tx.scale(10.0))
    after = tx.chain(tx.scale(10.0), tx.add_decayed_weights(0.5))
    assert before.update(g, before.init(p), p)[0] == [20.0]
    assert after.update(g, after.init(p), p)[0] == [11.0]


def test_chain_of_equal_parts_keeps_their_states_apart():
    rule = tx.chain(tx.trace(0.5), tx.trace(0.9))
    assert rule.slots == ("step", "momentum_buffer", "step_1", "momentum_buffer_1")
    params, grads = arrays(0), [arrays(s) for s in range(1, 5)]
    found, _ = follow(rule, params, grads)
    first, second = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params]
    for step in grads:
        first = [0.5 * a + g for a, g in zip(first, step, strict=True)]
        second = [0.9 * b + a for a, b in zip(first, second, strict=True)]
        params = [p + b for p, b in zip(params, second, strict=True)]
    for a, b in zip(found, params, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_chain_with_a_rule_over_all_parameters():
    rule = tx.chain(tx.clip_by_global_norm(1.0), tx.trace(0.9), tx.scale(-1.0))
    assert rule.each is None
    params, grads = arrays(0), arrays(1)
    length = np.sqrt(sum((g**2).sum() for g in grads))
    found, states = follow(rule, params, [grads])
    for p, g, after in zip(params, grads, found, strict=True):
        np.testing.assert_allclose(after, p - g / (length + 1e-6), rtol=1e-12)
    assert [state["step"] for state in states] == [1, 1, 1]


def test_trivial_parts_are_dropped():
    assert tx.chain(tx.scale(1.0), tx.identity(), tx.add_decayed_weights(0)).slots == ()
    rule = tx.trace(0.9)
    assert tx.chain(tx.scale(1), rule) is rule


def test_chain_of_nothing_is_the_identity():
    rule = tx.chain()
    assert rule.update([np.ones(2)], rule.init([np.ones(2)]), [np.ones(2)])[0][0].tolist() == [1, 1]


def test_global_norm_of_nothing():
    rule = tx.clip_by_global_norm(1.0)
    assert rule.update([], [], []) == ([], [])


def test_chain_names_what_it_received():
    with pytest.raises(ArgumentTypeError, match="did you forget to call it"):
        tx.chain(scaling.scale_by_adam)


@given(st.floats(0.01, 100.0), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_clipped_norm_is_bounded(limit, values):
    g = np.array(values)
    rule = tx.clip_by_norm(limit)
    (clipped,), _ = rule.update([g], rule.init([g]), [g])
    assert np.linalg.norm(clipped) <= limit * (1 + 1e-6)
    if np.linalg.norm(g) < limit - 1e-5:
        np.testing.assert_array_equal(clipped, g)
