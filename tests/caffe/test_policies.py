"""Learning rates at iterations, against the formulas of Caffe's documentation."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import Any

import pytest

import weft as wf
from weft.caffe.errors import CaffeError
from weft.caffe.message import SolverParameter
from weft.caffe.policies import POLICIES, build_policy, current_step
from weft.caffe.solver_rules import SolverOptimizer

FORMULAS: dict[str, Callable[[int], float]] = {
    "fixed": lambda i: 0.5,
    "step": lambda i: 0.5 * 0.1 ** (i // 7),
    "exp": lambda i: 0.5 * 0.1**i,
    "inv": lambda i: 0.5 * (1 + 0.1 * i) ** -0.75,
    "multistep": lambda i: 0.5 * 0.1 ** ((i >= 5) + (i >= 12)),
    "poly": lambda i: 0.5 * (1 - i / 20) ** 0.75,
    "sigmoid": lambda i: 0.5 / (1 + exp(-0.1 * (i - 7))),
}


def made(policy: str, **options: Any) -> tuple[Any, Any]:
    fields = {"gamma": 0.1, "power": 0.75, "stepsize": 7, "stepvalue": [5, 12], "max_iter": 20}
    param = SolverParameter(base_lr=0.5, lr_policy=policy, **{**fields, **options})
    optimizer = SolverOptimizer([wf.nn.Parameter(wf.tensor([1.0]))], param)
    return param, build_policy(param, optimizer)


@pytest.mark.parametrize("policy", POLICIES)
def test_rates(policy: str) -> None:
    _, schedule = made(policy)
    for iteration in (0, 1, 4, 5, 6, 7, 12, 14, 20, 3):  # jumps too: a run is resumed
        schedule.step(iteration)
        assert schedule.get_last_lr() == [pytest.approx(FORMULAS[policy](iteration), rel=1e-6)]


def test_steps_that_snapshots_hold() -> None:
    param, _ = made("multistep")
    assert [current_step(param, i) for i in (0, 4, 5, 12, 30)] == [0, 0, 1, 2, 2]
    assert current_step(made("step")[0], 15) == 2
    assert current_step(made("inv")[0], 15) == 0


def test_policies_that_are_none() -> None:
    with pytest.raises(CaffeError, match="Unknown learning rate policy: 'steps'; lr_policy is"):
        made("steps")
    param = SolverParameter(base_lr=0.5, lr_policy="inv", gamma=0.1)
    optimizer = SolverOptimizer([wf.nn.Parameter(wf.tensor([1.0]))], param)
    with pytest.raises(CaffeError, match="lr_policy 'inv' needs power"):
        build_policy(param, optimizer)
    with pytest.raises(CaffeError, match="stepsize must be positive"):
        made("step", stepsize=0)
