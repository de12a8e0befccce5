"""Cosine annealing, with and without restarts (Loshchilov & Hutter 2017)."""

from __future__ import annotations

import math

from ...core.errors import ArgumentError
from ..groups import number, positive_int
from ..optimizer import Optimizer
from .base import LRScheduler


class CosineAnnealingLR(LRScheduler):
    """Fall from the initial rate to `eta_min` in `T_max` epochs along a cosine, then rise again."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = positive_int("T_max", T_max)
        self.eta_min = number("eta_min", eta_min)
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: float, base: float) -> float:
        """Return the rate from that of the epoch before, so that other schedules may act too."""
        epoch, turn = self.last_epoch, self.T_max
        if epoch == 0:
            return lr
        if (epoch - 1 - turn) % (2 * turn) == 0:  # the rate is eta_min, which no factor can leave
            return lr + (base - self.eta_min) * (1.0 - math.cos(math.pi / turn)) / 2.0
        before = 1.0 + math.cos(math.pi * (epoch - 1) / turn)
        now = 1.0 + math.cos(math.pi * epoch / turn)
        return (lr - self.eta_min) * now / before + self.eta_min

    def lr_at(self, lr: float, base: float) -> float:
        """Return the rate by the closed form (equation 5 of the paper)."""
        return _between(self.eta_min, base, self.last_epoch / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Fall along a cosine in T_0 epochs, restart, fall in T_0 * T_mult, and so on.

    `step(epoch)` takes fractions, e.g. `epoch + i / len(loader)` after each batch.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_0 = positive_int("T_0", T_0)
        self.T_mult = positive_int("T_mult", T_mult)
        self.eta_min = number("eta_min", eta_min)
        self.position = float(last_epoch)  # last_epoch with its fraction
        super().__init__(optimizer, last_epoch)

    def rewind(self) -> None:
        """Go back to the time before the first epoch."""
        super().rewind()
        self.position = -1.0

    def step(self, epoch: float | None = None) -> None:
        """Go one epoch on, or to a given, possibly fractional one, and set the rates."""
        if epoch is not None and not epoch >= 0:
            raise ArgumentError(f"the epoch must not be negative. Received: {epoch!r}")
        self.position = self.position + 1.0 if epoch is None else float(epoch)
        super().step(math.floor(self.position))

    def next_lr(self, lr: float, base: float) -> float:
        """Return the rate at the position within the current period."""
        elapsed, period = self._period()
        return _between(self.eta_min, base, elapsed / period)

    def _period(self) -> tuple[float, float]:
        """Return the epochs since the last restart, and how many there are until the next."""
        if self.T_mult == 1:
            return self.position % self.T_0, float(self.T_0)
        start, period = 0.0, float(self.T_0)
        while self.position >= start + period:
            start += period
            period *= self.T_mult
        return self.position - start, period


def _between(low: float, high: float, share: float) -> float:
    """Return the point of a half cosine from `high` (share 0) to `low` (share 1)."""
    return low + (high - low) * (1.0 + math.cos(math.pi * share)) / 2.0
