"""Trajectories of 50 steps against torch.optim, for every option of all of ours."""

import itertools

import numpy as np
import pytest

import weft as wf
from weft import optim

pytestmark = pytest.mark.peers
STEPS = 50
SHAPES = [(4, 3), (3,), ()]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def problem(seed=0):
    """Return start values and one gradient per step and parameter; some gradients are missing."""
    rng = np.random.default_rng(seed)
    start = [np.asarray(rng.normal(size=shape)) for shape in SHAPES]
    grads = [[np.asarray(rng.normal(size=shape)) for shape in SHAPES] for _ in range(STEPS)]
    for step in (0, 7, 8):
        grads[step][1] = None
    return start, grads


def ours(name, options):
    start, grads = problem()
    params = [wf.tensor(value, requires_grad=True) for value in start]
    optimizer = getattr(optim, name)(params, **options)
    return run(optimizer, params, grads, wf.tensor, lambda p: p.detach().numpy())


def theirs(torch, name, options):
    start, grads = problem()
    params = [torch.tensor(value, requires_grad=True) for value in start]
    optimizer = getattr(torch.optim, name)(params, **options)
    return run(optimizer, params, grads, torch.tensor, lambda p: p.detach().numpy())


def run(optimizer, params, grads, make, read):
    path = []
    for step_grads in grads:
        for p, g in zip(params, step_grads, strict=True):
            p.grad = None if g is None else make(g)
        optimizer.step()
        path.append(np.concatenate([np.array(read(p)).reshape(-1) for p in params]))
    return np.array(path)


def product(**choices):
    return [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]


SGD = [
    options
    for options in product(
        lr=[0.1],
        momentum=[0.0, 0.9],
        dampening=[0.0, 0.3],
        weight_decay=[0.0, 0.01],
        nesterov=[False, True],
        maximize=[False, True],
    )
    if not options["nesterov"] or (options["momentum"] and not options["dampening"])
]
COMMON = {"weight_decay": [0.0, 0.01], "maximize": [False, True]}
CASES = {
    "SGD": SGD,
    "Adagrad": product(
        lr=[0.1],
        lr_decay=[0.0, 0.05],
        initial_accumulator_value=[0.0, 0.5],
        eps=[1e-10, 1e-3],
        **COMMON,
    ),
    "Adadelta": product(lr=[1.0, 0.5], rho=[0.9, 0.5], eps=[1e-6, 1e-2], **COMMON),
    "RMSprop": product(
        alpha=[0.99, 0.5], eps=[1e-8, 1e-2], momentum=[0.0, 0.9], centered=[False, True], **COMMON
    ),
    "Adam": product(
        lr=[0.01],
        betas=[(0.9, 0.999), (0.5, 0.9)],
        eps=[1e-8, 1e-2],
        amsgrad=[False, True],
        decoupled_weight_decay=[False, True],
        **COMMON,
    ),
    "AdamW": product(
        lr=[0.01],
        betas=[(0.9, 0.999), (0.5, 0.9)],
        eps=[1e-8, 1e-2],
        amsgrad=[False, True],
        **COMMON,
    ),
    "ASGD": product(lr=[0.1], lambd=[1e-4, 0.5], alpha=[0.75, 0.1], t0=[1e6, 5.0], **COMMON),
    "Rprop": product(etas=[(0.5, 1.2), (0.1, 3.0)], step_sizes=[(1e-6, 50), (0.005, 0.02)]),
    "Adafactor": product(
        lr=[0.01, 0.3],
        beta2_decay=[-0.8, -0.1],
        eps=[(None, 1e-3), (0.1, 2.0)],
        d=[1.0, 2.0],
        **COMMON,
    ),
    "Adamax": product(lr=[0.01], betas=[(0.9, 0.999), (0.5, 0.9)], eps=[1e-8, 1e-2], **COMMON),
    "NAdam": product(
        betas=[(0.9, 0.999), (0.5, 0.9)],
        eps=[1e-8, 1e-2],
        momentum_decay=[4e-3, 0.1],
        decoupled_weight_decay=[False, True],
        **COMMON,
    ),
    "RAdam": product(
        lr=[0.01],
        betas=[(0.9, 0.999), (0.5, 0.9)],
        eps=[1e-8, 1e-2],
        decoupled_weight_decay=[False, True],
        **COMMON,
    ),
}
ALL_CASES = [
    pytest.param(name, options, id=f"{name}-{index}")
    for name, cases in CASES.items()
    for index, options in enumerate([{}, *cases])
]


