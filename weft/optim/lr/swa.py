"""The rate of stochastic weight averaging."""

from __future__ import annotations

import math

from ...core.errors import ArgumentError
from ..groups import positive_int
from ..optimizer import Optimizer
from .base import LRScheduler, per_group


class SWALR(LRScheduler):
    """Go to a constant `swa_lr` in `anneal_epochs` (Izmailov et al. 2018)."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(
                f"anneal_strategy must be 'cos' or 'linear'. Received: {anneal_strategy!r}"
            )
        self.swa_lrs = per_group("swa_lr", swa_lr, optimizer)
        self.anneal_epochs = positive_int("anneal_epochs", anneal_epochs)
        self.anneal_strategy = anneal_strategy
        self.start_lrs = [group["lr"] for group in optimizer.param_groups]
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to a given one, and set the rates.

        The way of a group begins at the rate that it has when the first step is made: other
        schedules have acted on it since this one was made.
        """
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        share, passed = self._share(self.last_epoch), self._share(self.last_epoch - 1)
        groups = zip(self.optimizer.param_groups, self.start_lrs, self.swa_lrs, strict=True)
        for group, first, end in groups:
            start = first
            if epoch is None:
                start = end if passed == 1.0 else (group["lr"] - passed * end) / (1.0 - passed)
            group["lr"] = start + (end - start) * share

    def _share(self, epoch: int) -> float:
        """Return how much of the way is behind at an epoch."""
        share = min(1.0, max(0.0, epoch / self.anneal_epochs))
        return (1.0 - math.cos(math.pi * share)) / 2.0 if self.anneal_strategy == "cos" else share

    def next_lr(self, lr: float, base: float) -> float:
        """Return the current rate: `step` sets all of them."""
        return lr
