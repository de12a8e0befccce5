"""Eve: Adam with a global learning rate that listens to the objective."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.op import F
from ..graph.symbol import Symbol
from .adam import MomentOptimizer
from .graph_step import GraphNumbers, GraphRule
from .optimizer import Closure
from .scaling import scale_by_adam
from .transform import GradientTransform


class Eve(MomentOptimizer):
    """Adam whose rate falls while the loss changes much, and rises while it changes little.

    Koushik & Hayashi 2016, "Improving stochastic gradient descent with feedback", algorithm 1. The
    step needs the loss: `optimizer.step(loss=loss)`, `optimizer.step(closure)` or `minimize(loss)`.

    betas     decay rates of the moments and of the feedback
    bounds    (k, K): the relative change of one step is taken to lie between these
    minimum   a lower bound of the objective; the loss must stay above it

    >>> import weft as wf
    >>> w = wf.tensor([1.0], requires_grad=True)
    >>> optimizer = wf.optim.Eve([w], lr=0.1)
    >>> optimizer.minimize((w * w).sum())
    >>> w.detach()
    tensor([0.9])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float, float] = (0.9, 0.999, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        bounds: tuple[float, float] = (0.1, 10.0),
        minimum: float = 0.0,
    ) -> None:
        low, high = bounds
        if not 0.0 < low < high < math.inf:
            raise ArgumentError(f"Eve: bounds must be 0 < k < K. Received: {bounds}")
        self.bounds = (float(low), float(high))
        self.minimum = float(minimum)
        self.feedback = 1.0  # d_t of the paper
        self._followed: float | None = None  # the smoothed objective, f-hat
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def scaling(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return Adam's scaling."""
        return scale_by_adam(*group["betas"][:2], eps=group["eps"])

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return Adam's rule with the learning rate divided by the feedback."""
        return super().transform({**group, "lr": group["lr"] / self.feedback})

    def step(
        self, closure: Closure | None = None, *, loss: Any = None, clip_norm: float | None = None
    ) -> Any:
        """Update all parameters; the loss must be given or computed by the closure."""
        if closure is None and loss is None:
            raise ArgumentTypeError(
                "Eve needs the value of the loss: call step(loss=loss), step(closure) or "
                "minimize(loss)"
            )
        return super().step(closure, loss=loss, clip_norm=clip_norm)

    def _update(self, loss: Any, closure: Closure | None) -> None:
        self._listen(float(loss) - self.minimum)
        super()._update(loss, closure)

    def _listen(self, height: float) -> None:
        """Take the objective (above its minimum) into the feedback; a NaN says nothing."""
        if not math.isfinite(height):
            return
        if self._followed is None:
            if height <= 0.0:
                raise ArgumentError(
                    f"Eve: the loss must lie above minimum={self.minimum}. Received: "
                    f"{height + self.minimum}; pass a lower bound of it as minimum="
                )
            self._followed = height
            return
        k, K = self.bounds
        rising = height >= self._followed
        lower, upper = (1.0 + k, 1.0 + K) if rising else (1.0 / (1.0 + K), 1.0 / (1.0 + k))
        ratio = min(max(height / self._followed, lower), upper)
        following = max(ratio * self._followed, sys.float_info.min)  # never to zero
        change = abs(following - self._followed) / min(following, self._followed)
        decay = self.param_groups[0]["betas"][2]
        self.feedback = decay * self.feedback + (1.0 - decay) * change
        self._followed = following

    def graph_rule(self, loss: Symbol, numbers: GraphNumbers) -> GraphRule:
        """Return the same in a graph: the feedback is state that a step reads and writes."""
        feedback = numbers.attribute("feedback", self, "feedback")
        followed = numbers.attribute("followed", self, "_followed")  # NaN before the first step
        height = numbers.number(loss) - self.minimum
        heard = F.isfinite(height)
        first = F.isnan(followed)
        k, K = self.bounds
        rising = height >= followed
        lower = F.where(rising, 1.0 + k, 1.0 / (1.0 + K))
        upper = F.where(rising, 1.0 + K, 1.0 / (1.0 + k))
        ratio = F.minimum(F.maximum(height / followed, lower), upper)
        following = F.maximum(ratio * followed, sys.float_info.min)
        change = abs(following - followed) / F.minimum(following, followed)
        decay = self.param_groups[0]["betas"][2]
        new = F.where(heard & ~first, decay * feedback + (1.0 - decay) * change, feedback)
        next_followed = F.where(heard, F.where(first, height, following), followed)

        def rule(settings: Mapping[str, Any]) -> GradientTransform:
            return super(Eve, self).transform({**settings, "lr": settings["lr"] / new})

        written = {"feedback": new, "followed": next_followed}
        return GraphRule(rule, written)

    def state_dict(self) -> dict[str, Any]:
        """Return hyperparameters, state and the feedback."""
        feedback = {"value": self.feedback, "followed": self._followed}
        return {**super().state_dict(), "feedback": feedback}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        super().load_state_dict(state)
        saved = state.get("feedback", {})
        self.feedback = saved.get("value", 1.0)
        self._followed = saved.get("followed")