@pytest.mark.parametrize(("name", "options"), ALL_CASES)
def test_trajectory(torch, name, options):
    rtol = 1e-4 if name == "ASGD" else 1e-9  # whose rate they round to single precision
    np.testing.assert_allclose(
        ours(name, options), theirs(torch, name, options), rtol=rtol, atol=rtol / 100
    )


@pytest.mark.parametrize("name", list(CASES))
def test_single_precision(torch, name):
    rng = np.random.default_rng(3)
    start = rng.normal(size=(20, 1000)).astype(np.float32)  # larger than one block
    grads = rng.normal(size=(STEPS, 20, 1000)).astype(np.float32)
    w, v = wf.tensor(start, requires_grad=True), torch.tensor(start, requires_grad=True)
    mine, other = getattr(optim, name)([w]), getattr(torch.optim, name)([v])
    for g in grads:
        w.grad, v.grad = wf.tensor(g), torch.tensor(g)
        mine.step()
        other.step()
    np.testing.assert_allclose(w.detach().numpy(), v.detach().numpy(), rtol=2e-4, atol=2e-5)


def test_defaults_are_the_same(torch):
    for name in CASES:
        w, v = wf.tensor([1.0], requires_grad=True), torch.tensor([1.0], requires_grad=True)
        mine = getattr(optim, name)([w]).defaults
        other = getattr(torch.optim, name)([v]).defaults
        assert mine == {key: other[key] for key in mine}, name


# -- LBFGS -----------------------------------------------------------------------------------------

LBFGS_CASES = [
    *product(
        lr=[1.0, 0.3],
        max_iter=[20, 4],
        history_size=[100, 3],
        line_search_fn=[None, "strong_wolfe"],
    ),
    {"max_eval": 3, "line_search_fn": "strong_wolfe"},
    {"tolerance_grad": 1e-2},
    {"tolerance_change": 1e-2},
]


def rosenbrock(x):
    return ((1.0 - x[:-1]) ** 2 + 10.0 * (x[1:] - x[:-1] ** 2) ** 2).sum()


def quartic(x):
    return ((x - 0.3) ** 4 + 0.1 * x**2).sum()


@pytest.mark.parametrize("function", [rosenbrock, quartic])
@pytest.mark.parametrize("options", LBFGS_CASES, ids=repr)
def test_lbfgs(torch, options, function):
    start = np.array([-0.5, 0.7, 0.2, -0.1])
    w, v = wf.tensor(start, requires_grad=True), torch.tensor(start, requires_grad=True)
    mine, other = optim.LBFGS([w], **options), torch.optim.LBFGS([v], **options)
    # Without a line search the long steps diverge chaotically; a few steps say enough.
    for _ in range(STEPS if options.get("line_search_fn") else 2):
        mine_loss = mine.step(closure(mine, function, w))
        other_loss = other.step(closure(other, function, v)).detach()
        np.testing.assert_allclose(float(mine_loss), float(other_loss), rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(w.detach().numpy(), v.detach().numpy(), rtol=1e-6, atol=1e-8)


def closure(optimizer, function, x):
    def evaluate():
        optimizer.zero_grad()
        loss = function(x)
        loss.backward()
        return loss

    return evaluate


# -- schedules -------------------------------------------------------------------------------------

SCHEDULES = {
    "StepLR": [{"step_size": 3}, {"step_size": 7, "gamma": 0.5}],
    "MultiStepLR": [{"milestones": [2, 5, 5, 20]}, {"milestones": [10, 4], "gamma": 0.5}],
    "ConstantLR": [{}, {"factor": 0.5, "total_iters": 9}],
    "LinearLR": [{}, {"start_factor": 0.1, "end_factor": 0.7, "total_iters": 12}],
    "ExponentialLR": [{"gamma": 0.9}],
    "PolynomialLR": [{}, {"total_iters": 30, "power": 2.0}],
    "CosineAnnealingLR": [{"T_max": 7}, {"T_max": 20, "eta_min": 0.01}, {"T_max": 1}],
    "CosineAnnealingWarmRestarts": [{"T_0": 6}, {"T_0": 3, "T_mult": 2, "eta_min": 0.01}],
    "LambdaLR": [{"lr_lambda": lambda e: 0.95**e}, {"lr_lambda": [lambda e: 1 / (e + 1)] * 2}],
    "MultiplicativeLR": [{"lr_lambda": lambda e: 0.9 + 0.01 * (e % 3)}],
    "OneCycleLR": [
        {"max_lr": 0.3, "total_steps": 60},
        {"max_lr": [0.3, 0.5], "epochs": 7, "steps_per_epoch": 8, "anneal_strategy": "linear"},
        {"max_lr": 0.3, "total_steps": 55, "three_phase": True, "pct_start": 0.4},
        {"max_lr": 0.3, "total_steps": 55, "cycle_momentum": False, "div_factor": 10.0},
        {"max_lr": 0.3, "total_steps": 51, "base_momentum": 0.5, "final_div_factor": 100.0},
    ],
    "CyclicLR": [
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 5},
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4, "step_size_down": 7},
        {"base_lr": 0.01, "max_lr": [0.1, 0.2], "step_size_up": 4, "mode": "triangular2"},
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4, "mode": "exp_range", "gamma": 0.97},
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 4, "scale_fn": lambda x: 1 / (1 + x)},
        {
            "base_lr": 0.01,
            "max_lr": 0.1,
            "step_size_up": 4,
            "scale_fn": lambda x: 1 / (1 + x),
            "scale_mode": "iterations",
            "cycle_momentum": False,
        },
    ],
    "SWALR": [{"swa_lr": 0.05}, {"swa_lr": 0.5, "anneal_epochs": 4, "anneal_strategy": "linear"}],
}
SCHEDULE_CASES = [
    pytest.param(name, options, id=f"{name}-{index}")
    for name, cases in SCHEDULES.items()
    for index, options in enumerate(cases)
]


