"""Learning-rate schedules: formulas, combination, resuming, errors."""

import json
import math

import numpy as np
import pytest

import weft as wf
from weft import optim
from weft.optim import lr

STEPS = 40


def optimizer(rates=(0.1,), kind="SGD", **options):
    groups = [{"params": [wf.tensor([1.0], requires_grad=True)], "lr": rate} for rate in rates]
    if kind == "SGD":
        options.setdefault("momentum", 0.9)
    return getattr(optim, kind)(groups, **options)


def rates(schedule, count=STEPS, arguments=lambda n: ()):
    found = []
    for n in range(count):
        found.append(schedule.get_last_lr()[0])
        schedule.step(*arguments(n))
    return np.array(found)


FORMULAS = {
    "step": (lambda o: lr.StepLR(o, 7, 0.5), lambda n: 0.5 ** (n // 7)),
    "multistep": (
        lambda o: lr.MultiStepLR(o, [20, 3, 3], 0.5),
        lambda n: 0.5 ** (2 * (n >= 3) + (n >= 20)),
    ),
    "exponential": (lambda o: lr.ExponentialLR(o, 0.9), lambda n: 0.9**n),
    "constant": (lambda o: lr.ConstantLR(o, 0.25, 6), lambda n: 0.25 if n < 6 else 1.0),
    "constant from 0": (lambda o: lr.ConstantLR(o, 0.0, 6), lambda n: 0.0 if n < 6 else 1.0),
    "linear": (lambda o: lr.LinearLR(o, 0.2, 0.9, 10), lambda n: 0.2 + 0.07 * min(n, 10)),
    "linear from 0": (lambda o: lr.LinearLR(o, 0.0, 1.0, 10), lambda n: min(n, 10) / 10),
    "polynomial": (lambda o: lr.PolynomialLR(o, 30, 2.0), lambda n: (1 - min(n, 30) / 30) ** 2),
    "poly": (lambda o: lr.PolyLR(o, 25, 0.5), lambda n: (1 - min(n, 25) / 25) ** 0.5),
    "inv": (lambda o: lr.InverseLR(o, 0.1, 0.75), lambda n: (1 + 0.1 * n) ** -0.75),
    "sigmoid": (lambda o: lr.SigmoidLR(o, -0.5, 20), lambda n: 1 / (1 + math.exp(0.5 * (n - 20)))),
    "rising sigmoid": (
        lambda o: lr.SigmoidLR(o, 0.5, 20),
        lambda n: 1 / (1 + math.exp(-0.5 * (n - 20))),
    ),
    "cosine": (
        lambda o: lr.CosineAnnealingLR(o, 13, 0.01),
        lambda n: 0.1 + 0.9 * (1 + math.cos(math.pi * n / 13)) / 2,
    ),
    "restarts": (
        lambda o: lr.CosineAnnealingWarmRestarts(o, 10),
        lambda n: (1 + math.cos(math.pi * (n % 10) / 10)) / 2,
    ),
    "lambda": (lambda o: lr.LambdaLR(o, lambda n: 1 / (1 + n)), lambda n: 1 / (1 + n)),
    "multiplicative": (lambda o: lr.MultiplicativeLR(o, lambda n: 0.9), lambda n: 0.9**n),
    "triangles": (
        lambda o: lr.CyclicLR(o, 0.1, 0.2, 5),
        lambda n: 1 + (5 - abs(n % 10 - 5)) / 5,
    ),
    "swa": (lambda o: lr.SWALR(o, 0.2, 10, "linear"), lambda n: 1 + min(n, 10) / 10),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name):
    make, factor = FORMULAS[name]
    expected = [0.1 * factor(n) for n in range(STEPS)]
    np.testing.assert_allclose(rates(make(optimizer())), expected, rtol=1e-9, atol=1e-15)


def test_poly_ends_at_exactly_zero_and_stays_there():
    assert rates(lr.PolyLR(optimizer(), 10), 15)[10:].tolist() == [0.0] * 5


def test_sigmoid_does_not_overflow():
    found = rates(lr.SigmoidLR(optimizer(), -1000.0, 5), 10)
    assert found[0] == 0.1
    assert found[9] == 0.0


def test_one_cycle():
    o = optimizer()
    found = rates(lr.OneCycleLR(o, 1.0, total_steps=STEPS), STEPS)
    assert found[0] == pytest.approx(1 / 25)
    assert found.argmax() == 11
    assert found[11] == pytest.approx(1.0)
    assert found[-1] == pytest.approx(1 / 25 / 1e4)


def test_one_cycle_moves_momentum_against_the_rate():
    o = optimizer(kind="Adam")
    schedule = lr.OneCycleLR(o, 1.0, total_steps=10)
    assert o.param_groups[0]["betas"] == (0.95, 0.999)
    for _ in range(2):
        schedule.step()
    assert o.param_groups[0]["betas"] == (0.85, 0.999)


def test_one_cycle_ends():
    schedule = lr.OneCycleLR(optimizer(), 1.0, total_steps=3)
    for _ in range(3):
        schedule.step()
    with pytest.raises(ValueError, match="made for 3 steps; this would be step 4"):
        schedule.step()


def test_plateau():
    o = optimizer()
    schedule = lr.ReduceLROnPlateau(o, patience=1, cooldown=1, factor=0.5)
    metrics = [5.0, 4.0, 4.0, math.nan, 4.0, 4.0, 4.0, 3.0]
    found = rates(schedule, len(metrics), lambda n: (wf.tensor(metrics[n]),))
    np.testing.assert_allclose(found, [0.1] * 4 + [0.05] * 3 + [0.025])


def test_each_group_has_its_rate():
    o = optimizer((0.1, 0.4))
    schedule = lr.StepLR(o, 1, 0.5)
    schedule.step()
    assert schedule.get_last_lr() == [0.05, 0.2]
    o.add_param_group({"params": [wf.tensor([1.0], requires_grad=True)], "lr": 1.0})
    schedule.step()
    assert schedule.get_last_lr() == [0.025, 0.1, 0.5]


def test_functions_for_each_group():
    schedule = lr.LambdaLR(optimizer((0.1, 0.4)), [lambda n: 1.0, lambda n: 0.5])
    assert schedule.get_last_lr() == [0.1, 0.2]


def test_multipliers_survive_a_schedule():
    w = wf.tensor([1.0], requires_grad=True)
    o = optim.SGD([{"params": [w], "lr_mult": 10.0}], lr=0.1)
    lr.StepLR(o, 1, 0.1).step()
    w.grad = wf.tensor([1.0])
    o.step()
    assert w.item() == pytest.approx(0.9)


def test_jump_to_an_epoch():
    for name in ("step", "multistep", "exponential", "linear", "poly", "cosine", "inv"):
        make, factor = FORMULAS[name]
        schedule = make(optimizer())
        schedule.step(17)
        assert schedule.get_last_lr()[0] == pytest.approx(0.1 * factor(17))


def warm_up_then_decay(o):
    warm_up = lr.LinearLR(o, 0.1, 1.0, 5)
    return lr.SequentialLR(o, [warm_up, lr.CosineAnnealingLR(o, 30)], [5])


def all_at_once(o):
    return lr.ChainedScheduler([lr.ConstantLR(o, 0.1, 4), lr.ExponentialLR(o, 0.9)])


def test_sequence():
    expected = [0.1 * (0.1 + 0.18 * n) for n in range(5)]
    expected += [0.1 * (1 + math.cos(math.pi * n / 30)) / 2 for n in range(STEPS - 5)]
    np.testing.assert_allclose(rates(warm_up_then_decay(optimizer())), expected, rtol=1e-9)


def test_chain():
    expected = [0.1 * 0.9**n * (0.1 if n < 4 else 1.0) for n in range(STEPS)]
    np.testing.assert_allclose(rates(all_at_once(optimizer())), expected, rtol=1e-9)


RESUMABLE = {
    **{name: make for name, (make, _) in FORMULAS.items()},
    "one cycle": lambda o: lr.OneCycleLR(o, 1.0, total_steps=STEPS),
    "restarts 2": lambda o: lr.CosineAnnealingWarmRestarts(o, 3, 2),
    "exp_range": lambda o: lr.CyclicLR(o, 0.1, 0.2, 3, mode="exp_range", gamma=0.9),
    "sequence": warm_up_then_decay,
    "chain": all_at_once,
}


@pytest.mark.parametrize("name", RESUMABLE)
def test_resume(name):
    o = optimizer()
    schedule = RESUMABLE[name](o)
    rates(schedule, 13)
    saved, state = json.loads(json.dumps(schedule.state_dict())), o.state_dict()
    other = optimizer((0.7,))
    resumed = RESUMABLE[name](other)
    resumed.load_state_dict(saved)
    other.load_state_dict(state)
    np.testing.assert_array_equal(rates(resumed, 20), rates(schedule, 20))
    momenta = [x.param_groups[0]["momentum"] for x in (o, other)]
    assert momenta[0] == momenta[1]


def test_plateau_resumes():
    metrics = np.random.default_rng(0).normal(size=STEPS)
    o, other = optimizer(), optimizer()
    schedule, resumed = (lr.ReduceLROnPlateau(x, patience=1, factor=0.9) for x in (o, other))
    resumed.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
    assert resumed.best == math.inf
    rates(schedule, 13, lambda n: (metrics[n],))
    resumed.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
    other.load_state_dict(o.state_dict())
    later = [rates(s, 20, lambda n: (metrics[13 + n],)) for s in (schedule, resumed)]
    np.testing.assert_array_equal(*later)


def test_last_epoch_continues():
    o = optimizer()
    straight = rates(lr.StepLR(o, 3, 0.5), 10)
    fresh = optimizer()
    with pytest.raises(ValueError, match="no 'initial_lr'"):
        lr.StepLR(fresh, 3, 0.5, last_epoch=4)
    fresh.param_groups[0]["initial_lr"] = 0.1
    fresh.param_groups[0]["lr"] = straight[4]
    assert lr.StepLR(fresh, 3, 0.5, last_epoch=4).get_last_lr()[0] == straight[5]


BAD = [
    (lambda o: lr.StepLR(o, 0), "step_size must be a positive integer. Received: 0"),
    (lambda o: lr.StepLR(3, 1), "takes an optimizer. Received: int"),
    (lambda o: lr.ReduceLROnPlateau(3), "takes an optimizer. Received: int"),
    (lambda o: lr.StepLR(o, 1.5), "step_size"),
    (lambda o: lr.ExponentialLR(o, "a"), "gamma must be a number"),
    (lambda o: lr.LambdaLR(o, 3), "callable"),
    (lambda o: lr.LambdaLR(o, [abs, abs]), "2 entries for 1 parameter groups"),
    (lambda o: lr.CosineAnnealingLR(o, 0), "T_max"),
    (lambda o: lr.CosineAnnealingWarmRestarts(o, 1, 0), "T_mult"),
    (lambda o: lr.CosineAnnealingWarmRestarts(o, 3).step(-1), "must not be negative"),
    (lambda o: lr.OneCycleLR(o, 1.0), "needs total_steps, or epochs"),
    (lambda o: lr.OneCycleLR(o, 1.0, 10, pct_start=2.0), "pct_start"),
    (lambda o: lr.OneCycleLR(o, 1.0, 10, anneal_strategy="x"), "'cos' or 'linear'"),
    (lambda o: lr.OneCycleLR(o, [1.0, 2.0], 10), "max_lr has 2 entries"),
    (lambda o: lr.CyclicLR(o, 0.1, 1.0, mode="square"), "mode must be one of"),
    (lambda o: lr.CyclicLR(o, 0.1, 1.0, scale_mode="x"), "scale_mode"),
    (lambda o: lr.CyclicLR(optimizer(kind="Adagrad"), 0.1, 1.0), "cycle_momentum=False"),
    (lambda o: lr.SWALR(o, 0.1, anneal_strategy="x"), "'cos' or 'linear'"),
    (lambda o: lr.ReduceLROnPlateau(o, mode="x"), "mode must be one of"),
    (lambda o: lr.ReduceLROnPlateau(o, factor=1.0), "less than 1"),
    (lambda o: lr.SequentialLR(o, [], []), "at least one schedule"),
    (lambda o: lr.SequentialLR(o, [lr.StepLR(o, 1)], [3]), "need 0 rising milestones"),
    (lambda o: lr.SequentialLR(o, [lr.ReduceLROnPlateau(o)], []), "cannot be combined"),
    (lambda o: lr.SequentialLR(o, [lr.StepLR(optimizer(), 1)], []), "another optimizer"),
    (lambda o: warm_up_then_decay(o).step(3), "cannot jump"),
    (lambda o: lr.ChainedScheduler([]), "at least one"),
    (lambda o: lr.StepLR(o, 1).load_state_dict({"a": 1}), "not the state of a StepLR"),
    (lambda o: all_at_once(o).load_state_dict({"schedulers": []}), "2 schedules, but 0"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_errors(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call(optimizer())


@pytest.mark.parametrize("strategy", ["linear", "cos"])
def test_averaging_begins_at_the_rate_that_another_schedule_left(strategy):
    group = optimizer((1.0,))
    before, averaging = lr.StepLR(group, 1, 0.5), lr.SWALR(group, 0.1, 2, strategy)
    before.step()
    found = []
    for _ in range(3):
        averaging.step()
        found.append(group.param_groups[0]["lr"])
    np.testing.assert_allclose(found, [0.3, 0.1, 0.1])
