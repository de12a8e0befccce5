"""Loss scaling: keep small gradients of half-precision training from vanishing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from ..core.tensor import Tensor, wrap
from .optimizer import Optimizer

SMALLEST, LARGEST = 2.0**-24, 2.0**126  # beyond, products with a float32 vanish or overflow


class LossScaler:
    """Multiply the loss before backward and divide the gradients before the step.

    It installs itself as `optimizer.loss_scaling`, so `optimizer.minimize(loss)` scales by itself;
    in a loop of one's own write `scaler.scale(loss).backward()` and `optimizer.step()`. A step with
    gradients that are not finite is skipped. The scale falls by `backoff` then, and rises by
    `growth` after `interval` good steps in a row; `growth=1` and `backoff=1` keep it fixed
    (Micikevicius et al. 2018, section 3.2).

    >>> import weft as wf
    >>> w = wf.tensor([1.0], requires_grad=True)
    >>> optimizer = wf.optim.SGD([w], lr=0.5)
    >>> scaler = LossScaler(optimizer, scale=1024.0)
    >>> optimizer.minimize((w * w).sum())
    >>> w.detach()
    tensor([0.])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        scale: float = 2.0**16,
        *,
        growth: float = 2.0,
        backoff: float = 0.5,
        interval: int = 2000,
    ) -> None:
        if not scale > 0.0 or not growth >= 1.0 or not 0.0 < backoff <= 1.0 or interval < 1:
            raise ArgumentError(
                "LossScaler needs scale > 0, growth >= 1, 0 < backoff <= 1 and interval >= 1. "
                f"Received: {scale=}, {growth=}, {backoff=}, {interval=}"
            )
        self.factor = float(scale)
        self.growth, self.backoff, self.interval = growth, backoff, interval
        self.good_steps = 0
        self.skipped = 0
        optimizer.loss_scaling = self

    def scale(self, loss: Tensor) -> Tensor:
        """Return the loss multiplied by the current scale."""
        return loss * self.factor

    def accept(self, optimizer: Optimizer) -> bool:
        """Divide the gradients by the scale; return whether all of them are finite."""
        grads = [(p, p.grad._value) for p in optimizer.parameters() if p.grad is not None]
        if all(bool(np.isfinite(g).all()) for _, g in grads):
            for p, g in grads:
                p.grad = wrap(np.asarray(g * (1.0 / self.factor), g.dtype))
            self._advance()
            return True
        self.factor = max(self.factor * self.backoff, SMALLEST)
        self.good_steps = 0
        self.skipped += 1
        return False

    def _advance(self) -> None:
        self.good_steps += 1
        if self.good_steps == self.interval:
            self.good_steps = 0
            self.factor = min(self.factor * self.growth, LARGEST)

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and the counts."""
        return {
            "factor": self.factor,
            "good_steps": self.good_steps,
            "skipped": self.skipped,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.factor = float(state["factor"])
        self.good_steps = int(state["good_steps"])
        self.skipped = int(state["skipped"])
