"""Adagrad, Adadelta and RMSprop: a learning rate for each element from its past gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .optimizer import Optimizer, given
from .scaling import scale_by_adadelta, scale_by_rms, scale_by_rss
from .sgd import descent
from .transform import GradientTransform, add_decayed_weights, is_number, trace


class Adagrad(Optimizer):
    """Divide by the root of the sum of all squared gradients (Duchi et al. 2011)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return decay, then the division, then the learning rate."""
        return descent(
            group,
            add_decayed_weights(group["weight_decay"]),
            scale_by_rss(
                initial_accumulator_value=group["initial_accumulator_value"],
                eps=group["eps"],
                lr_decay=group["lr_decay"],
            ),
        )


class Adadelta(Optimizer):
    """Scale by the ratio of past updates to past gradients (Zeiler 2012)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return decay, then the ratio, then the learning rate."""
        return descent(
            group,
            add_decayed_weights(group["weight_decay"]),
            scale_by_adadelta(group["rho"], eps=group["eps"]),
        )


class RMSprop(Optimizer):
    """Divide by a moving root mean square of gradients (Tieleman & Hinton 2012)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return decay, then the division, momentum and the learning rate."""
        momentum = group["momentum"]
        return descent(
            group,
            add_decayed_weights(group["weight_decay"]),
            scale_by_rms(group["alpha"], eps=group["eps"], centered=group["centered"]),
            *([] if is_number(momentum, 0) else [trace(momentum)]),
        )