def two_groups(module, make, kind):
    groups = [
        {"params": [make([1.0], requires_grad=True)], "lr": 0.1},
        {"params": [make([2.0], requires_grad=True)], "lr": 0.2},
    ]
    options = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(module, kind)(groups, **options)


def rates(optimizer, schedule, count=STEPS, steps=lambda n: ()):
    found = []
    for n in range(count):
        found.append(
            [
                (group["lr"], group.get("momentum", 0.0), group.get("betas", (0.0,))[0])
                for group in optimizer.param_groups
            ]
        )
        optimizer.step()
        schedule.step(*steps(n))
    return np.array(found)


def pair(torch, kind="SGD"):
    return two_groups(optim, wf.tensor, kind), two_groups(torch.optim, torch.tensor, kind)


def schedules_of(torch, name):
    home = torch.optim.swa_utils if name == "SWALR" else torch.optim.lr_scheduler
    return getattr(optim.lr, name), getattr(home, name)


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize(("name", "options"), SCHEDULE_CASES)
def test_schedule(torch, name, options, kind):
    mine, other = pair(torch, kind)
    our_class, their_class = schedules_of(torch, name)
    expected = rates(other, their_class(other, **options))
    np.testing.assert_allclose(
        rates(mine, our_class(mine, **options)), expected, rtol=1e-9, atol=1e-12
    )


def test_fractional_restarts(torch):
    mine, other = pair(torch)
    our_class, their_class = schedules_of(torch, "CosineAnnealingWarmRestarts")
    found = rates(mine, our_class(mine, 3, 2), steps=lambda n: (n / 4,))
    expected = rates(other, their_class(other, 3, 2), steps=lambda n: (n / 4,))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


PLATEAU = [
    *product(
        mode=["min", "max"],
        patience=[0, 2],
        threshold=[1e-4, 0.1],
        threshold_mode=["rel", "abs"],
        cooldown=[0, 3],
    ),
    {"factor": 0.5, "patience": 1, "min_lr": [0.01, 0.02]},
    {"factor": 0.5, "patience": 0, "eps": 0.01},
]


@pytest.mark.parametrize("options", PLATEAU, ids=repr)
def test_plateau(torch, options):
    metrics = np.random.default_rng(0).normal(size=STEPS).round(1)
    mine, other = pair(torch)
    our_class, their_class = schedules_of(torch, "ReduceLROnPlateau")
    found = rates(mine, our_class(mine, **options), steps=lambda n: (metrics[n],))
    expected = rates(other, their_class(other, **options), steps=lambda n: (metrics[n],))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def chained(lr, optimizer):
    return lr.ChainedScheduler(
        [
            lr.ConstantLR(optimizer, factor=0.1, total_iters=4),
            lr.StepLR(optimizer, step_size=9, gamma=0.5),
            lr.CosineAnnealingLR(optimizer, T_max=17),
            lr.ExponentialLR(optimizer, gamma=0.95),
        ]
    )


