"""Lion and LAMB: methods for large models and large batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .adam import Betas, MomentOptimizer
from .optimizer import given
from .scaling import scale_by_adam, scale_by_lion, scale_by_trust_ratio
from .sgd import descent
from .transform import GradientTransform, add_decayed_weights


class Lion(MomentOptimizer):
    """Step by the sign of a momentum, with decoupled weight decay (Chen et al. 2023).

    Steps are of equal size everywhere, so `lr` should be 3 to 10 times smaller than AdamW's and
    `weight_decay` as many times larger.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        betas: Betas = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the sign of the momentum, then decay, then the learning rate."""
        return descent(
            group,
            scale_by_lion(*group["betas"]),
            add_decayed_weights(group["weight_decay"]),
        )


class LAMB(MomentOptimizer):
    """Scale Adam's update of each layer to the length of its weights (You et al. 2020)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return Adam's update with decay, its trust ratio, and the learning rate."""
        return descent(
            group,
            scale_by_adam(*group["betas"], eps=group["eps"]),
            add_decayed_weights(group["weight_decay"]),
            scale_by_trust_ratio(),
        )
