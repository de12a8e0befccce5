"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import ArgumentError
from .optimizer import Optimizer, given
from .transform import (
    GradientTransform,
    add_decayed_weights,
    chain,
    is_number,
    scale,
    trace,
)


def descent(group: Mapping[str, Any], *parts: GradientTransform) -> GradientTransform:
    """Return transforms with the learning rate behind them, and ascent before if it is wanted."""
    ascent = scale(-1.0 if group.get("maximize", False) else 1.0)
    return chain(ascent, *parts, scale(-group["lr"]))


class SGD(Optimizer):
    """Descend along the gradient, with momentum, Nesterov momentum and L2 weight decay.

    >>> import weft as wf
    >>> w = wf.tensor([4.0], requires_grad=True)
    >>> optimizer = wf.optim.SGD([w], lr=0.25)
    >>> optimizer.minimize((w * w).sum())
    >>> w.detach()
    tensor([2.])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def check_group(self, group: Mapping[str, Any]) -> None:
        """Raise unless Nesterov's method has a momentum to look ahead with."""
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ArgumentError(
                "Nesterov momentum needs momentum > 0 and dampening = 0. Received: "
                f"momentum={group['momentum']}, dampening={group['dampening']}"
            )

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return decay, then momentum, then the learning rate."""
        momentum = group["momentum"]
        parts = [add_decayed_weights(group["weight_decay"])]
        if not is_number(momentum, 0):
            parts.append(trace(momentum, dampening=group["dampening"], nesterov=group["nesterov"]))
        return descent(group, *parts)


class Momentum(SGD):
    """SGD with momentum 0.9 unless told otherwise."""

    def __init__(
        self, params: Any, lr: float = 1e-3, momentum: float = 0.9, **options: Any
    ) -> None:
        super().__init__(params, lr, momentum, **options)