def sequential(lr, optimizer):
    return lr.SequentialLR(
        optimizer,
        [
            lr.LinearLR(optimizer, start_factor=0.1, total_iters=5),
            lr.CosineAnnealingLR(optimizer, T_max=20),
            lr.CosineAnnealingWarmRestarts(optimizer, T_0=4),
        ],
        milestones=[5, 25],
    )


@pytest.mark.parametrize("make", [chained, sequential])
def test_combinations(torch, make):
    mine, other = pair(torch)
    expected = rates(other, make(torch.optim.lr_scheduler, other))
    np.testing.assert_allclose(rates(mine, make(optim.lr, mine)), expected, rtol=1e-9)


# -- clipping and averages -------------------------------------------------------------------------


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.5, np.inf])
@pytest.mark.parametrize("max_norm", [0.5, 1e6])
def test_clip_grad_norm(torch, norm_type, max_norm):
    start, grads = problem()
    w = [wf.tensor(value, requires_grad=True) for value in start]
    v = [torch.tensor(value, requires_grad=True) for value in start]
    for a, b, g in zip(w, v, grads[1], strict=True):
        a.grad, b.grad = wf.tensor(g), torch.tensor(g)
    found = optim.clip_grad_norm_(w, max_norm, norm_type)
    expected = torch.nn.utils.clip_grad_norm_(v, max_norm, norm_type)
    np.testing.assert_allclose(float(found), float(expected), rtol=1e-12)
    for a, b in zip(w, v, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("kind", ["ema", "swa"])
def test_averages(torch, kind):
    swa_utils = torch.optim.swa_utils
    layer = torch.nn.Linear(3, 2)
    w = wf.tensor(layer.weight.detach().numpy(), requires_grad=True)
    mine = optim.EMA([w], 0.9) if kind == "ema" else optim.SWA([w])
    rule = swa_utils.get_ema_multi_avg_fn(0.9) if kind == "ema" else None
    other = swa_utils.AveragedModel(layer, multi_avg_fn=rule)
    for step in range(STEPS):
        value = np.random.default_rng(step).normal(size=(2, 3)).astype(np.float32)
        with wf.no_grad(), torch.no_grad():
            w.copy_(value)
            layer.weight.copy_(torch.tensor(value))
        mine.update()
        other.update_parameters(layer)
    expected = other.module.weight.detach().numpy()
    np.testing.assert_allclose(mine.values["0"], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {}),
        ("RMSprop", {"momentum": 0.5, "centered": True}),
        ("Adagrad", {}),
        ("Adadelta", {}),
        ("Adamax", {}),
        ("NAdam", {}),
        ("RAdam", {}),
        ("ASGD", {"t0": 5.0}),
        ("Rprop", {}),
        ("Adafactor", {}),
    ],
)
def test_state_of_theirs_is_continued(torch, name, options):
    start, grads = problem()
    params = [torch.tensor(value, requires_grad=True) for value in start]
    optimizer = getattr(torch.optim, name)(params, **options)
    run(optimizer, params, grads[:10], torch.tensor, lambda p: p.detach().numpy())
    own = [wf.tensor(p.detach().numpy().copy(), requires_grad=True) for p in params]
    other = getattr(optim, name)(own)
    other.load_state_dict(optimizer.state_dict())
    found = run(other, own, grads[10:], wf.tensor, lambda p: p.detach().numpy())
    expected = run(optimizer, params, grads[10:], torch.tensor, lambda p: p.detach().numpy())
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "options", [{}, {"nesterov": False}, {"adjust_lr_fn": "match_rms_adamw", "lr": 0.02}]
)
def test_muon(torch, options):
    """PyTorch iterates in half precision, so the paths are near each other alone."""
    rng = np.random.default_rng(0)
    start, grads = rng.normal(size=(6, 4)), rng.normal(size=(20, 6, 4))
    w, v = wf.tensor(start, requires_grad=True), torch.tensor(start, requires_grad=True)
    mine, other = optim.Muon([w], **options), torch.optim.Muon([v], **options)
    for g in grads:
        w.grad, v.grad = wf.tensor(g), torch.tensor(g)
        mine.step()
        other.step()
    moved = np.abs(v.detach().numpy() - start).max()
    np.testing.assert_allclose(w.detach().numpy(), v.detach().numpy(), atol=0.03 * moved)
