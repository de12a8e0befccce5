"""Updates of solvers against Caffe's formulas, written in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.caffe.errors import CaffeError
from weft.caffe.message import SolverParameter
from weft.caffe.policies import build_policy
from weft.caffe.solver_rules import RULES, SolverOptimizer, blob_groups

Step = Callable[
    ..., tuple[Any, list[Any]]
]  # gradient, history, rate -> what is subtracted, history
SHAPES, MULTIPLIERS = [(3, 4), (4,), (2, 3)], [(1.0, 1.0), (2.0, 0.0), (0.5, 3.0)]
STEPS = 6


def sgd(g: Any, h: Any, rate: float, t: int, o: Any) -> Any:
    h = [rate * g + o.momentum * h[0]]
    return h[0], h


def nesterov(g: Any, h: Any, rate: float, t: int, o: Any) -> Any:
    new = rate * g + o.momentum * h[0]
    return (1 + o.momentum) * new - o.momentum * h[0], [new]


def adagrad(g: Any, h: Any, rate: float, t: int, o: Any) -> Any:
    new = h[0] + g**2
    return rate * g / (np.sqrt(new) + o.delta), [new]


def rmsprop(g: Any, h: Any, rate: float, t: int, o: Any) -> Any:
    new = (1 - o.rms_decay) * g**2 + o.rms_decay * h[0]
    return rate * g / (np.sqrt(new) + o.delta), [new]


def adadelta(g: Any, h: Any, rate: float, t: int, o: Any) -> Any:
    squares = o.momentum * h[0] + (1 - o.momentum) * g**2
    step = g * np.sqrt((o.delta + h[1]) / (o.delta + squares))
    return rate * step, [squares, o.momentum * h[1] + (1 - o.momentum) * step**2]


def adam(g: Any, h: Any, rate: float, t: int, o: Any) -> Any:
    m = o.momentum * h[0] + (1 - o.momentum) * g
    v = o.momentum2 * h[1] + (1 - o.momentum2) * g**2
    correction = np.sqrt(1 - o.momentum2**t) / (1 - o.momentum**t)
    return rate * correction * m / (np.sqrt(v) + o.delta), [m, v]


FORMULAS: dict[str, tuple[Step, dict[str, Any]]] = {
    "SGD": (sgd, {"momentum": 0.9}),
    "Nesterov": (nesterov, {"momentum": 0.95}),
    "AdaGrad": (adagrad, {"delta": 1e-4}),
    "RMSProp": (rmsprop, {"rms_decay": 0.98, "delta": 1e-5}),
    "AdaDelta": (adadelta, {"momentum": 0.95, "delta": 1e-6}),
    "Adam": (adam, {"momentum": 0.9, "momentum2": 0.99, "delta": 1e-8}),
}


def solver(kind: str, **options: Any) -> Any:
    common = {"base_lr": 0.1, "lr_policy": "inv", "gamma": 0.3, "power": 0.7, "weight_decay": 0.02}
    return SolverParameter(**{"type": kind, **common, **FORMULAS[kind][1], **options})


def by_caffe(param: Any, start: list[Any], grads: list[list[Any]]) -> tuple[Any, Any]:
    """Return parameters and history after steps with gradients (sums over iter_size batches)."""
    step, _ = FORMULAS[param.type]
    w = [x.astype(np.float64) for x in start]
    history = [[np.zeros(x.shape)] * len(RULES[param.type].history) for x in start]
    for t, sums in enumerate(grads):
        rate = param.base_lr * (1 + param.gamma * t) ** -param.power
        norm = np.sqrt(sum((g**2).sum() for g in sums))
        shrink = param.clip_gradients / norm if norm > param.clip_gradients > 0 else 1.0
        for i, g in enumerate(sums):
            local_rate, local_decay = MULTIPLIERS[i]
            decay = np.sign(w[i]) if param.regularization_type == "L1" else w[i]
            local = g * shrink / param.iter_size + param.weight_decay * local_decay * decay
            moved, history[i] = step(local, history[i], rate * local_rate, t + 1, param)
            w[i] = w[i] - moved
    return w, history


def by_weft(param: Any, start: list[Any], grads: list[list[Any]]) -> Any:
    blobs = [wf.nn.Parameter(wf.tensor(x)) for x in start]
    groups = blob_groups((p, *m) for p, m in zip(blobs, MULTIPLIERS, strict=True))
    optimizer = SolverOptimizer(groups, param)
    policy = build_policy(param, optimizer)

    @wf.jit
    def step(sums: list[Any]) -> None:
        for p, g in zip(blobs, sums, strict=True):
            p.grad = g
        optimizer.clip(param.clip_gradients)
        optimizer.divide(param.iter_size)
        optimizer.step()

    for t, sums in enumerate(grads):
        policy.step(t)
        step([wf.tensor(g.astype(np.float32)) for g in sums])
    return blobs, optimizer


@pytest.mark.parametrize("kind", FORMULAS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"regularization_type": "L1", "iter_size": 3},
        {"clip_gradients": 0.5, "iter_size": 2},
        {"weight_decay": 0.0},
    ],
    ids=["plain", "L1", "clipped", "no decay"],
)
def test_updates_are_those_of_caffe(kind: str, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    start = [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]
    grads = [[rng.normal(size=shape) for shape in SHAPES] for _ in range(STEPS)]
    param = solver(kind, **options)
    expected, history = by_caffe(param, start, grads)
    blobs, optimizer = by_weft(param, start, grads)
    for found, wanted in zip(blobs, expected, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=2e-4, atol=2e-5)
    kept = optimizer.history(blobs)
    listed = [slot for slots in zip(*history, strict=True) for slot in slots]
    for found, wanted in zip(kept, listed, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("kind", FORMULAS)
def test_histories_are_taken_over(kind: str) -> None:
    rng = np.random.default_rng(1)
    start = [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]
    grads = [[rng.normal(size=shape) for shape in SHAPES] for _ in range(STEPS)]
    param = solver(kind)
    blobs, optimizer = by_weft(param, start, grads)
    other = SolverOptimizer(
        blob_groups((p, *m) for p, m in zip(blobs, MULTIPLIERS, strict=True)), param
    )
    other.load_history(blobs, optimizer.history(blobs), STEPS)
    assert other.t == optimizer.t
    for p in blobs:
        assert other.state[p].keys() == optimizer.state[p].keys()
        for name, value in optimizer.state[p].items():
            np.testing.assert_array_equal(other.state[p][name], value)
    with pytest.raises(CaffeError, match="Incorrect length of history blobs"):
        other.load_history(blobs, [], STEPS)
    with pytest.raises(CaffeError, match="history blob 0 has the shape"):
        other.load_history(blobs, [np.zeros(7)] * len(optimizer.history(blobs)), STEPS)


def test_old_types_and_fixed_blobs() -> None:
    w = wf.nn.Parameter(wf.tensor([1.0]))
    fixed = wf.nn.Parameter(wf.tensor([1.0]))
    groups = blob_groups([(w, 1.0, 1.0), (fixed, 0.0, 1.0)])
    optimizer = SolverOptimizer(groups, SolverParameter(base_lr=0.1, solver_type="ADAM"))
    assert optimizer.kind == "Adam"
    assert list(optimizer.parameters()) == [w]
    assert [h.shape for h in optimizer.history([w, fixed])] == [(1,)] * 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"type": "Sgd"}, "Unknown solver type: 'Sgd'; there are SGD, Nesterov"),
        ({"type": "AdaGrad", "momentum": 0.9}, "Momentum cannot be used with AdaGrad"),
        ({"solver_type": "RMSPROP", "momentum": 0.9}, "Momentum cannot be used with RMSProp"),
        ({"type": "Adam", "solver_type": "ADAM"}, "not both"),
        ({"regularization_type": "L3"}, "Unknown regularization type: 'L3'"),
    ],
)
def test_solvers_that_are_none(options: dict[str, Any], message: str) -> None:
    w = wf.nn.Parameter(wf.tensor([1.0]))
    with pytest.raises(CaffeError, match=message):
        SolverOptimizer([w], SolverParameter(base_lr=0.1, **options))
