"""`lr_policy`: the learning rate at an iteration, by the schedules of weft.optim.lr."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..optim import Optimizer, lr
from .errors import CaffeError
from .message import Message

Policy = Callable[[Optimizer, Message], lr.LRScheduler]


def build_policy(param: Message, optimizer: Optimizer) -> lr.LRScheduler:
    """Return the schedule that a solver names; `schedule.step(iteration)` sets the rates."""
    policy = POLICIES.get(param.lr_policy)
    if policy is None:
        raise CaffeError(
            f"Unknown learning rate policy: {param.lr_policy!r}; lr_policy is one of "
            f"{', '.join(POLICIES)}"
        )
    needed, make = policy
    for name in needed:
        if not param.has(name):
            raise CaffeError(f"lr_policy {param.lr_policy!r} needs {name}; the solver has none")
    return make(optimizer, param)


def current_step(param: Message, iteration: int) -> int:
    """Return how often the rate has been multiplied by gamma, which snapshots hold."""
    if param.lr_policy == "step":
        return iteration // max(1, int(param.stepsize))
    if param.lr_policy == "multistep":
        return sum(value <= iteration for value in param.stepvalue)
    return 0


def _fixed(optimizer: Optimizer, param: Any) -> lr.LRScheduler:
    return lr.ConstantLR(optimizer, 1.0, 1)


def _step(optimizer: Optimizer, param: Any) -> lr.LRScheduler:
    return lr.StepLR(optimizer, _stepsize(param), param.gamma)


def _exp(optimizer: Optimizer, param: Any) -> lr.LRScheduler:
    return lr.ExponentialLR(optimizer, param.gamma)


def _inv(optimizer: Optimizer, param: Any) -> lr.LRScheduler:
    return lr.InverseLR(optimizer, param.gamma, param.power)


def _multistep(optimizer: Optimizer, param: Any) -> lr.LRScheduler:
    return lr.MultiStepLR(optimizer, list(param.stepvalue), param.gamma)


def _poly(optimizer: Optimizer, param: Any) -> lr.LRScheduler:
    return lr.PolyLR(optimizer, param.max_iter, param.power)


def _sigmoid(optimizer: Optimizer, param: Any) -> lr.LRScheduler:
    return lr.SigmoidLR(optimizer, param.gamma, _stepsize(param))


def _stepsize(param: Any) -> int:
    if param.stepsize < 1:
        raise CaffeError(f"stepsize must be positive. Received: {param.stepsize}")
    return int(param.stepsize)


# Each policy with the fields of a solver that it needs.
POLICIES: dict[str, tuple[tuple[str, ...], Policy]] = {
    "fixed": ((), _fixed),
    "step": (("gamma", "stepsize"), _step),
    "exp": (("gamma",), _exp),
    "inv": (("gamma", "power"), _inv),
    "multistep": (("gamma", "stepvalue"), _multistep),
    "poly": (("power", "max_iter"), _poly),
    "sigmoid": (("gamma", "stepsize"), _sigmoid),
}
