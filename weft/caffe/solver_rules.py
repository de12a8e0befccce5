"""The updates of Caffe's solvers, as transforms of weft.optim, and what snapshots hold of them.

In Caffe's order: clip all gradients together, divide by iter_size, regularise, update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.op import F
from ..optim import Optimizer
from ..optim.classic import hat_adam, velocity
from ..optim.scaling import scale_by_adadelta, scale_by_rms, scale_by_rss
from ..optim.transform import (
    GradientTransform,
    add_decayed_signs,
    add_decayed_weights,
    chain,
    is_number,
    scale,
)
from .errors import CaffeError
from .inputs_protocol import Array
from .message import Message

Settings = Mapping[str, Any]


class Rule(NamedTuple):
    """How a type of solver updates.

    transform   of the settings of a group
    history     the slots that make up `history` of a snapshot, each for all blobs before the next
    sign        of these slots against Caffe's
    has_momentum   whether the solver takes one; others refuse it
    """

    transform: Callable[[Settings], GradientTransform]
    history: tuple[str, ...]
    sign: float = 1.0
    has_momentum: bool = False


def _momentum(group: Settings, *, nesterov: bool = False) -> GradientTransform:
    if is_number(group["momentum"], 0):  # what it would keep is forgotten at the next step
        return scale(-group["lr"])
    return velocity(group["lr"], group["momentum"], nesterov=nesterov)


def _nesterov(group: Settings) -> GradientTransform:
    return _momentum(group, nesterov=True)


def _adagrad(group: Settings) -> GradientTransform:
    return chain(scale_by_rss(eps=group["delta"]), scale(-group["lr"]))


def _rmsprop(group: Settings) -> GradientTransform:
    return chain(scale_by_rms(group["rms_decay"], eps=group["delta"]), scale(-group["lr"]))


def _adadelta(group: Settings) -> GradientTransform:
    return chain(scale_by_adadelta(group["momentum"], eps=group["delta"]), scale(-group["lr"]))


def _adam(group: Settings) -> GradientTransform:
    betas = (group["momentum"], group["momentum2"])
    return hat_adam(group["lr"], betas, group["delta"])


RULES = {
    "SGD": Rule(_momentum, ("v",), -1.0, has_momentum=True),
    "Nesterov": Rule(_nesterov, ("v",), -1.0, has_momentum=True),
    "AdaGrad": Rule(_adagrad, ("sum",)),
    "RMSProp": Rule(_rmsprop, ("square_avg",)),
    "AdaDelta": Rule(_adadelta, ("square_avg", "acc_delta"), has_momentum=True),
    "Adam": Rule(_adam, ("m", "v"), has_momentum=True),
}
# Types as old solvers give them: solver_type: NESTEROV
OLD_TYPES = {name.upper(): name for name in RULES}
_DECAYS = {"L2": add_decayed_weights, "L1": add_decayed_signs}


class SolverOptimizer(Optimizer):
    """The optimizer of a solver: blobs with multipliers, and the rule of the solver's type."""

    def __init__(self, params: Any, param: Message) -> None:
        self.kind = solver_type(param)
        self._decay = _regularization(param)
        super().__init__(
            params,
            lr=param.base_lr,
            momentum=param.momentum,
            momentum2=param.momentum2,
            delta=param.delta,
            rms_decay=param.rms_decay,
            weight_decay=param.weight_decay,
        )

    @property
    def rule(self) -> Rule:
        """Return the rule of the solver's type."""
        return RULES[self.kind]

    def transform(self, group: Settings) -> GradientTransform:
        """Return the regularisation, then the rule."""
        return chain(self._decay(group["weight_decay"]), self.rule.transform(group))

    def clip(self, limit: float) -> None:
        """Shrink all gradients together to a joint norm; a negative limit shrinks none."""
        if limit < 0:
            return
        found = [p for p in self.parameters() if p.grad is not None]
        squares = [F.sum(F.square(p.grad.detach())) for p in found]
        norm = F.sqrt(sum(squares[1:], squares[0]))
        factor = F.where(norm > limit, limit / norm, 1.0)
        for p in found:
            p.grad = p.grad.detach() * factor

    def divide(self, count: int) -> None:
        """Divide the gradients of several batches by their number."""
        if count > 1:
            for p in self.parameters():
                if p.grad is not None:
                    p.grad = p.grad.detach() * (1.0 / count)

    # -- snapshots -------------------------------------------------------------------------------

    def history(self, blobs: Iterable[Any]) -> list[Array]:
        """Return what Caffe calls history: an array for each blob, or two."""
        listed = list(blobs)
        return [
            np.asarray(self.state.get(p, {}).get(name, np.zeros(p.shape, np.float32)), np.float32)
            * np.float32(self.rule.sign)
            for name in self.rule.history
            for p in listed
        ]

    def load_history(self, blobs: Iterable[Any], history: list[Array], iteration: int) -> None:
        """Take over a history after so many iterations."""
        listed = list(blobs)
        expected = len(listed) * len(self.rule.history)
        if len(history) != expected:
            raise CaffeError(
                f"Incorrect length of history blobs: the solver {self.kind} has {expected}, and "
                f"the snapshot {len(history)}"
            )
        trained = set(self.parameters())
        self.t = iteration
        for place, p in enumerate(listed):
            parts = history[place :: len(listed)]
            for part in parts:
                if part.shape != tuple(p.shape):
                    raise CaffeError(
                        f"history blob {place} has the shape {part.shape}, and its parameter "
                        f"{tuple(p.shape)}"
                    )
            if p in trained:
                self._load(p, parts, iteration)

    def _load(self, p: Any, parts: list[Array], iteration: int) -> None:
        group = next(g for g in self.param_groups if any(q is p for q in g["params"]))
        state = self.expected_state(p, group)
        for name, part in zip(self.rule.history, parts, strict=True):
            if name in state:
                state[name] = np.asarray(part * np.float32(self.rule.sign), np.float32)
        self.state[p] = {**state, **({"step": iteration} if "step" in state else {})}


def solver_type(param: Message) -> str:
    """Return the type of a solver, also of one that gives it as `solver_type`."""
    kind = str(param.type)
    if param.has("solver_type"):
        if param.has("type"):
            raise CaffeError("give type or solver_type, which is its old form, not both")
        kind = OLD_TYPES[param.which("solver_type")]
    if kind not in RULES:
        raise CaffeError(f"Unknown solver type: {kind!r}; there are {', '.join(RULES)}")
    if param.momentum and not RULES[kind].has_momentum:
        raise CaffeError(f"Momentum cannot be used with {kind}. Received: {param.momentum:g}")
    return kind


def _regularization(param: Message) -> Callable[[Any], GradientTransform]:
    kind = param.regularization_type
    if kind not in _DECAYS:
        raise CaffeError(f"Unknown regularization type: {kind!r}; there are L1 and L2")
    return _DECAYS[kind]


def blob_groups(blobs: Iterable[tuple[Any, float, float]]) -> list[dict[str, Any]]:
    """Return groups of blobs with the same multipliers (of the rate, of the decay), in order.

    Blobs with a rate of 0 are left out: they are fixed, and have no gradient.
    """
    groups: dict[tuple[float, float], list[Any]] = {}
    for p, rate, decay in blobs:
        if rate:
            groups.setdefault((rate, decay), []).append(p)
    return [
        {"params": params, "lr_mult": rate, "decay_mult": decay}
        for (rate, decay), params in groups.items()
    ]
